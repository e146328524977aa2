"""A match that a seller settles: the card is the chosen product from then on."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from sqlalchemy import text

from browsers import joined, signed_in
from builders import a_csv, a_row

CSV = a_csv(a_row(1, name="Black Lotus", set="Alpha"), a_row(2, name="Mox"))


async def a_product(shop, name="Black Lotus", game="magic"):
    async with shop.service.database.shared() as session:
        return await session.scalar(
            text("""
                INSERT INTO product (identity, game, set_name, product_name, number, language,
                                     set_key, name_key, number_key)
                VALUES (md5(random()::text), :game, 'Beta', :name, '7', 'en', 'beta', :key, '7')
                RETURNING id
            """),
            {"game": game, "name": name, "key": name.lower()},
        )


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    await seller.import_csv(CSV)
    return seller


async def the_card(http):
    return (await http.get("/api/cards", params={"search": "lotus"})).json()["cards"][0]


async def settle(http, card, product):
    return await http.post(f"/api/cards/{card}/match", json={"product_id": product})


async def test_the_choice_holds_through_later_imports(shop):
    owner = await signed_in(shop)
    card = await the_card(owner)
    made = (await owner.post("/api/lists", json={"name": "Binder"})).json()["id"]
    await owner.post(f"/api/lists/{made}/cards", json={"card_ids": [card["id"]]})
    product = await a_product(shop)
    answer = await settle(owner, card["id"], product)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["found"], told["product_id"]) == ("settled", product)
    parts = {part["name"]: part["agrees"] for part in told["parts"]}
    assert (parts["Name"], parts["Set"]) == (True, False)
    await shop.import_csv(a_csv(a_row(1, name="Black Lotus!", set="Alpha", price="7.00")))
    after = await the_card(owner)
    assert (after["id"], after["product_id"], after["price"]) == (card["id"], product, "7.00")
    assert [entry["id"] for entry in after["lists"]] == [made]
    assert (await owner.get(f"/api/cards/{card['id']}/match")).json()["found"] == "settled"


async def test_an_import_that_wrote_another_product_ends_with_the_chosen_one(shop):
    card, product = await the_card(shop), await a_product(shop)
    await settle(shop, card["id"], product)
    async with shop.service.database.tenant(shop.id) as session:
        await session.execute(
            text("UPDATE card SET product_id = :was WHERE seller_id = :seller AND id = :id"),
            {"was": card["product_id"], "seller": shop.id, "id": card["id"]},
        )
    await shop.import_csv(CSV)
    assert (await the_card(shop))["product_id"] == product


async def test_it_is_undone_while_it_stands(shop):
    owner = await signed_in(shop)
    card = await the_card(owner)
    first, second = await a_product(shop), await a_product(shop)
    await settle(owner, card["id"], first)
    await settle(owner, card["id"], second)
    entries = (await owner.get("/api/v1/agent/activity")).json()["activity"]
    [latest, earlier] = [one for one in entries if one["action"] == "card.match_settled"]
    early = await owner.post(f"/api/v1/agent/activity/{earlier['id']}/undo")
    assert early.json()["code"] == "changed_since"
    for entry, product in ((latest, first), (earlier, card["product_id"])):
        done = await owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert done.status_code == 200, done.text
        assert (await the_card(owner))["product_id"] == product
    assert (await owner.get(f"/api/cards/{card['id']}/match")).json()["found"] == "provisional"


async def test_what_is_refused(shop, a_seller):
    owner = await signed_in(shop)
    staff = await joined(shop, "settling@example.invalid")
    card, product = await the_card(owner), await a_product(shop)
    assert (await settle(staff, card["id"], product)).status_code == 403
    assert (await settle(owner, 999_999, product)).status_code == 404
    assert (await settle(owner, card["id"], 999_999_999)).status_code == 422
    assert (await settle(owner, card["id"], card["product_id"])).status_code == 422
    foreign = await a_product(shop, game="chess")
    refused = await settle(owner, card["id"], foreign)
    assert "none of this account's product lines" in refused.json()["error"]
    other = await a_seller()
    assert (await settle(other, card["id"], product)).status_code == 404


async def test_two_at_once_leave_one_choice_and_two_entries(shop):
    owner = await signed_in(shop)
    card = await the_card(owner)
    products = [await a_product(shop), await a_product(shop)]
    answers = await asyncio.gather(*(settle(owner, card["id"], one) for one in products))
    assert [answer.status_code for answer in answers] == [200, 200]
    told = (await owner.get(f"/api/cards/{card['id']}/match")).json()
    assert told["product_id"] == (await the_card(owner))["product_id"] in products


async def test_the_match_says_how_certain_it_is_and_what_else_it_could_be(shop):
    owner = await signed_in(shop)
    # The tests share a catalog, so the names are this test's own.
    name, tie = (f"{word} {uuid.uuid4().hex}" for word in ("Lotus", "Tied"))
    await shop.import_csv(a_csv(a_row(8, name=name, set="Alpha")))
    [card] = (await owner.get("/api/cards", params={"search": name})).json()["cards"]
    path = f"/api/cards/{card['id']}/match"
    product = await a_product(shop, name)
    told = (await owner.get(path)).json()
    assert (told["found"], told["certainty"]) == ("provisional", None)
    assert product in [one["product_id"] for one in told["candidates"]]
    page = (await owner.get(f"/cards/{card['id']}")).text
    assert "These have the same name:" in page
    # Two products that fit equally are a tie, and it stays one.
    async with shop.service.database.shared() as session:
        for number in (1, 2):
            await session.execute(
                text("""
                    INSERT INTO product (identity, game, set_name, product_name, number, language,
                                         finish, marketplace_product_id, set_key, name_key,
                                         back_key, variant_key, number_key, finish_key,
                                         language_key)
                    VALUES (md5(random()::text), 'magic', 'Tie', :name, '9', 'en', 'Normal',
                            :number, 'tie', lower(:name), NULL, '', '9', 'normal', 'en')
                """),
                {"number": number, "name": tie},
            )
    await shop.import_csv(a_csv(a_row(7, name=tie, set="Tie", number="9")))
    [tied] = (await owner.get("/api/cards", params={"search": tie})).json()["cards"]
    told = (await owner.get(f"/api/cards/{tied['id']}/match")).json()
    assert (told["found"], told["certainty"], told["product_id"]) == ("ambiguous", "possible", None)
    assert "A tie is never decided." in told["reasons"][0]
    both = [one["product_id"] for one in told["candidates"]]
    assert len(both) == 2
    settled = (await settle(owner, tied["id"], both[0])).json()
    assert (settled["certainty"], settled["candidates"]) == ("certain", [])
    await shop.import_csv(a_csv(a_row(7, name=tie, set="Tie", number="9", price="2.00")))
    again = (await owner.get(f"/api/cards/{tied['id']}/match")).json()
    assert (again["found"], again["product_id"]) == ("settled", both[0])

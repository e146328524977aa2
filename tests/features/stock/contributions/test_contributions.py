"""Contributions: cards that a member has in hand and no marketplace lists yet; private, then
published, then live stock.
"""

import asyncio

import pytest
from sqlalchemy import text

from browsers import Browser, joined, signed_in
from builders import Seller, a_csv, a_row, read_csv
from cards_builder import a_list, card_ids, found
from cardsync.shop.accounts import roster
from cardsync.stock.cards.names_in_search import own_names
from cardsync.stock.contributions import promote

JAGUAR = {
    "name": "Alacrian Jaguar",
    "set": "Aetherdrift",
    "number": "152",
    "game": "magic",
    "condition": "NM",
    "quantity": 2,
}


@pytest.fixture
async def shop(a_seller) -> tuple[Seller, Browser, Browser]:
    """A seller, its owner and a member of staff."""
    seller = await a_seller(lines=["magic"])
    return seller, await signed_in(seller), await joined(seller, f"bea-{seller.email}")


async def contribute(browser: Browser, **changes) -> dict:
    answer = await browser.post("/api/contributions", json={**JAGUAR, **changes})
    assert answer.status_code == 201, answer.text
    card: dict = answer.json()
    return card


async def seen(who, **query) -> list[int]:
    page = (await who.get("/api/cards", params={"status": "all", **query})).json()
    assert page["total"] == len(page["cards"])
    return [card["id"] for card in page["cards"]]


@pytest.mark.night
async def test_a_contribution_is_a_row_of_the_inventory(shop):
    _, _, bea = shop
    card = await contribute(bea, printing="foil", price=1.25)
    told = {
        name: card[name]
        for name in (
            "product_name",
            "set_name",
            "number",
            "game",
            "condition",
            "condition_label",
            "printing",
            "language",
            "quantity",
            "price",
            "target_price",
            "status",
            "custom",
            "contribution",
        )
    }
    assert told == {
        "product_name": "Alacrian Jaguar", "set_name": "Aetherdrift", "number": "152",
        "game": "magic", "condition": "NM",
        "condition_label": "Near Mint Foil", "printing": "Foil", "language": "English",
        "quantity": 2, "price": "1.25",
        "target_price": None, "status": "active", "custom": False, "contribution": "private",
    }  # fmt: skip
    assert card["marketplace_id"] < -(10**12)
    assert (await bea.get(f"/api/cards/{card['id']}")).json()["product_name"] == "Alacrian Jaguar"


async def test_a_printing_that_no_table_knows_is_kept_as_its_text(shop):
    _, _, bea = shop
    card = await contribute(bea, printing="Galaxy Foil")
    assert (card["printing"], card["condition_label"]) == ("Galaxy Foil", "Near Mint Galaxy Foil")
    assert await seen(bea, search="is:foil") == [card["id"]]


@pytest.mark.night
async def test_private_ones_are_seen_by_their_member_only(shop):
    seller, owner, bea = shop
    card = await contribute(bea)
    assert (
        await seen(bea)
        == await seen(bea, search="jaguar")
        == await seen(bea, selected_ids=card["id"])
        == [card["id"]]
    )
    for other in (owner, seller):
        assert (
            await seen(other)
            == await seen(other, search="jaguar")
            == await seen(other, selected_ids=card["id"])
            == []
        )
        assert (await other.get(f"/api/cards/{card['id']}")).status_code == 404
    assert (await owner.post(f"/api/contributions/{card['id']}/publish")).status_code == 404
    put = {"card_id": card["id"], "box": 1, "slot": 1, "quantity": 1}
    assert (await owner.post("/api/shelves/put", json=put)).status_code == 404
    assert (await bea.post("/api/shelves/put", json=put)).status_code == 200
    assert (await owner.get("/api/shelves")).json() == {"boxes": []}
    assert (await owner.get("/api/shelves/1")).json()["total"] == 0
    assert (await bea.get("/api/shelves/1")).json()["total"] == 1


@pytest.mark.night
async def test_published_ones_are_seen_by_all_of_the_seller(shop, a_seller):
    seller, owner, bea = shop
    card = await contribute(bea)
    for _ in range(2):
        answer = await bea.post(f"/api/contributions/{card['id']}/publish")
        assert (answer.status_code, answer.json()["contribution"]) == (200, "published")
    shared = await contribute(owner, number="153", shared=True)
    assert shared["contribution"] == "published"
    for who in (seller, owner, bea):
        assert sorted(await seen(who)) == sorted([card["id"], shared["id"]])
    stranger = await signed_in(await a_seller())
    assert await seen(stranger) == []
    assert (await stranger.post(f"/api/contributions/{card['id']}/publish")).status_code == 404


@pytest.mark.night
async def test_no_upload_and_no_export_speaks_of_them(shop):
    seller, _, bea = shop
    mine = await contribute(bea)
    report = await seller.import_csv(
        a_csv(a_row(1, price="5.00", market="9.00")), **{"X-Product-Line": "magic"}
    )
    assert (report["gone"], report["applied"]) == (0, 1)
    [card] = [card for card in await seller.cards() if card["id"] == mine["id"]]
    assert (card["gone"], card["quantity"], card["target_price"]) == (False, 2, None)
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == ["1"]
    # Nor does a price come to it by another way.
    pinned = await seller.http.put(
        f"/api/pricing/pins/{mine['marketplace_id']}", json={"price": "7.77"}
    )
    explained = await seller.get(f"/api/v1/pricing/explain/{mine['marketplace_id']}")
    assert (pinned.status_code, explained.status_code) == (404, 404)


def listed(id: int = 1, **cells) -> dict[str, str]:
    return a_row(id, **{"name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152", **cells})


@pytest.mark.night
async def test_what_the_marketplace_lists_takes_over_lists_and_places(shop):
    seller, owner, bea = shop
    card = await contribute(bea, shared=True)
    first, second = (
        await a_list(seller, "first", card["id"]),
        await a_list(seller, "second", card["id"]),
    )
    put = {"card_id": card["id"], "box": 3, "slot": 4, "quantity": 2}
    await bea.post("/api/shelves/put", json=put)
    await seller.import_csv(a_csv(listed(1, quantity=2)))
    live = (await card_ids(seller))[1]
    assert await seen(owner) == await seen(bea) == [live]
    [shown] = (await owner.get("/api/cards")).json()["cards"]
    assert ([entry["id"] for entry in shown["lists"]], shown["location_code"]) == (
        [first, second],
        "3-4",
    )
    assert await found(seller, "list:first") == [1]
    again = await bea.post("/api/shelves/put", json=put)
    assert (again.status_code, again.json()["code"]) == (409, "stock_promoted_reload")
    told = await bea.post(f"/api/contributions/{card['id']}/publish")
    assert (told.status_code, told.json()["code"]) == (409, "stock_promoted_reload")
    assert await seen(bea, selected_ids=card["id"]) == []
    await seller.import_csv(a_csv(listed(1, quantity=2)))
    assert await seen(owner) == [live]


@pytest.mark.night
async def test_lists_count_and_take_what_a_caller_sees(shop):
    seller, owner, bea = shop
    listed_here = (await bea.post("/api/lists", json={"name": "Binder"})).json()["id"]
    private, shared = await contribute(bea), await contribute(bea, number="153", shared=True)
    path = f"/api/lists/{listed_here}/cards"
    ids = [private["id"], shared["id"]]
    by_owner = (await owner.post(path, json={"card_ids": ids})).json()
    assert (by_owner["added"], by_owner["requested"]) == (1, 1)
    by_bea = (
        await bea.post(
            path, json={"marketplace_ids": [private["marketplace_id"], shared["marketplace_id"]]}
        )
    ).json()
    assert (by_bea["added"], by_bea["requested"], by_bea["list"]["card_count"]) == (1, 2, 2)
    query = {"card_id": private["id"]}
    told = [
        (await who.get("/api/lists", params=query)).json()["lists"][0]
        for who in (bea, owner, seller)
    ]
    assert [(row["card_count"], row["member"]) for row in told] == [
        (2, True),
        (1, False),
        (1, False),
    ]
    searched = (await owner.post(path, json={"search": "jaguar"})).json()
    assert (searched["added"], searched["requested"]) == (0, 1)


@pytest.mark.night
async def test_a_retired_one_is_refused_where_it_is_selected_directly_and_nothing_is_inserted(shop):
    seller, owner, bea = shop
    card = await contribute(bea, shared=True)
    await seller.import_csv(a_csv(listed(1, quantity=2), a_row(2)))
    binder = (await bea.post("/api/lists", json={"name": "Binder"})).json()["id"]
    live = await card_ids(seller)
    for body in (
        {"card_ids": [live[2], card["id"]]},
        {"marketplace_ids": [2, card["marketplace_id"]]},
    ):
        answer = await owner.post(f"/api/lists/{binder}/cards", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "stock_promoted_reload")
    assert (await owner.get("/api/lists")).json()["lists"][0]["card_count"] == 0
    filtered = (
        await owner.post(
            f"/api/lists/{binder}/cards", json={"search": "jaguar", "selected_ids": [card["id"]]}
        )
    ).json()
    assert (filtered["added"], filtered["requested"]) == (0, 0)
    found_live = (await owner.post(f"/api/lists/{binder}/cards", json={"search": "jaguar"})).json()
    assert (found_live["added"], found_live["requested"]) == (1, 1)


async def test_what_others_call_their_cards_is_not_told(shop, a_seller):
    """A product that another seller's upload made up has that seller's words."""
    seller, owner, _ = shop
    other = await a_seller(lines=["magic"])
    await other.import_csv(a_csv(a_row(1, name="Nobody's Secret", set="My Own Set")))
    await seller.import_csv(a_csv(a_row(1, name="Our Secret", set="Our Own Set")))
    for of, status in ((other, 422), (seller, 201)):
        [card] = await of.cards()
        given = {"product_id": card["product_id"], "condition": "NM", "quantity": 1}
        answer = await owner.post("/api/contributions", json=given)
        assert answer.status_code == status, answer.text
        assert "Nobody" not in answer.text


@pytest.mark.night
async def test_a_card_of_a_game_that_the_account_does_not_sell_is_not_contributed(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    await seller.import_csv(a_csv(a_row(1, line="Pokemon")))
    [card] = await seller.cards()
    await seller.service.sql(
        seller.id, "UPDATE account SET product_lines = '{magic}' WHERE seller_id = :s", s=seller.id
    )
    owner = await signed_in(seller)
    given = {"product_id": card["product_id"], "condition": "NM", "quantity": 1}
    answer = await owner.post("/api/contributions", json=given)
    assert answer.status_code == 422
    assert "pokemon is none of this account's product lines" in answer.json()["error"]


async def test_no_upload_confirms_what_is_only_in_hand(shop):
    seller, _, bea = shop
    await contribute(bea, shared=True)
    for _ in range(2):
        await seller.import_csv(a_csv(a_row(1)))
    assert await found(seller, "is:confirmed") == [1]
    assert await found(seller, "is:in-flux") == []


@pytest.mark.night
async def test_a_list_that_is_full_for_all_others_holds_back_what_would_be_seen_on_it(
    shop, limited
):
    limited("CARDS_PER_LIST", 3)
    seller, owner, bea = shop
    await seller.import_csv(a_csv(*(a_row(number) for number in range(1, 4))))
    kept = await a_list(seller, "Keep")
    hers = [(await contribute(bea))["id"] for _ in range(3)]
    await bea.post(f"/api/lists/{kept}/cards", json={"card_ids": hers})
    answer = await owner.post(f"/api/lists/{kept}/cards", json={"marketplace_ids": [1, 2]})
    assert answer.json()["added"] == 2
    assert (await bea.post(f"/api/contributions/{hers[0]}/publish")).status_code in (200, 204)
    full = await bea.post(f"/api/contributions/{hers[1]}/publish")
    assert (full.status_code, full.json()["code"]) == (422, "list_full")
    assert "'Keep'" in full.json()["error"]
    await owner.send("DELETE", f"/api/lists/{kept}/cards?marketplace_ids=1")
    assert (await bea.post(f"/api/contributions/{hers[1]}/publish")).status_code in (200, 204)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "cells", [{"condition": "Lightly Played"}, {"condition": "Near Mint Foil"}, {"number": "153"}]
)
async def test_another_card_does_not(shop, cells):
    seller, owner, bea = shop
    card = await contribute(bea, shared=True)
    await seller.import_csv(a_csv(listed(1, **cells)))
    assert card["id"] in await seen(owner)


async def test_a_private_one_stays_its_members_whatever_is_listed(shop):
    seller, _, bea = shop
    card = await contribute(bea)
    await seller.import_csv(a_csv(listed(1)))
    assert card["id"] in await seen(bea)


@pytest.mark.night
async def test_a_member_who_goes_takes_the_private_ones_along(shop, service):
    seller, owner, bea = shop
    private, shared = await contribute(bea), await contribute(bea, shared=True)
    await a_list(seller, "mine", private["id"])
    async with service.database.shared() as session:
        await roster.remove(session, bea.member_id)
    assert await seen(owner) == [shared["id"]]
    assert (
        await service.sql(
            seller.id, "SELECT * FROM card_list_entry WHERE seller_id = :id", id=seller.id
        )
        == []
    )


async def test_a_product_may_be_named_by_its_id(shop):
    _, owner, bea = shop
    product = (await contribute(bea))["product_id"]
    answer = await owner.post(
        "/api/contributions",
        json={"product_id": product, "condition": "Damaged", "quantity": 1, "language": "German"},
    )
    card = answer.json()
    assert (card["product_id"], card["product_name"], card["condition"], card["language"]) == (
        product, "Alacrian Jaguar", "DMG", "German",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"condition": "so so"}, "condition"),
        ({"printing": "x" * 61}, "printing"),
        ({"printing": " "}, "printing"),
        ({"language": "Klingon"}, "language"),
        ({"quantity": 0}, "quantity"),
        ({"price": -1}, "price"),
        ({"price": "NaN"}, "price"),
        ({"game": "chess"}, "game"),
        ({"name": None}, "product_id"),
        ({"set": None}, "product_id"),
        ({"product_id": 2**62}, "product_id"),
    ],
)
async def test_what_cannot_be_is_refused(shop, changes, names):
    seller, _, bea = shop
    answer = await bea.post("/api/contributions", json={**JAGUAR, **changes})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert names in answer.json()["error"]
    assert await seller.cards() == []


@pytest.mark.night
@pytest.mark.parametrize("path", ["", "/1/publish"])
async def test_keys_contribute_nothing(shop, path):
    seller, _, _ = shop
    answer = await seller.post(f"/api/contributions{path}", json=JAGUAR)
    assert (answer.status_code, answer.json()["code"]) == (403, "session_required")


@pytest.mark.night
@pytest.mark.day
async def test_what_is_listed_while_others_use_it_loses_nothing(shop):
    """The import retires the contribution at some moment among them: an earlier caller is carried
    over, a later one is refused.
    """
    seller, _, bea = shop
    binder = (await bea.post("/api/lists", json={"name": "Binder"})).json()["id"]
    rows = []
    for number in (201, 202, 203):
        card = await contribute(bea, number=str(number), shared=True)
        rows.append(listed(number, number=str(number), quantity=2))
        add = {"card_ids": [card["id"]]}
        put = {"card_id": card["id"], "box": 1, "slot": number, "quantity": 1}
        _, *told = await asyncio.gather(
            seller.import_csv(a_csv(*rows)),
            *(bea.post(f"/api/lists/{binder}/cards", json=add) for _ in range(4)),
            *(bea.post("/api/shelves/put", json=put) for _ in range(4)),
        )
        assert {answer.status_code for answer in told} <= {200, 409}
        live = (await card_ids(seller))[number]
        placed = sum(answer.status_code == 200 for answer in told[4:])
        query = (
            "SELECT card_id, sum(quantity) AS lying FROM card_location"
            " WHERE seller_id = :id AND slot = :slot GROUP BY 1"
        )
        found_there = await seller.service.sql(seller.id, query, id=seller.id, slot=number)
        assert found_there == ([{"card_id": live, "lying": placed}] if placed else [])
        on_list = await seller.service.sql(
            seller.id, "SELECT card_id FROM card_list_entry"
                       " WHERE seller_id = :id AND card_id IN (:live, :old)",
            id=seller.id, live=live, old=card["id"],
        )  # fmt: skip
        added = sum(answer.status_code == 200 for answer in told[:4])
        assert on_list == ([{"card_id": live}] if added else [])


async def test_the_set_of_anothers_private_one_is_not_offered(shop, service):
    seller, _, bea = shop
    await contribute(bea)
    [member] = await service.sql(
        seller.id, "SELECT contributed_by FROM card WHERE contribution = 'private'"
    )

    async def sets(member_id: int | None) -> list[str]:
        async with service.app.state.database.readings.of(seller.id, 5) as reading:
            return list((await own_names(reading.rows, seller.id, member_id)).sets)

    assert (await sets(member["contributed_by"]), await sets(None)) == (["Aetherdrift"], [])


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize("turn", range(4))
async def test_adding_to_a_list_while_the_marketplace_lists_it_loses_no_card(shop, turn):
    """In either order the live card is on the list, or the member has to reload; the
    retired one is on none.
    """
    seller, owner, bea = shop
    card = await contribute(bea, shared=True)
    path = f"/api/lists/{await a_list(seller, 'first')}/cards"
    forms = [
        {"card_ids": [card["id"]]},
        {"marketplace_ids": [card["marketplace_id"]]},
        {"search": "jaguar"},
    ]
    upload = seller.import_csv(a_csv(listed(1, quantity=2)))
    adds = [who.post(path, json=form) for who in (bea, owner) for form in forms]
    answers = await asyncio.gather(*adds[: 2 * turn], upload, *adds[2 * turn :])
    answers.pop(2 * turn)
    live = (await card_ids(seller))[1]
    assert {answer.status_code for answer in answers} <= {200, 409}
    added = sum(answer.json()["added"] for answer in answers if answer.status_code == 200)
    entries = "SELECT card_id FROM card_list_entry WHERE seller_id = :s"
    on_it = [row["card_id"] for row in await seller.service.sql(seller.id, entries, s=seller.id)]
    assert (on_it, added) == ([live], 1)


@pytest.mark.night
async def test_no_list_is_made_while_the_marketplace_lists_a_contribution(shop, service):
    """A list that is made meanwhile would not be held, and could take what is being retired."""
    seller, owner, bea = shop
    card = await contribute(bea, shared=True)
    await seller.import_csv(a_csv(a_row(1)))
    waits = (
        "SELECT count(*) AS n FROM pg_locks"
        " WHERE locktype = 'advisory' AND NOT granted AND CAST(:s AS bigint) > 0"
    )
    async with service.database.tenant(seller.id) as session:
        await promote._hold_lists(session, seller.id)
        making = asyncio.create_task(owner.post("/api/lists", json={"name": "Meanwhile"}))
        async with asyncio.timeout(30):
            while not (await service.sql(seller.id, waits, s=seller.id))[0]["n"]:
                assert not making.done(), "the list was made at once"
                await asyncio.sleep(0.02)
        retired = (
            "UPDATE card SET contribution = 'retired', gone = true"
            " WHERE seller_id = :s AND id = :id"
        )
        await session.execute(text(retired), {"s": seller.id, "id": card["id"]})
    made = (await making).json()["id"]
    answer = await owner.post(f"/api/lists/{made}/cards", json={"card_ids": [card["id"]]})
    assert (answer.status_code, answer.json()["code"]) == (409, "stock_promoted_reload")

"""Cards whose price nobody knows, over HTTP and on pages: the nearest known price is taken and said,
another finish counts by choice alone, and what stays unknown is a word and in no amount.
"""

from __future__ import annotations

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from buying_builder import a_catalog, a_moxfield_file, brought, valued
from offers_builder import done, drafted

PAYS_HALF = {
    "name": "Half",
    "state": "published",
    "bands": [{"from": "0", "cash_bp": 5000, "credit_bp": 6000}],
}
NAMES = ("Sol Ring", "Mana Vault", "Time Walk", "Odd Heron")


@pytest.fixture
async def catalog(service, tmp_path):
    finishes = ("Normal", "Foil")
    cards = [
        {"product_name": name, "number": str(at), "finish": finish}
        for at, name in enumerate(NAMES)
        for finish in finishes
    ]
    return await a_catalog(service, tmp_path, *cards)


@pytest.fixture
async def shop(a_seller, catalog):
    """The shop has a played Sol Ring and a foil Mana Vault; it knows nothing of the other two."""
    seller = await a_seller(lines=["magic"])
    usual = {"set": catalog.set_name, "quantity": 1, "price": "700.00"}
    rows = [
        a_row(7, name="Sol Ring", number="0", condition="Lightly Played", market="543.00", **usual),
        a_row(8, name="Mana Vault", number="1", condition="Near Mint Foil", market="9.00", **usual),
        a_row(9, name="Odd Heron", number="3", market="2.00", **usual),
    ]
    await seller.import_csv(a_csv(*rows))
    assert (await seller.post("/api/buying/rules", json=PAYS_HALF)).status_code == 201
    return seller


async def products_of(shop, catalog):
    rows = await shop.service.sql(
        1,
        "SELECT id, product_name FROM product WHERE set_name = :name AND finish = 'Normal'",
        name=catalog.set_name,
    )
    return {row["product_name"]: row["id"] for row in rows}


async def test_a_collection_says_which_price_was_taken(shop, catalog):
    file = a_moxfield_file(
        *(
            {"name": name, "set_code": catalog.set_code, "number": str(at), "copies": 1}
            for at, name in enumerate(NAMES)
        )
    )
    box = await brought(shop, file)
    told = await valued(shop, box["id"])
    ring, vault, walk, hawk = told["rows"]
    # 543.00 is 85 % of a Near Mint copy, and half of that is paid.
    assert (ring["cash"], ring["reason"]) == ("319.41", None)
    assert ring["price_taken"] == {
        "source": "market",
        "condition": "LP",
        "finish": "Normal",
        "amount": "543.00",
    }
    assert "Lightly Played copy is $543.00" in ring["explanation"][1]
    assert hawk["price_taken"]["condition"] == "NM"
    for unknown in (vault, walk):
        assert (unknown["reason"], unknown["cash"], unknown["credit"]) == ("no_price", None, None)
        assert (unknown["price_taken"], unknown["bought"]) == (None, [])
    assert vault["other_finishes"] == [{"finish": "Foil", "amount": "9.00"}]
    assert walk["other_finishes"] == []
    assert (told["cash"], told["not_counted"], told["without_price"]) == ("320.41", 2, 2)
    page = (await (await signed_in(shop)).get(f"/buying/collections/{box['id']}")).text
    for said in ("No market price", "enter a price", "2 lines not counted", "From the LP"):
        assert said in page
    assert "$0.00" not in page


async def test_an_offer_takes_another_finish_by_choice(shop, catalog):
    owner = await signed_in(shop)
    ids = await products_of(shop, catalog)
    lines = [{"product_id": ids[name], "condition": "NM", "copies": 2} for name in NAMES]
    offer = await drafted(shop, *lines)
    by_name = {line["product_name"]: line for line in offer["lines"]}
    vault = by_name["Mana Vault"]
    assert (vault["reason_code"], vault["cash_each"]) == ("no_price", None)
    assert vault["other_finishes"] == [{"finish": "Foil", "amount": "9.00"}]
    assert by_name["Sol Ring"]["price_taken"]["condition"] == "LP"
    assert offer["totals"]["not_counted"] == 2
    [listed] = (await shop.get("/api/buying/offers")).json()["offers"]
    assert listed["totals"] == offer["totals"]
    lines[1]["price_of"] = "Foil"
    path = f"/api/buying/offers/{offer['id']}"
    body = {"revision": offer["revision"], "lines": lines}
    changed = (await owner.send("PATCH", path, json=body)).json()
    vault = changed["lines"][1]
    assert (vault["printing"], vault["price_of"], vault["cash_each"]) == ("Normal", "Foil", "4.50")
    assert vault["price_taken"]["finish"] == "Foil"
    assert "You chose the Foil price" in vault["explanation"][1]
    assert changed["totals"]["not_counted"] == 1
    lines[2]["cash_each"] = "1.00"
    body = {"revision": changed["revision"], "lines": lines}
    by_hand = (await owner.send("PATCH", path, json=body)).json()
    assert by_hand["totals"]["not_counted"] == 0


async def test_what_was_bought_is_drafted_with_its_price_and_cost(shop, catalog):
    """The shop lists a Odd Heron, whose price it takes; of a Sol Ring it lists a played copy alone,
    and its rules ask 1 % below the market; of Time Walk nobody knows a price.
    """
    ids = await products_of(shop, catalog)
    asked = [("Sol Ring", "NM"), ("Sol Ring", "MP"), ("Odd Heron", "NM"), ("Time Walk", "NM")]
    lines = [{"product_id": ids[name], "condition": grade, "copies": 1} for name, grade in asked]
    lines[3]["cash_each"] = "5.00"
    offer = await done(shop, await drafted(shop, *lines), "offer")
    offer = await done(shop, offer, "accept", way="cash")
    offer = await done(shop, await done(shop, offer, "receive"), "pay")
    await done(shop, offer, "stock")
    entries = (await shop.get("/api/quick_add")).json()["entries"]
    drafts = {(one["product_name"], one["condition"]): one for one in entries}
    prices = {key: (one["price"], one["cost"]) for key, one in drafts.items()}
    assert prices == {
        # 543.00 is 85 % of a Near Mint copy: 638.82, and 70 % of that is 447.17.
        ("Sol Ring", "NM"): ("632.44", "319.41"),
        ("Sol Ring", "MP"): ("442.70", "223.58"),
        ("Odd Heron", "NM"): ("700.00", "1.00"),
        ("Time Walk", "NM"): (None, "5.00"),
    }
    owner = await signed_in(shop)
    page = (await owner.get("/add-cards?status=draft")).text
    assert 'value="632.44"' in page
    refused = await owner.form(
        "/add-cards/publish", all="true", ids=[str(one["id"]) for one in entries]
    )
    assert "Time Walk needs a price before you publish" in refused.text
    hers = drafts["Time Walk", "NM"]["id"]
    typed = {f"quantity:{hers}": "1", f"price:{hers}": "9.00", f"cost:{hers}": "5.00"}
    sent = await owner.form("/add-cards/publish", ids=[str(one["id"]) for one in entries], **typed)
    assert sent.status_code == 303, sent.text[-500:]
    entries = (await shop.get("/api/quick_add")).json()["entries"]
    assert {one["status"] for one in entries} == {"published"}

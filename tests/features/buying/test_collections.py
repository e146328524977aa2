"""A collection that a customer brings: recognized, matched, chosen where it is unsure, and valued."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from buying_builder import (
    PICTURE,
    a_catalog,
    a_moxfield_file,
    brought,
    collection,
    valued,
)
from cardsync.buying.offers import into_stock
from cardsync.platform import clock
from offers_builder import buys, done
from quick_add_builder import served

SCRYFALL = "a20c5a55-1e8b-4f92-b6f1-e7e1a8a1b4d3"


@pytest.fixture
async def products(service, tmp_path):
    return await a_catalog(
        service,
        tmp_path,
        {"product_name": "Alacrian Jaguar", "number": "152", "product_id": "990152"},
        {
            "product_name": "Air Response Unit",
            "number": "7",
            "picture_url": PICTURE.format(SCRYFALL),
        },
        {"product_name": "Twin Blade", "number": "8"},
        {"product_name": "Twin Blade", "number": "9", "rarity": "Rare"},
    )


@pytest.fixture
async def shop(a_seller, products):
    """A shop that has a Jaguar for 12 dollars, market price 10."""
    row = a_row(
        77,
        name="Alacrian Jaguar",
        set=products.set_name,
        number="152",
        market="10.00",
        low="8.00",
        price="12.00",
        quantity=3,
    )
    return await a_shop(a_seller, row, lines=["magic"])


def a_file(products, *more):
    code = products.set_code
    return a_moxfield_file(
        {"name": "Alacrian Jaguar", "set_code": code, "number": "152"},
        {"name": "Air Response Unit", "set_code": code, "number": "7", "foil": "foil"},
        {"name": "Twin Blade", "set_code": code, "number": "10", "copies": 2},
        *more,
    )


async def test_a_file_is_recognized_matched_chosen_and_valued(shop, products):
    found = await brought(shop, a_file(products), "Karl's box.csv")
    assert (found["state"], found["format_label"], found["name"]) == (
        "done",
        "Moxfield",
        "Karl's box.csv",
    )
    assert (found["rows"], found["matched"], found["waiting"], found["copies"]) == (3, 2, 1, 10)
    path = f"/api/buying/collections/{found['id']}"
    [row] = (await shop.get(f"{path}/waiting")).json()["rows"]
    assert (row["row"], row["name"], row["certainty"]) == (4, "Twin Blade", None)
    assert [one["number"] for one in row["candidates"]] == ["8", "9"]
    rare = row["candidates"][1]["product_id"]
    choice = {"choices": [{"row": 4, "product_id": rare}]}
    answer = await shop.post(f"{path}/choices", json=choice)
    assert answer.json() == {"settled": 1, "waiting": 0}
    rows = (await shop.get(f"{path}/rows")).json()["rows"]
    assert [(one["product_id"], one["certainty"], one["how"]) for one in rows] == [
        (products.ids["Alacrian Jaguar 152"], "certain", "set_and_number"),
        (products.ids["Air Response Unit 7"], "certain", "set_and_number"),
        (rare, "certain", "chosen"),
    ]
    nothing = await valued(shop, found["id"])
    assert (nothing["bought"], nothing["rows"][0]["reason"]) == (0, "no_rule")
    owner = await signed_in(shop)
    assert (await owner.post("/api/buying/presets/standard")).status_code == 200
    told = await valued(shop, found["id"])
    jaguar, unit, _ = told["rows"]
    # Three are in stock: one more is bought at the full half of 10.00, the others for 10 % less.
    assert jaguar["bought"] == [
        {"copies": 1, "cash": "5.00", "credit": "6.00"},
        {"copies": 3, "cash": "4.50", "credit": "5.40"},
    ]
    assert (told["cash"], told["credit"], told["copies"]) == ("18.50", "22.20", 10)
    assert unit["reason"] == "no_price"
    assert "The market price of a Near Mint copy is $10.00." in jaguar["explanation"]


async def test_an_offer_goes_from_a_collection_into_stock(shop, products):
    """The whole way of a box over HTTP: a file, a row to choose, an offer, a count that differs,
    money, drafts, and the lots of cards that are listed and of one that is listed later.
    """
    owner = await signed_in(shop)
    await buys(owner)
    found = await brought(shop, a_file(products))
    rare = products.ids["Twin Blade 9"]
    path = f"/api/buying/collections/{found['id']}"
    await owner.post(f"{path}/choices", json={"choices": [{"row": 4, "product_id": rare}]})
    answer = await owner.post("/api/buying/offers", json={"collection_id": found["id"]})
    assert answer.status_code == 201, answer.text
    offer = answer.json()
    assert (offer["source"], offer["totals"]["copies"], offer["totals"]["cash"]) == (
        "collection", 4, "18.50",
    )  # fmt: skip
    lines = offer["lines"]
    assert [(x["copies"], x["cash_each"]) for x in lines] == [
        (1, "5.00"), (3, "4.50"), (4, None), (2, None),
    ]  # fmt: skip
    offer = await done(owner, offer, "offer")
    offer = await done(owner, offer, "accept", way="cash")
    worse = {"id": lines[1]["id"], "copies": 2, "condition": "LP"}
    offer = await done(owner, offer, "receive", lines=[worse])
    assert offer["lines"][1]["received"]["cash_each"] == "3.82"
    offer = await done(owner, offer, "pay")
    assert (offer["paid_cash"], offer["paid_credit"]) == ("12.64", "0.00")
    offer = await done(owner, offer, "stock")
    entries = (await owner.get("/api/quick_add")).json()["entries"]
    made = {x["id"]: (x["condition"], x["quantity"], x["cost"], x["status"]) for x in entries}
    assert sorted(made.values()) == [("LP", 2, "3.82", "draft"), ("NM", 1, "5.00", "draft")]
    [lot] = (await owner.get("/api/buying/lots")).json()["lots"]
    assert (lot["marketplace_id"], lot["quantity"], lot["cost"]) == (77, 1, "5.00")
    assert (lot["source"], lot["source_id"]) == ("offer", offer["id"])
    [new] = [x["id"] for x in entries if x["condition"] == "LP"]
    priced = await owner.send("PATCH", f"/api/quick_add/{new}", json={"price": "8.00"})
    assert priced.status_code == 200, priced.text
    answer = await owner.post("/api/quick_add/publish", json={"ids": list(made)})
    assert answer.status_code == 200, answer.text
    usual = {"name": "Alacrian Jaguar", "set": products.set_name, "number": "152"}
    rows = [
        a_row(77, market="10.00", quantity=4, **usual),
        a_row(78, market="8.00", quantity=2, condition="Lightly Played", **usual),
    ]
    await served(shop)
    await shop.import_csv(a_csv(*rows))
    await into_stock.give_late_lots(shop.service.database, clock.now())
    lots = (await owner.get("/api/buying/lots")).json()["lots"]
    assert [(x["marketplace_id"], x["quantity"], x["cost"]) for x in lots] == [
        (78, 2, "3.82"), (77, 1, "5.00"),
    ]  # fmt: skip


async def test_what_a_file_says_is_not_asked(a_seller, service, tmp_path):
    """Two printings of a card, each as Normal and as Foil. Where set and number are said, a Normal
    card is found; where only the name is, no Foil is offered for it.
    """
    name = f"Quiet Praetor {uuid.uuid4().hex[:6]}"
    cards = [
        {"product_name": name, "number": number, "finish": finish}
        for number in ("107", "290")
        for finish in ("Normal", "Foil")
    ]
    products = await a_catalog(service, tmp_path, *cards)
    shop = await a_seller(lines=["magic"])
    head = "Name,Set code,Set name,Collector number,Foil,Rarity,Quantity,ManaBox ID,Scryfall ID"
    code = products.set_code
    data = [
        f"{head},Purchase price,Misprint,Altered,Condition,Language,Purchase price currency",
        f"{name},{code},{products.set_name},107,normal,mythic,1,1,,,false,false,near_mint,en,USD",
        f"{name},,,,normal,mythic,1,1,,,false,false,near_mint,en,USD",
        f"{name},,,,foil,mythic,1,1,,,false,false,near_mint,en,USD",
    ]
    found = await brought(shop, "\n".join(data).encode())
    assert (found["matched"], found["waiting"]) == (1, 2), found
    path = f"/api/buying/collections/{found['id']}/waiting"
    waiting = (await shop.get(path)).json()["rows"]
    offered = [{(x["number"], x["finish"]) for x in row["candidates"]} for row in waiting]
    assert offered == [
        {("107", "Normal"), ("290", "Normal")},
        {("107", "Foil"), ("290", "Foil")},
    ]


async def test_the_same_file_is_one_collection_whoever_brings_it_at_once(shop, products):
    data = a_file(products)
    answers = await asyncio.gather(
        *(shop.post("/api/buying/collections", content=data) for _ in range(4))
    )
    assert {answer.status_code for answer in answers} == {202}
    [one] = {answer.json()["id"] for answer in answers}
    await asyncio.gather(shop.service.run_jobs(), shop.service.run_jobs())
    assert (await collection(shop, one))["state"] == "done"
    again = await brought(shop, data, "another name.csv")
    assert (again["id"], again["rows"]) == (one, 3)
    listed = (await shop.get("/api/buying/collections")).json()
    assert [row["id"] for row in listed["collections"]] == [one]


async def test_ids_find_what_texts_do_not(shop, products):
    head = "Name,Set code,Set name,Collector number,Foil,Quantity,ManaBox ID,Scryfall ID,Condition"
    code = products.set_code
    data = f"{head}\nAnother Name,{code},,99,normal,1,5,{SCRYFALL},near_mint\n".encode()
    found = await brought(shop, data)
    assert (found["format"], found["matched"]) == ("manabox", 1)
    [row] = (await shop.get(f"/api/buying/collections/{found['id']}/rows")).json()["rows"]
    assert (row["product_id"], row["how"]) == (products.ids["Air Response Unit 7"], "scryfall_id")
    head = "Quantity,Name,Simple Name,Set,Card Number,Set Code,Printing,Condition,Product ID,SKU"
    data = (
        f"{head}\n1,X,X,{products.set_name},1,,Normal,Near Mint,990152,\n"
        f"1,Y,Y,,,,Foil,Damaged,,77\n"
    ).encode()
    found = await brought(shop, data)
    rows = (await shop.get(f"/api/buying/collections/{found['id']}/rows")).json()["rows"]
    jaguar = products.ids["Alacrian Jaguar 152"]
    # The SKU is exact: its condition and finish are those of the shop's card.
    assert [(row["product_id"], row["how"], row["condition"]) for row in rows] == [
        (jaguar, "product_id", "NM"),
        (jaguar, "sku", "NM"),
    ]


async def test_the_ids_of_other_markets_and_projects_are_certain_whatever_the_set(
    shop, service, tmp_path
):
    number = uuid.uuid4().int % 10**12
    known = await a_catalog(
        service,
        tmp_path,
        {
            "product_name": "Opt", "number": "65", "finish": "Foil",
            "cardmarket_id": str(number), "cardtrader_id": str(number + 1),
            "mtgjson_id": f"{number:x}-of-mtgjson",
        },
        {"product_name": "Opt", "number": "65", "finish": "Normal", "cardmarket_id": str(number)},
    )  # fmt: skip
    sql = "SELECT id, finish FROM product WHERE set_name = :name"
    ids = {one["finish"]: one["id"] for one in await service.sql(1, sql, name=known.set_name)}
    head = "Quantity,Name,Set Name,Foil,Condition"
    for column, id, how in (
        ("Cardmarket ID", number, "cardmarket_id"),
        ("CardTrader ID", number + 1, "cardtrader_id"),
        ("MTGJSON ID", f"{number:x}-OF-mtgjson", "mtgjson_id"),
    ):
        data = f"{head},{column}\n1,Opt,Nowhere,foil,NM,{id}\n1,Opt,Nowhere,,NM,{id}\n".encode()
        found = await brought(shop, data, f"{how}.csv")
        assert found["columns"][how] == column
        path = f"/api/buying/collections/{found['id']}/columns"
        await shop.http.put(path, json={"columns": found["columns"]})
        await shop.service.run_jobs()
        rows = (await shop.get(f"/api/buying/collections/{found['id']}/rows")).json()["rows"]
        assert (rows[0]["product_id"], rows[0]["certainty"], rows[0]["how"]) == (
            ids["Foil"], "certain", how
        )  # fmt: skip
        expected = ids["Normal"] if how == "cardmarket_id" else None
        assert rows[1]["product_id"] == expected


async def test_plain_text_matches_by_name_and_leaves_ties(shop, products):
    text = (
        f"2 Alacrian Jaguar ({products.set_code}) 152\n1 Twin Blade ({products.set_code})\n--\n"
        f"Air Response Unit ({products.set_code})\n"
    )
    found = await brought(shop, text.encode(), "list.txt")
    assert (found["format"], found["matched"], found["waiting"]) == ("text", 2, 2)
    path = f"/api/buying/collections/{found['id']}"
    rows = (await shop.get(f"{path}/rows")).json()["rows"]
    assert [(row["certainty"], row["how"]) for row in rows] == [
        ("certain", "set_and_number"), ("possible", "name"), (None, None), ("probable", "name"),
    ]  # fmt: skip
    blade, strange = (await shop.get(f"{path}/waiting")).json()["rows"]
    assert [one["number"] for one in blade["candidates"][:2]] == ["8", "9"]
    assert (strange["text"], strange["reason"]) == ("--", "must be like “4 Name (SET) 123”")
    assert found["rejected"] == [{"line": 3, "column": "", "reason": strange["reason"]}]


async def test_a_row_that_was_not_read_keeps_its_text_and_is_settled_by_hand(shop, products):
    head = (
        "Folder Name,Quantity,Trade Quantity,Card Name,Set Code,Set Name,Card Number,Condition,"
        "Printing,Language,Price Bought,Date Bought"
    )
    code, name = products.set_code, products.set_name
    lines = [
        f"A,1,0,Air Response Unit,{code},{name},7,NearMint,Surge Foil,English,,",
        f"A,1,0,Air Response Unit,{code},{name},7,NearMint,Shiny,English,,",
        f"A,1,0,Alacrian Jaguar,{code},{name},152,Chewed,Normal,English,,",
        f"A,1,0,Alacrian Jaguar,{code},{name},152,NearMint,Normal,Klingon,,",
        f"A,two,0,Alacrian Jaguar,{code},{name},152,NearMint,Normal,English,,",
        f"A,0,0,Alacrian Jaguar,{code},{name},152,NearMint,Normal,English,,",
        f"A,3,0,Alacrian Jaguar,{code},{name},152,Chewed,Normal,English,1.00,",
    ]
    found = await brought(shop, "\n".join([head, *lines]).encode())
    assert (found["rows"], found["matched"], found["waiting"], found["empty"]) == (6, 1, 5, 1)
    assert [one["line"] for one in found["rejected"]] == [6]
    path = f"/api/buying/collections/{found['id']}"
    waiting = (await shop.get(f"{path}/waiting")).json()["rows"]
    assert [(row["line"], row["reason"]) for row in waiting] == [
        (3, "Printing: 'Shiny' is not a known finish"),
        (4, "Condition: 'Chewed' is not a known condition"),
        (5, "Language: 'Klingon' is not a known language"),
        (6, "Quantity: must be a whole number, not 'two'"),
        (8, "Condition: 'Chewed' is not a known condition"),
    ]
    assert [row["alike"] for row in waiting] == [1, 2, 1, 1, 2]
    assert waiting[0]["text"].startswith("A | 1 | 0 | Air Response Unit")
    unit, jaguar = products.ids["Air Response Unit 7"], products.ids["Alacrian Jaguar 152"]
    assert [row["candidates"][0]["product_id"] for row in waiting] == [unit, *[jaguar] * 4]
    owner = await signed_in(shop)
    page = (await owner.get(f"/buying/collections/{found['id']}")).text
    assert "is not a known finish" in page
    assert "A | 1 | 0 | Air Response Unit" in page
    form = {"row": "3", "product_id": str(unit), "condition": "LP", "finish": "Foil"}
    await owner.form(f"/buying/collections/{found['id']}/choose", **form)
    choices = [
        {"row": 4, "product_id": jaguar},
        {"row": 5, "product_id": jaguar, "condition": "LP"},
        {"row": 6, "product_id": jaguar, "copies": 2},
    ]
    answer = await shop.post(f"{path}/choices", json={"choices": choices})
    assert answer.json() == {"settled": 4, "waiting": 0}
    rows = (await shop.get(f"{path}/rows")).json()["rows"]
    # The lowest condition stands for one that is not known, until another is chosen.
    said = [(row["finish"], row["condition"], row["language"], row["copies"]) for row in rows]
    assert said == [
        ("Foil", "NM", "English", 1), ("Foil", "LP", "English", 1),
        ("Normal", "DMG", "English", 1), ("Normal", "LP", "English", 1),
        ("Normal", "NM", "English", 2), ("Normal", "DMG", "English", 3),
    ]  # fmt: skip
    assert {row["reason"] for row in rows} == {""}


async def test_a_finish_that_nobody_says_is_valued_as_the_products_and_told(
    a_seller, service, tmp_path
):
    products = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Sol Ring", "number": "1", "finish": "Foil"},
        *({"product_name": "Mox", "number": "2", "finish": f"{kind} Foil"} for kind in "AB"),
    )
    shop = await a_seller(lines=["magic"])
    row = a_row(78, name="Sol Ring", set=products.set_name, number="1", market="10.00")
    await shop.import_csv(a_csv(row | {"Condition": "Near Mint Foil"}))
    owner = await signed_in(shop)
    await buys(owner)
    code = products.set_code
    text = f"1 Sol Ring ({code}) 1\n1 Mox ({code}) 2\n1 Mox ({code}) 2 foil\n"
    found = await brought(shop, text.encode(), "list.txt")
    assert (found["matched"], found["waiting"]) == (1, 2)
    page = f"/buying/collections/{found['id']}"
    assert "<bdi>finish not given</bdi>" in (await owner.get(page)).text
    # A choice gives the row the product's finish, and nobody said it even then.
    path = f"/api{page}"
    waiting = (await shop.get(f"{path}/waiting")).json()["rows"]
    assert [(one["finish"], one["finish_said"]) for one in waiting] == [
        ("", False), ("Foil", True)
    ]  # fmt: skip
    a_foil = waiting[0]["candidates"][0]["product_id"]
    choices = [{"row": row, "product_id": a_foil} for row in (2, 3)]
    answer = await shop.post(f"{path}/choices", json={"choices": choices})
    assert answer.json()["settled"] == 2
    told = await valued(shop, found["id"])
    assert [(one["finish"], one["finish_said"], one["cash"]) for one in told["rows"]] == [
        ("Foil", False, "5.00"), ("A Foil", False, None), ("Foil", True, None)
    ]  # fmt: skip
    assert (await owner.get(page)).text.count("(finish not given)") == 2


async def test_proxies_are_left_out_and_said_and_may_be_taken_after_all(shop, products):
    data = a_moxfield_file(
        {"name": "Alacrian Jaguar", "set_code": products.set_code, "number": "152"}
    )
    line = data.splitlines()[1].removesuffix(b",,,").decode()
    found = await brought(shop, data + f"{line},False,True,\r\n".encode())
    assert (found["matched"], found["left_out"], found["copies"]) == (1, 1, 4)
    assert found["left_out_for"] == [{"reason": "a proxy", "rows": 1}]
    path = f"/api/buying/collections/{found['id']}"
    [row] = (await shop.get(f"{path}/rows", params={"which": "left_out"})).json()["rows"]
    assert (row["line"], row["product_id"], row["reason"]) == (3, None, "a proxy")
    page = (await (await signed_in(shop)).get(f"/buying/collections/{found['id']}")).text
    assert "1 row was left out: a proxy" in page
    jaguar = products.ids["Alacrian Jaguar 152"]
    await shop.post(f"{path}/choices", json={"choices": [{"row": 3, "product_id": jaguar}]})
    assert (await collection(shop, found["id"]))["copies"] == 8


async def test_a_line_with_regular_and_foil_copies_is_two_rows(shop, products):
    head = "Reg Qty,Foil Qty,Name,Set,Acquired,Language"
    lines = [
        f"1,2,Alacrian Jaguar,{products.set_name},1,EN",
        f"0,1,Air Response Unit,{products.set_name},1,EN",
    ]
    found = await brought(shop, "\n".join([head, *lines]).encode())
    assert (found["format"], found["matched"], found["copies"]) == ("echomtg", 3, 4)
    rows = (await shop.get(f"/api/buying/collections/{found['id']}/rows")).json()["rows"]
    assert [(row["line"], row["finish"], row["copies"], row["certainty"]) for row in rows] == [
        (2, "Normal", 1, "probable"), (2, "Foil", 2, "probable"), (3, "Foil", 1, "probable"),
    ]  # fmt: skip


async def test_columns_of_an_unknown_file_are_proposed_and_kept(shop, products):
    head = "Menge;Titel der Karte;Serie;Nr"
    data = f"{head}\n2;Alacrian Jaguar;{products.set_name};152\n".encode()
    found = await brought(shop, data)
    assert (found["state"], found["columns"]) == (
        "needs_columns",
        {"copies": "Menge", "name": "Titel der Karte", "number": "Nr"},
    )
    named = found["columns"] | {"set_name": "serie"}
    path = f"/api/buying/collections/{found['id']}/columns"
    wrong = await shop.http.put(path, json={"columns": {"name": "Nobody"}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_payload")
    answer = await shop.http.put(path, json={"columns": named})
    assert answer.status_code == 200, answer.text
    await shop.service.run_jobs()
    assert (await collection(shop, found["id"]))["matched"] == 1
    other = f"Nr;{head.removesuffix(';Nr')}\n152;1;Alacrian Jaguar;{products.set_name}\n"
    assert (await brought(shop, other.encode()))["matched"] == 1


async def test_staff_choose_and_only_the_owner_deletes(shop, products):
    found = await brought(shop, a_file(products))
    bea = await joined(shop, f"bea-{shop.email}")
    path = f"/api/buying/collections/{found['id']}"
    answer = await bea.post(f"{path}/choices", json={"choices": [{"row": 4}]})
    assert answer.json() == {"settled": 1, "waiting": 0}
    assert (await bea.send("DELETE", path)).json()["code"] == "owner_required"
    owner = await signed_in(shop)
    assert (await owner.send("DELETE", path)).status_code == 200
    assert (await shop.get(path)).status_code == 404


async def test_another_shop_sees_nothing(shop, products, a_seller):
    found = await brought(shop, a_file(products))
    other = await a_seller(lines=["magic"])
    for part in ("", "/rows", "/waiting", "/value"):
        answer = await other.get(f"/api/buying/collections/{found['id']}{part}")
        assert answer.status_code == 404

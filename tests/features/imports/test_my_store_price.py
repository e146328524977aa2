"""A card without a TCG Marketplace Price: My Store Price is its price in all that is said and
counted of it. The marketplace has none, so the price file brings it one.
"""

from __future__ import annotations

import re
from decimal import Decimal

from browsers import signed_in
from builders import HEADER, a_csv, a_row, read_csv
from cards_builder import explained, found
from cardsync.platform import clock
from rollbacks_builder import repriced
from world import exported

OWN = "My Store Price"


def a_file(*rows: dict[str, str]) -> bytes:
    return a_csv(*rows, header=[*HEADER, OWN])


def in_my_store(id: int, own: str, **cells: str) -> dict[str, str]:
    return a_row(id, **{"market": "5.00", "price": "", OWN: own} | cells)


async def a_card(seller) -> dict[str, str | None]:
    [card] = await seller.cards()
    return {name: card[name] and str(card[name]) for name in ("price", "target_price")}


async def test_the_next_run_prices_from_the_same_price_as_the_sync(a_seller):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_file(in_my_store(1, "3.21")))
    assert await a_card(seller) == {"price": "3.2100", "target_price": "3.6900"}
    await repriced(seller)
    assert await a_card(seller) == {"price": "3.2100", "target_price": "3.6900"}
    told = await explained(seller)
    assert (told["current_price"], told["target_price"]) == ("3.21", "3.69")
    assert await exported(seller) == {1: "3.6900"}


async def test_it_counts_and_is_found_as_a_price(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_file(in_my_store(1, "3.21", quantity="2"), in_my_store(2, "")))
    assert await found(seller, "is:priced") == [1]
    assert await found(seller, "is:unpriced") == [2]
    assert await found(seller, "price=3.21") == [1]
    [listed] = await seller.service.sql(
        seller.id, "SELECT listed FROM listed_value WHERE seller_id = :id", id=seller.id
    )
    assert listed["listed"] == Decimal("6.42")
    preview = (await seller.post("/api/pricing/preview", json={})).json()
    assert preview["listed_value_before"] == "6.42"


async def test_the_marketplaces_price_goes_first(a_seller):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_file(in_my_store(1, "3.21", price="4.00")))
    assert await a_card(seller) == {"price": "4.0000", "target_price": "4.6000"}
    await seller.import_csv(a_file(in_my_store(1, "3.21", price="0")))
    # The day began with 4.00.
    assert await a_card(seller) == {"price": "3.2100", "target_price": "4.6000"}


async def test_a_target_like_it_is_exported_until_the_marketplace_has_it(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_file(in_my_store(1, "4.95")))
    assert await a_card(seller) == {"price": "4.9500", "target_price": "4.9500"}
    assert (report["changed"], await exported(seller)) == (1, {1: "4.9500"})
    file = (await seller.get("/api/pricing/updates.csv")).content
    assert [row["TCG Marketplace Price"] for row in read_csv(file)] == ["4.9500"]
    same = await seller.import_csv(a_file(in_my_store(1, "4.95")))
    assert same["changed"] == 1
    listed = await seller.import_csv(a_file(in_my_store(1, "4.95", price="4.95")))
    assert (listed["changed"], await exported(seller)) == (0, {})
    # It was taken from the marketplace again.
    blank = await seller.import_csv(a_file(in_my_store(1, "4.95")))
    assert (blank["changed"], await exported(seller)) == (1, {1: "4.9500"})
    await repriced(seller)
    assert await exported(seller) == {1: "4.9500"}


async def test_an_imported_price_is_the_marketplaces(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_file(in_my_store(1, "4.95"), in_my_store(2, "3.00")))
    told = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 2,
        "rows": [
            {"marketplace_id": 1, "old_price": None, "new_price": "4.95"},
            {"marketplace_id": 2, "old_price": None, "new_price": "4.95"},
        ],
    }
    answer = await seller.post("/api/v1/repricing_events", json=told)
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()
    await seller.fingerprint_is_right()
    assert [str(card["price"]) for card in await seller.cards()] == ["4.9500", "4.9500"]
    assert await exported(seller) == {}


async def test_the_price_files_page_tells_of_prices_that_come_to_the_marketplace(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_file(in_my_store(1, "4.95"), in_my_store(2, "3.00"), in_my_store(3, ""))
    )
    page = (await (await signed_in(seller)).get("/sync/prices")).text
    told = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert "1 price to raise by $1.95, 0 to lower, 2 cards without a price before" in told
    assert "$3.00 $4.95" in told
    assert "$4.95 $4.95 first price" in told

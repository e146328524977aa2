"""Customers with notes, and the desk of returns: copies of refunded orders go back to their slots."""

from __future__ import annotations

import asyncio
from datetime import date

import psycopg
import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop, undo_newest
from cards_builder import card_ids, on_shelf
from cardsync.platform.database.urls import libpq_url
from cardsync.sales.orders.customer_list import key_of
from cardsync.sales.orders.returned_copies import TO_RESTOCK
from orders_builder import an_item, an_order, keep_sums

HOSTILE = '<script>alert("Some Buyer")</script>'


async def customers(seller):
    found = (await seller.get("/api/customers")).json()["customers"]
    return {row["buyer_name"]: row for row in found}


@pytest.mark.parametrize("kept", [False, True], ids=["counted", "kept"])
async def test_a_customer_has_the_sums_of_the_list_and_the_newest_orders(a_seller, kept):
    seller = await a_seller()
    await an_order(seller, buyer_name="Some Buyer", total_amt=5, order_date=date(2026, 7, 1))
    await an_order(seller, buyer_name="SOME BUYER", total_amt=3, order_date=date(2026, 7, 3),
                   refund_amt=1)  # fmt: skip
    await an_order(seller, buyer_name=HOSTILE, total_amt=9, order_date=date(2026, 7, 2))
    await an_order(seller)
    if kept:
        await keep_sums(seller)
    rows = await customers(seller)
    for name, row in rows.items():
        told = (await seller.get(f"/api/customers/{row['key']}")).json()
        assert row.items() <= told.items()
        assert told["buyer_name"] == name
    nobody = await seller.service.sql(seller.id, "SELECT hashtextextended('', 0) AS name")
    assert (await seller.get(f"/api/customers/{key_of(nobody[0]['name'])}")).status_code == 404
    told = (await seller.get(f"/api/customers/{rows['SOME BUYER']['key']}")).json()
    assert (told["order_count"], told["lifetime_total"], told["returning"]) == (2, "8.00", True)
    assert (told["refunded_orders"], told["refunded_total"]) == (1, "1.00")
    assert told["repeat_refunder"] is False
    assert [order["order_date"] for order in told["orders"]] == ["2026-07-03", "2026-07-01"]
    for key in ("none", "0" * 16, "ZZZZZZZZZZZZZZZZ", "+000000000000000"):
        answer = await seller.get(f"/api/customers/{key}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_note_is_written_undone_and_seen_by_no_other_seller(a_seller):
    seller, other = await a_seller(), await a_seller()
    for each in (seller, other):
        await an_order(each, buyer_name="Some Buyer", total_amt=5)
    key = (await customers(seller))["Some Buyer"]["key"]
    path = f"/api/customers/{key}"
    staff = await joined(seller, f"staff-{seller.email}")
    for text in (HOSTILE, " Pays late. "):
        answer = await staff.send("PUT", f"{path}/note", json={"note": text})
        assert answer.json() == {"key": key, "note": text.strip()}
    assert (await seller.get(path)).json()["note"] == "Pays late."
    assert (await other.get(path)).json()["note"] == ""
    assert (await undo_newest(seller, "customer.noted")).status_code == 200
    assert (await seller.get(path)).json()["note"] == HOSTILE
    await seller.http.put(f"{path}/note", json={"note": ""})
    assert (await seller.get(path)).json()["note_updated_at"] is None
    for body, told in (({"note": 1}, "must be text"), ({"note": "x" * 2001}, "at most 2000")):
        answer = await seller.http.put(f"{path}/note", json=body)
        assert answer.status_code == 422
        assert f"note: must {'have ' if 'most' in told else ''}" in answer.json()["error"]
    found = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert not any("Some Buyer" in entry["summary"] for entry in found)


@pytest.fixture
async def shop(a_seller):
    """A refunded order of two of card 1, which is in 1-4, and one of card 2, on no shelf."""
    seller = await a_shop(a_seller, *(a_row(number, quantity=3) for number in (1, 2)))
    browser, ids = await signed_in(seller), await card_ids(seller)
    body = {"card_id": ids[1], "box": 1, "slot": 4, "quantity": 3}
    assert (await browser.post("/api/shelves/put", json=body)).status_code == 200
    order = await an_order(seller, buyer_name="Some Buyer", total_amt=5, refund_amt=5)
    for number, quantity in ((1, 2), (2, 1)):
        await an_item(
            seller, order, sku_id=number, quantity=quantity, product_name=f"{HOSTILE}{number}"
        )
    return seller, browser, ids, order


async def test_copies_go_back_to_their_slot_and_are_taken_out_again(shop):
    seller, browser, ids, order = shop
    await an_order(seller, buyer_name="Another")
    desk = (await seller.get("/api/returns")).json()
    assert (desk["total"], desk["total_pages"]) == (1, 1)
    [row] = desk["returns"]
    assert (row["order_id"], row["refund_amt"], row["restocked_at"]) == (order, "5.00", None)
    assert [
        (item["card_id"], item["quantity"], item["location_code"]) for item in row["items"]
    ] == [
        (ids[1], 2, "1-4"),
        (ids[2], 1, None),
    ]
    before = await seller.cards()
    answer = await browser.post(f"/api/returns/{order}/restocked", json={})
    assert answer.status_code == 200, answer.text
    assert answer.json()["put"] == [{"card_id": ids[1], "location_code": "1-4", "quantity": 2}]
    assert [item["card_id"] for item in answer.json()["left"]] == [ids[2]]
    assert await on_shelf(browser) == {(ids[1], 4): 5}
    assert await seller.cards() == before
    # The copy without a place stays open work, and nothing is put back twice.
    again = await browser.post(f"/api/returns/{order}/restocked", json={})
    assert (again.status_code, again.json()["put"]) == (200, [])
    [row] = (await seller.get("/api/returns")).json()["returns"]
    assert [(item["card_id"], item["quantity"]) for item in row["items"]] == [(ids[2], 1)]
    assert (await seller.get("/api/returns?restocked=true")).json()["total"] == 0
    place = {"card_id": ids[2], "box": 1, "slot": 9, "quantity": 1}
    answer = await browser.post(f"/api/returns/{order}/restocked", json={"places": [place]})
    assert (answer.status_code, answer.json()["left"]) == (200, [])
    again = await browser.post(f"/api/returns/{order}/restocked", json={})
    assert (again.status_code, again.json()["code"]) == (409, "already_restocked")
    assert (await seller.get("/api/returns")).json()["total"] == 0
    assert (await seller.get("/api/returns?restocked=true")).json()["total"] == 1
    assert (await undo_newest(seller, "order.restocked")).status_code == 200
    assert await on_shelf(browser) == {(ids[1], 4): 5}
    assert (await seller.get("/api/returns")).json()["total"] == 1


@pytest.mark.parametrize(
    ("refund", "asks"),
    [
        ({"refund_amt": 5, "refund_type": "full"}, True),
        ({"refund_amt": 5}, True),
        ({"refund_amt": 1, "refund_type": "partial"}, False),
        ({"refund_amt": 1}, False),
        ({"refund_amt": 5, "refund_type": "partial", "refund_reason": "Bent corner"}, False),
        ({"refund_amt": 1, "refund_type": "partial", "refund_reason": "Card returned"}, True),
        ({"refund_amt": 0, "refund_type": "full"}, True),
    ],
    ids=str,
)
async def test_only_full_refunds_and_returns_ask_to_restock(a_seller, refund, asks):
    seller = await a_seller()
    order = await an_order(seller, product_amt=5, total_amt=6, **refund)
    await an_item(seller, order, sku_id=1)
    assert (await seller.get("/api/returns")).json()["total"] == asks
    page = (await (await signed_in(seller)).get("/returns")).text
    assert ("buyer kept the cards" in page) != asks


async def test_copies_go_where_the_seller_says_but_no_more_than_were_sold(shop):
    seller, browser, ids, order = shop
    path = f"/api/returns/{order}/restocked"
    place = {"card_id": ids[2], "box": 1, "slot": 9, "quantity": 2}
    refused = await browser.post(path, json={"places": [place]})
    assert refused.status_code == 422
    assert f"fewer than 2 of card {ids[2]} left" in refused.json()["error"]
    answer = await browser.post(path, json={"places": [place | {"quantity": 1}]})
    assert answer.status_code == 200, answer.text
    assert await on_shelf(browser) == {(ids[1], 4): 3, (ids[2], 9): 1}
    await browser.post("/api/shelves/remove", json={"card_id": ids[2], "box": 1, "slot": 9})
    undone = await undo_newest(seller, "order.restocked")
    assert (undone.status_code, undone.json()["code"]) == (409, "changed_since")


async def test_two_who_restock_at_once_put_the_copies_back_once(shop):
    seller, browser, ids, order = shop
    path = f"/api/returns/{order}/restocked"
    answers = await asyncio.gather(browser.post(path, json={}), seller.post(path, json={}))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(len(answer.json()["put"]) for answer in answers) == [0, 1]
    assert await on_shelf(browser) == {(ids[1], 4): 5}


async def test_an_order_that_is_not_refunded_is_no_return(shop):
    seller, _, _, _ = shop
    other = await an_order(seller)
    answer = await seller.post(f"/api/returns/{other}/restocked", json={})
    assert answer.status_code == 422
    assert answer.json()["error"] == f"order {other} is not refunded"
    assert (await seller.post("/api/returns/999999999/restocked", json={})).status_code == 404


async def test_those_who_send_back_again_and_again_are_told(shop):
    seller, *_ = shop
    await an_order(seller, buyer_name="some buyer", total_amt=5, refund_amt="2.50")
    await an_order(seller, buyer_name="Another", total_amt=5, refund_amt="2.50")
    await an_order(seller, refund_amt="2.50")
    await an_order(seller, refund_amt="2.50")
    [told] = (await seller.get("/api/returns/customers")).json()["customers"]
    assert (told["refunded_orders"], told["refunded_total"]) == (2, "7.50")
    assert (await seller.get(f"/api/customers/{told['key']}")).json()["repeat_refunder"] is True


SHIPPED = """
    INSERT INTO orders (seller_id, order_number, order_date, status, total_amt, refund_amt,
                        refund_type)
    SELECT :seller, 'O-' || n, DATE '2024-01-01' + n / 10, 'Shipped - In Transit', 5, 5, 'full'
      FROM generate_series(1, 3000) n
"""


async def test_the_number_in_the_frame_does_not_read_orders_that_were_shipped(a_seller, owner_url):
    seller = await a_seller()
    await seller.service.sql(seller.id, SHIPPED, seller=seller.id)
    await an_order(seller, status="Cancelled", refund_amt=2, refund_type="full")
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE orders")
    counted = await seller.service.sql(seller.id, TO_RESTOCK, seller=seller.id)
    assert [row["count"] for row in counted] == [1]
    asked = f"EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off) {TO_RESTOCK}"
    rows = await seller.service.sql(seller.id, asked, seller=seller.id)
    plan = "\n".join(row["QUERY PLAN"] for row in rows)
    assert "ix_orders_to_restock" in plan
    assert "ix_orders_refunded" not in plan

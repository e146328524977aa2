"""Order-data uploads over HTTP: what is refused, what is durable, and what the four of them leave
behind.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import itertools
import json
import zipfile
from decimal import Decimal

import pytest
from sqlalchemy import text

from browsers import signed_in
from builders import a_csv, a_row, an_order
from cardsync.platform import limits
from cardsync.sales.orders import ingest
from cardsync.sales.orders.apply import LOOKED_UP
from cardsync.sales.orders.refunds import refund_amount, refund_amount_sql
from cardsync.sales.orders.shipping_type import shipping_type, shipping_type_sql

UPLOADS = ("/orders", "/order_refunds", "/order_items", "/orders/shipping")
ALL = (*UPLOADS, "/order_feedbacks")


async def written(seller) -> int:
    """Versions of rows ever written; an upload that writes nothing leaves it as it is."""
    [row] = await seller.service.sql(
        seller.id,
        "SELECT (SELECT coalesce(sum(xmin::text::bigint), 0) FROM orders WHERE seller_id = :id)"
        " + (SELECT coalesce(sum(xmin::text::bigint + id), 0) FROM order_item"
        " WHERE seller_id = :id) AS n",
        id=seller.id,
    )
    return row["n"]


@pytest.mark.day
async def test_an_order_is_accepted_and_then_there(a_seller):
    seller = await a_seller()
    answer = await seller.send("/orders", [an_order("A-1"), an_order("A-2")])
    assert answer.status_code == 202
    assert answer.json() == {
        "status": "accepted",
        "count": 2,
        "upload_id": answer.json()["upload_id"],
    }
    assert await seller.stored_orders() == []
    queued = await seller.report(answer.json()["upload_id"])
    assert (queued["stream"], queued["state"]) == ("orders", "queued")
    await seller.service.run_jobs()
    first, second = await seller.stored_orders()
    assert (first["order_number"], second["order_number"]) == ("A-1", "A-2")
    assert (first["buyer_name"], str(first["order_date"]), first["status"]) == (
        "Some Buyer",
        "2026-07-03",
        "Completed - Paid",
    )
    assert [str(first[name]) for name in ("product_amt", "shipping_amt", "total_amt")] == [
        "10.5",
        "1.31",
        "11.81",
    ]
    assert (first["status_group"], first["shipping_type"]) == ("Completed - Paid", "pwe")
    # Midnight in New York.
    assert first["order_placed_at"].isoformat() == "2026-07-03T04:00:00+00:00"


async def test_the_report_has_exactly_the_decided_shape(a_seller):
    seller = await a_seller()
    report = await seller.orders(
        [an_order("A-1", total_amt="abc"), an_order("A-1"), an_order("A-2")]
    )
    assert set(report) == {
        "id", "stream", "state", "received_at", "finished_at", "rows", "applied", "skipped",
        "duplicates", "rejected_count",
        "rejected", "error",
    }  # fmt: skip
    shown = ("state", "rows", "applied", "skipped", "duplicates", "error")
    assert {name: report[name] for name in shown} == {
        "state": "done", "rows": 3, "applied": 2, "skipped": 0, "duplicates": 1, "error": None,
    }  # fmt: skip
    assert report["rejected_count"] == 1
    [rejected] = report["rejected"]
    assert set(rejected) == {"row", "column", "code", "message"}
    assert (rejected["row"], rejected["column"], rejected["code"]) == (1, "total_amt", "bad_number")


@pytest.mark.parametrize("path", UPLOADS)
@pytest.mark.parametrize(
    "claimed", ["application/json", "application/gzip", "application/octet-stream", ""]
)
@pytest.mark.parametrize("gzipped", [True, False])
async def test_gzip_or_plain_whatever_the_content_type_claims(a_seller, path, claimed, gzipped):
    seller = await a_seller()
    body = json.dumps([{"order_number": "A-1"}]).encode()
    content = gzip.compress(body) if gzipped else body
    answer = await seller.post(
        f"/api/v1{path}", content=content, headers={"Content-Type": claimed} if claimed else {}
    )
    assert answer.status_code == 202, answer.text
    assert answer.json()["count"] == 1


@pytest.mark.parametrize("path", ALL)
@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 422, "invalid_json"),
        (b"{", 422, "invalid_json"),
        (b"\x1f\x8b", 422, "invalid_gzip"),
        (gzip.compress(b'[{"order_number": "A"}]')[:-5], 422, "invalid_gzip"),
        (gzip.compress(b'[{"order_number": "A"}]') + b"more", 422, "invalid_gzip"),
        (gzip.compress(b"nonsense"), 422, "invalid_json"),
        (b'{"order_number": "A"}', 422, "invalid_payload"),
        (b"[]", 422, "empty_payload"),
        (gzip.compress(b"[]"), 422, "empty_payload"),
        (b" " * (limits.BODY_WIRE_BYTES + 1), 413, "payload_too_large"),
        (gzip.compress(b" " * (limits.BODY_INFLATED_BYTES + 1)), 413, "decompressed_too_large"),
    ],
    ids=["empty", "malformed", "two bytes", "truncated", "followed", "gzip of nonsense", "object",
         "no rows", "no rows, gzip", "wire", "inflated"],
)  # fmt: skip
async def test_a_body_is_refused_with_its_code(a_seller, path, content, status, code):
    seller = await a_seller()
    answer = await seller.send(path, content)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (
        await seller.service.sql(
            seller.id, "SELECT FROM upload WHERE seller_id = :id", id=seller.id
        )
        == []
    )


@pytest.mark.parametrize("path", UPLOADS)
async def test_a_row_of_the_wrong_shape_is_named(a_seller, path):
    seller = await a_seller()
    for rows, words in (
        ([{"order_number": "A"}, []], "row 2 is not an object"),
        ([{"order_number": "A"}, {"status": "Paid"}], "row 2: order_number is missing"),
        ([{"order_number": None}], "row 1: order_number is not a string"),
        ([{"order_number": "  "}], "row 1: order_number is blank"),
    ):
        answer = await seller.send(path, rows)
        assert (answer.status_code, answer.json()) == (
            422,
            {"error": words, "code": "invalid_payload"},
        )


@pytest.mark.parametrize("path", UPLOADS)
async def test_one_row_too_many(a_seller, path):
    seller = await a_seller()
    row = b'{"order_number":"A"}'
    answer = await seller.send(path, b"[" + row + (b"," + row) * 50_000 + b"]")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many_rows")


async def test_another_media_type_is_refused(a_seller):
    seller = await a_seller()
    answer = await seller.send("/orders", [an_order()], **{"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.day
async def test_the_same_again_writes_nothing(a_seller):
    seller = await a_seller()
    orders = [an_order("A-1"), an_order("A-2", total_amt=99)]
    refunds = [{"order_number": "A-2", "total_amt": "3.00", "refund_type": "partial"}]
    items = [
        {"order_number": "A-1", "sku_id": 1, "quantity": 2, "unit_price": "1.50"},
        {"order_number": "A-1", "product_name": "loose"},
    ]
    shipping = [
        {
            "order_number": "A-1",
            "shipping_method": "Expedited",
            "item_count": 2,
            "product_weight": 0.14,
        }
    ]
    before = None
    for _ in range(3):
        for send, rows in (
            (seller.orders, orders),
            (seller.refunds, refunds),
            (seller.items, items),
            (seller.shipping, shipping),
        ):
            report = await send(rows)
            assert (report["applied"], report["skipped"]) == (len(rows), 0)
        now = await written(seller)
        assert before in (None, now)
        before = now
    reports = await seller.service.sql(
        seller.id,
        "SELECT (report->>'written')::int AS n FROM upload WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )
    # The order's sums are a row of their own.
    assert [row["n"] for row in reports] == [2, 1, 3, 1] + [0] * 8


async def test_absent_keeps_and_null_clears(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.orders(
        [{"order_number": "A-1", "status": "Shipped", "buyer_name": None, "total_amt": "no number"}]
    )
    order = await seller.stored_order("A-1")
    assert (order["status"], order["buyer_name"], str(order["total_amt"])) == (
        "Shipped",
        None,
        "11.81",
    )
    assert str(order["order_date"]) == "2026-07-03"


@pytest.mark.night
@pytest.mark.day
async def test_a_scale_is_stored_as_it_was_sent(a_seller):
    seller = await a_seller()
    for sent in ("1.5", "1.50", "1.5000", "2"):
        await seller.orders(b'[{"order_number": "A-1", "total_amt": %s}]' % sent.encode())
        assert str((await seller.stored_order("A-1"))["total_amt"]) == sent


@pytest.mark.parametrize(
    ("status", "group"),
    [("Canceled", "Cancelled"), ("Cancelled", "Cancelled"), (None, "Unknown"), ("", "Unknown"),
     ("Completed - Paid", "Completed - Paid")],
)  # fmt: skip
async def test_both_spellings_of_cancelled_are_one_group_and_none_is_unknown(
    a_seller, status, group
):
    seller = await a_seller()
    await seller.orders([an_order(status=status)])
    order = await seller.stored_order("A-1")
    assert (order["status"], order["status_group"]) == (status, group)


@pytest.mark.night
@pytest.mark.day
async def test_when_an_order_was_placed(a_seller):
    seller = await a_seller()

    async def placed(**fields):
        await seller.orders([{"order_number": "A-1", **fields}])
        moment = (await seller.stored_order("A-1"))["order_placed_at"]
        return moment and moment.isoformat()

    assert await placed(status="Paid") is None
    assert await placed(order_date="1/15/26") == "2026-01-15T05:00:00+00:00"
    assert await placed(order_placed_at="2026-01-15T20:30:00Z") == "2026-01-15T20:30:00+00:00"
    assert await placed(order_date="7/3/26") == "2026-01-15T20:30:00+00:00"
    assert await placed(order_placed_at=None) == "2026-07-03T04:00:00+00:00"
    assert await placed(order_date=None) is None


async def test_a_refund_enriches_its_order_and_leaves_the_orders_own_amounts(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1", buyer_name=None)])
    row = {
        "order_number": "A-1", "buyer_name": "Refunded Buyer", "order_date": "12/31/2020",
        "product_amt": "4.00", "shipping_amt": 0,
        "total_amt": 4.0, "status": "Refunded", "refund_type": "partial",
        "refund_origin": "Marketplace", "refund_reason": "damaged",
        "refund_note": "a note",
    }  # fmt: skip
    await seller.refunds([row])
    order = await seller.stored_order("A-1")
    assert [str(order[name]) for name in ("product_amt", "shipping_amt", "total_amt")] == [
        "10.5",
        "1.31",
        "11.81",
    ]
    assert [str(order[f"refund_{name}"]) for name in ("product_amt", "shipping_amt", "amt")] == [
        "4.00",
        "0",
        "4.0",
    ]
    # Only what was empty is filled.
    assert (order["buyer_name"], str(order["order_date"])) == ("Refunded Buyer", "2026-07-03")
    assert [order[f"refund_{name}"] for name in ("type", "origin", "reason", "note")] == [
        "partial",
        "Marketplace",
        "damaged",
        "a note",
    ]
    assert order["status"] == "Refunded"


async def test_a_refund_creates_an_order_that_nobody_named_and_its_own_upload_comes_later(a_seller):
    seller = await a_seller()
    report = await seller.refunds(
        [
            {
                "order_number": "A-1",
                "total_amt": "60.00",
                "status": "Refunded",
                "order_date": "2026-07-03",
            }
        ]
    )
    assert report["applied"] == 1
    order = await seller.stored_order("A-1")
    assert (str(order["total_amt"]), str(order["refund_amt"]), order["shipping_type"]) == (
        "60.00",
        "60.00",
        "tracked",
    )
    await seller.orders([an_order("A-1")])
    order = await seller.stored_order("A-1")
    assert (str(order["total_amt"]), str(order["refund_amt"]), order["shipping_type"]) == (
        "11.81",
        "60.00",
        "pwe",
    )


async def refunded(seller, number="A-1"):
    """Amount, type and origin of an order's refund; None where `refund=true` does not find it."""
    found = (await seller.get("/api/orders", params={"refund": "true"})).json()["orders"]
    told = {
        order["order_number"]: (order["refund_amt"], order["refund_type"], order["refund_origin"])
        for order in found
    }
    return told.get(number)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("row", "amount"),
    [
        ({"total_amt": "3.00", "product_amt": "1.00", "shipping_amt": "1.00"}, "3.00"),
        ({"total_amt": 0, "product_amt": "1.00"}, "0.00"),
        ({"product_amt": "4.00", "shipping_amt": "1.31", "refund_type": "partial"}, "5.31"),
        ({"product_amt": "4.125"}, "4.125"),
        ({"shipping_amt": "1.31", "refund_type": "full"}, "1.31"),
        ({"refund_type": "full"}, "11.81"),
        ({"refund_type": " Full "}, "11.81"),
        ({"refund_type": None}, "11.81"),
        ({}, "11.81"),
        ({"total_amt": None, "product_amt": "free"}, "11.81"),
        ({"refund_type": "partial"}, "0.00"),
        ({"refund_type": "PARTIAL "}, "0.00"),
        ({"product_amt": "99999999", "shipping_amt": "99999999", "refund_type": "partial"}, "0.00"),
    ],
    ids=str,
)
async def test_what_a_refund_comes_to_without_a_total(a_seller, row, amount):
    seller = await a_seller()
    await seller.orders([an_order("A-1"), an_order("A-2")])
    report = await seller.refunds([{"order_number": "A-1", "refund_origin": "marketplace", **row}])
    assert (report["state"], report["applied"]) == ("done", 1)
    kind = (row.get("refund_type") or "").strip().lower() or None
    assert await refunded(seller) == (amount, kind, "marketplace")
    assert await refunded(seller, "A-2") is None
    counted = (await seller.get("/api/orders", params={"refund": "true"})).json()
    assert (counted["total"], sum(counted["status_counts"].values())) == (1, 1)


@pytest.mark.day
async def test_a_refund_of_an_order_that_nobody_named_counts_from_the_first_moment(a_seller):
    seller = await a_seller()
    await seller.refunds(
        [{"order_number": "A-1", "refund_type": "full", "refund_origin": "payment processor"}]
    )
    assert await refunded(seller) == ("0.00", "full", "payment processor")
    # Its own upload comes later, and then again with another total.
    await seller.orders([an_order("A-1")])
    assert await refunded(seller) == ("11.81", "full", "payment processor")
    await seller.orders([an_order("A-1", total_amt="9.00", status="Refunded")])
    assert await refunded(seller) == ("9.00", "full", "payment processor")


@pytest.mark.night
@pytest.mark.day
async def test_what_was_said_of_a_refund_stays_until_it_is_said_anew(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    steps = [
        ({"product_amt": "2.00", "refund_type": "partial"}, "2.00"),
        ({"shipping_amt": "1.00"}, "3.00"),
        ({"total_amt": "2.50"}, "2.50"),
        ({"refund_note": "sorry"}, "2.50"),
        ({"product_amt": "9.00"}, "2.50"),
        ({"total_amt": None}, "10.00"),
        ({"product_amt": None, "shipping_amt": None}, "0.00"),
        ({"refund_type": "full"}, "11.81"),
    ]
    for row, amount in steps:
        await seller.refunds([{"order_number": "A-1", **row}])
        assert (await refunded(seller))[0] == amount, row
        again = await seller.refunds([{"order_number": "A-1", **row}])
        assert (again["applied"], (await refunded(seller))[0]) == (1, amount)


async def test_repeated_rows_of_one_upload_come_to_the_same(a_seller):
    seller = await a_seller()
    numbers = [f"A-{n}" for n in range(8)]
    await seller.orders([an_order(number) for number in numbers])
    await seller.refunds(
        [{"order_number": number, "product_amt": "1.00"} for number in numbers] * 2
    )
    assert {await refunded(seller, number) for number in numbers} == {("1.00", None, None)}


@pytest.mark.parametrize("kind", ["store credit", "", "fully", 1, ["full"]])
async def test_a_refund_of_another_type_has_none_and_is_reported(a_seller, kind):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.refunds([{"order_number": "A-1", "total_amt": "2.00", "refund_type": "Partial"}])
    rows = [
        {"order_number": number, "total_amt": 3, "refund_type": kind} for number in ("A-1", "B")
    ]
    report = await seller.refunds(rows)
    assert (report["applied"], report["rejected_count"]) == (2, 2)
    assert {one["column"] for one in report["rejected"]} == {"refund_type"}
    # Like any value that cannot be read, it leaves alone what is stored.
    assert await refunded(seller) == ("3.00", "partial", None)
    assert await refunded(seller, "B") == ("3.00", None, None)


async def test_what_was_uploaded_of_a_parcel_and_a_refund_is_read_again(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.items([{"order_number": "A-1", "product_name": "Mew", "quantity": 5}])
    [order] = (await seller.get("/api/orders")).json()["orders"]
    own = ("item_count", "shipping_item_count", "product_weight", "refund_total_amt")
    assert [order[name] for name in own] == [5, None, None, None]
    await seller.shipping([{"order_number": "A-1", "item_count": 7, "product_weight": "0.250"}])
    await seller.refunds([{"order_number": "A-1", "product_amt": 2, "refund_type": "partial"}])
    [order] = (await seller.get("/api/orders")).json()["orders"]
    assert [order[name] for name in own] == [7, 7, "0.250", None]
    assert order["refund_amt"] == "2.00"
    await seller.refunds([{"order_number": "A-1", "total_amt": 3}])
    whole = (await seller.get(f"/api/orders/{order['id']}")).json()
    assert [whole[name] for name in own] == [7, 7, "0.250", "3.00"]
    browser = await signed_in(seller)
    answer = await browser.get("/api/export/everything")
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        [row] = csv.DictReader(io.StringIO(file.read("orders.csv").decode("utf-8-sig")))
    told = ("shipping_item_count", "product_weight", "refund_total_amt")
    assert [row[name] for name in told] == ["7", "0.250", "3"]


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["total_amt", "product_amt", "shipping_amt"])
async def test_a_refund_below_zero_is_no_amount_and_is_reported(a_seller, name):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.refunds([{"order_number": "A-1", name: "2.00", "refund_type": "partial"}])
    report = await seller.refunds([{"order_number": "A-1", name: -5, "refund_note": "sorry"}])
    assert (report["applied"], report["rejected_count"]) == (1, 1)
    [rejected] = report["rejected"]
    assert (rejected["row"], rejected["column"], rejected["code"]) == (1, name, "bad_number")
    assert "-5, not a number from zero" in rejected["message"]
    assert await refunded(seller) == ("2.00", "partial", None)


async def test_a_refund_of_zero_is_a_refund(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1"), an_order("A-2")])
    await seller.refunds([{"order_number": "A-1", "total_amt": 0}])
    assert (await seller.stored_order("A-1"))["refund_amt"] == 0
    assert (await seller.stored_order("A-2"))["refund_amt"] is None


@pytest.mark.day
async def test_shipping_items_and_feedback_of_unknown_orders_are_skipped_and_counted(a_seller):
    seller, other = await a_seller(), await a_seller()
    await other.orders([an_order("B-1")])
    await seller.orders([an_order("A-1")])
    shipping = await seller.shipping(
        [
            {"order_number": "A-1", "city": "Testville"},
            {"order_number": "B-1"},
            {"order_number": "C"},
        ]
    )
    items = await seller.items(
        [
            {"order_number": "A-1", "sku_id": 1},
            {"order_number": "B-1", "sku_id": 1},
            {"order_number": "B-1"},
        ]
    )
    assert [(r["applied"], r["skipped"]) for r in (shipping, items)] == [(1, 2), (1, 2)]
    assert (await seller.feedback([{"order_number": "B-1", "rating": 5}])).json() == {
        "status": "ok",
        "updated": 0,
    }
    assert len(await seller.stored_orders()) == 1
    assert await other.stored_items("B-1") == []


@pytest.mark.night
@pytest.mark.day
async def test_shipping_details_decide_how_an_order_travels(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])

    async def travels(**fields):
        await seller.shipping([{"order_number": "A-1", **fields}])
        return (await seller.stored_order("A-1"))["shipping_type"]

    assert await travels(shipping_method="Standard (7-10 days)") == "pwe"
    assert await travels(tracking_number="9400 1000") == "tracked"
    assert await travels(shipping_method="Expedited") == "expedited"
    assert await travels(shipping_method=None) == "tracked"
    assert await travels(tracking_number=" ") == "pwe"
    assert await travels(shipping_method="Standard, tracked") == "tracked"
    assert await travels(shipping_method="Untracked letter") == "pwe"


@pytest.mark.night
async def test_the_threshold_counts_for_all_orders_from_the_moment_it_is_set(a_seller):
    seller = await a_seller()
    await seller.orders(
        [
            an_order("A-1", total_amt=20),
            an_order("A-2", total_amt="49.99"),
            an_order("A-3", total_amt=50),
        ]
    )
    await seller.shipping([{"order_number": "A-1", "shipping_method": "Expedited"}])

    async def types():
        return [order["shipping_type"] for order in await seller.stored_orders()]

    assert await types() == ["expedited", "pwe", "tracked"]
    await seller.set(tracking_threshold="20")
    assert await types() == ["expedited", "tracked", "tracked"]
    await seller.orders([an_order("A-4", total_amt="19.99"), an_order("A-5", total_amt=20)])
    assert await types() == ["expedited", "tracked", "tracked", "pwe", "tracked"]
    await seller.set(tracking_threshold="60")
    assert await types() == ["expedited", "pwe", "pwe", "pwe", "pwe"]


@pytest.mark.night
@pytest.mark.day
async def test_a_threshold_set_while_an_upload_is_applied_counts_for_it(a_seller):
    seller = await a_seller()
    await seller.send("/orders", [an_order(f"A-{n}", total_amt=30) for n in range(2000)])
    await asyncio.gather(
        ingest.work_off_one(seller.service.work, seller.id), seller.set(tracking_threshold="20")
    )
    await seller.service.run_jobs()
    await ingest.work_off_one(seller.service.work, seller.id)
    assert {order["shipping_type"] for order in await seller.stored_orders()} == {"tracked"}


@pytest.mark.parametrize(
    "method",
    [None, "Standard", "EXPEDITED", "expedited shipping", "Tracked", "with tracking", "untracked"],
)
async def test_function_and_sql_agree_on_how_an_order_travels(a_seller, method):
    seller = await a_seller()
    for number in (None, "", "  ", "9400"):
        for total in (None, Decimal("49.99"), Decimal(50)):
            sql = shipping_type_sql(
                "CAST(:method AS text)", "CAST(:number AS text)", "CAST(:total AS numeric)", "50"
            )
            [row] = await seller.service.sql(
                seller.id, f"SELECT {sql} AS type", method=method, number=number, total=total
            )
            assert row["type"] == shipping_type(method, number, total, Decimal(50)), (
                method,
                number,
                total,
            )


async def test_a_line_with_a_sku_is_one_and_the_orders_sums_follow(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.items([
        {"order_number": "A-1", "sku_id": 7, "product_name": "Card", "product_line": "Magic",
         "quantity": 2, "unit_price": "1.50", "rarity": "C"},
        {"order_number": "A-1", "sku_id": 8, "product_line": "Pokemon", "quantity": 1},
    ])  # fmt: skip
    await seller.items([{"order_number": "A-1", "sku_id": 7, "quantity": 3, "rarity": None}])
    first, second = await seller.stored_items("A-1")
    assert (
        first["product_name"],
        first["quantity"],
        str(first["unit_price"]),
        first["rarity"],
    ) == (
        "Card",
        3,
        "1.50",
        None,
    )
    assert (second["sku_id"], second["product_line"]) == (8, "pokemon")
    order = await seller.stored_order("A-1")
    assert (order["items_total"], order["items_quantity"], order["product_lines"]) == (
        2,
        4,
        ["magic", "pokemon"],
    )


@pytest.mark.night
async def test_lines_without_a_sku_take_the_place_of_the_earlier_ones(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1"), an_order("A-2")])
    loose = [
        {"order_number": "A-1", "product_name": "one"},
        {"order_number": "A-1", "product_name": "one"},
    ]
    await seller.items(
        [
            *loose,
            {"order_number": "A-1", "sku_id": 7},
            {"order_number": "A-2", "product_name": "other"},
        ]
    )
    before = [row["id"] for row in await seller.stored_items("A-1")]
    await seller.items(loose)
    assert [row["id"] for row in await seller.stored_items("A-1")] == before
    await seller.items([{"order_number": "A-1", "product_name": "two", "quantity": 4}])
    assert [(row["sku_id"], row["product_name"]) for row in await seller.stored_items("A-1")] == [
        (7, None),
        (None, "two"),
    ]
    assert [row["product_name"] for row in await seller.stored_items("A-2")] == ["other"]
    # An upload without such lines leaves them alone.
    await seller.items([{"order_number": "A-1", "sku_id": 7, "quantity": 1}])
    assert len(await seller.stored_items("A-1")) == 2
    order = await seller.stored_order("A-1")
    assert (order["items_total"], order["items_quantity"]) == (2, 5)


@pytest.mark.day
async def test_an_item_takes_the_price_its_card_had_when_the_order_was_placed(a_seller):
    seller = await a_seller()
    for day, price in (("2026-11-01", "1.00"), ("2026-11-05", "2.50"), ("2026-11-09", "4.00")):
        await seller.import_csv(
            a_csv(a_row(7, price=price)), **{"X-Exported-At": f"{day}T12:00:00Z"}
        )
    dates = {
        "A-1": "2026-10-31",
        "A-2": "2026-11-02",
        "A-3": "2026-11-06",
        "A-4": "2026-11-10",
        "A-5": None,
    }
    await seller.orders([an_order(number, order_date=date) for number, date in dates.items()])
    await seller.items([{"order_number": number, "sku_id": 7, "quantity": 1} for number in dates])

    async def prices():
        items = [await seller.stored_items(number) for number in dates]
        return [item["unit_price"] and str(item["unit_price"]) for [item] in items]

    assert await prices() == [None, "1", "2.5", "4", None]
    # A stated price counts more than a computed one; null takes it back.
    await seller.items(
        [
            {"order_number": "A-3", "sku_id": 7, "unit_price": "9.90"},
            {"order_number": "A-1", "sku_id": 7, "unit_price": 1},
        ]
    )
    await seller.items([{"order_number": "A-3", "sku_id": 7, "quantity": 2}])
    assert await prices() == ["1", "1", "9.90", "4", None]
    await seller.items([{"order_number": "A-3", "sku_id": 7, "unit_price": None}])
    assert await prices() == ["1", "1", "2.5", "4", None]


@pytest.mark.night
async def test_uploads_accepted_later_find_what_earlier_ones_brought_however_late_either_is_applied(
    a_seller,
):
    seller = await a_seller()
    sent = [
        await seller.send("/order_items", [{"order_number": "A-1", "sku_id": 1}]),
        await seller.send("/orders/shipping", [{"order_number": "A-1", "city": "Early"}]),
        await seller.send("/orders", [an_order("A-1")]),
        await seller.send("/order_items", [{"order_number": "A-1", "sku_id": 2}]),
        await seller.send("/orders/shipping", [{"order_number": "A-1", "state": "NY"}]),
    ]
    await seller.service.run_jobs()
    reports = [await seller.report(answer.json()["upload_id"]) for answer in sent]
    assert [report["skipped"] for report in reports] == [1, 1, 0, 0, 0]
    assert [item["sku_id"] for item in await seller.stored_items("A-1")] == [2]
    order = await seller.stored_order("A-1")
    assert (order["city"], order["state"]) == (None, "NY")


async def test_two_identical_uploads_at_once_are_one(a_seller):
    seller = await a_seller()
    orders = [an_order(f"A-{number}") for number in range(300)]
    items = [
        {"order_number": f"A-{number}", "product_name": "loose", "quantity": 1}
        for number in range(300)
    ]
    answers = await asyncio.gather(
        *(seller.send(path, rows) for path, rows in [("/orders", orders), ("/orders", orders)])
    )
    answers += await asyncio.gather(*(seller.send("/order_items", items) for _ in range(2)))
    assert {answer.status_code for answer in answers} == {202}
    outcomes = [True]
    while any(outcomes):
        outcomes = await asyncio.gather(
            *(ingest.work_off_one(seller.service.work, seller.id) for _ in range(3))
        )
    assert {(await seller.report(answer.json()["upload_id"]))["state"] for answer in answers} == {
        "done"
    }
    assert [order["items_quantity"] for order in await seller.stored_orders()] == [1] * 300


async def test_ids_commit_in_the_order_of_acceptance_though_many_come_at_once(a_seller):
    seller = await a_seller()
    answers = await asyncio.gather(
        *(seller.send("/orders", [an_order("A-1", status=f"S{n}")]) for n in range(12))
    )
    newest = max(answers, key=lambda answer: answer.json()["upload_id"])
    await seller.service.run_jobs()
    [row] = await seller.service.sql(
        seller.id, "SELECT status FROM orders WHERE seller_id = :id", id=seller.id
    )
    assert row["status"] == f"S{answers.index(newest)}"


async def test_an_upload_that_cant_be_processed_is_given_up_and_the_next_goes_on(a_seller):
    seller = await a_seller()
    lost = (await seller.send("/orders", [an_order("A-1")])).json()["upload_id"]
    [row] = await seller.service.sql(
        seller.id, "SELECT storage_key FROM upload WHERE seller_id = :id", id=seller.id
    )
    await seller.service.work.store.delete(row["storage_key"])
    report = await seller.orders([an_order("A-2")])
    assert report["state"] == "done"
    failed = await seller.report(lost)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "processing_failed")
    assert [order["order_number"] for order in await seller.stored_orders()] == ["A-2"]


async def test_an_upload_keeps_the_cycles_lock_fresh_and_takes_none(a_seller):
    seller = await a_seller()
    await seller.send("/orders", [an_order("A-1")])
    assert (await seller.get("/api/v1/status")).json()["sync_in_progress"] is False
    assert (await seller.get("/api/v1/sync/pending")).json()["action"] == "sync"
    query = (
        "SELECT lock_refreshed_at, uploads_open, lock_uploaded FROM sync_state"
        " WHERE seller_id = :id"
    )
    [before] = await seller.service.sql(seller.id, query, id=seller.id)
    for path in ALL:
        row = {"order_number": "A-1", "rating": 5}
        await seller.send(path, [row])
        [after] = await seller.service.sql(seller.id, query, id=seller.id)
        assert after["lock_refreshed_at"] > before["lock_refreshed_at"], path
        assert (after["uploads_open"], after["lock_uploaded"]) == (0, False)
        before = after


async def test_cancelling_a_sync_leaves_order_uploads_to_be_applied(a_seller):
    seller = await a_seller()
    await seller.get("/api/v1/sync/pending")
    upload = (await seller.send("/orders", [an_order("A-1")])).json()["upload_id"]
    assert (await seller.post("/api/v1/sync/cancel")).json() == {"status": "cancelled"}
    await seller.service.run_jobs()
    assert (await seller.report(upload))["state"] == "done"


async def test_an_upload_is_the_sellers_alone(a_seller):
    seller, other = await a_seller(), await a_seller()
    upload = (await seller.orders([an_order("A-1")]))["id"]
    assert (await other.get(f"/api/v1/uploads/{upload}")).status_code == 404
    await other.orders([an_order("A-1", status="Theirs")])
    assert (await seller.stored_order("A-1"))["status"] == "Completed - Paid"


async def test_erasing_a_seller_while_an_upload_is_applied_leaves_nothing(a_seller):
    from cardsync.shop.accounts import sellers
    from cardsync.tables import tenant_tables

    seller = await a_seller()
    await seller.send("/orders", [an_order(f"A-{number}") for number in range(2000)])
    work = seller.service.work
    tables = [table.name for table in tenant_tables()]
    await asyncio.gather(
        ingest.work_off_one(work, seller.id),
        sellers.delete_seller(work.database, work.store, seller.id, tables),
        return_exceptions=True,
    )  # fmt: skip
    assert (
        await seller.service.sql(
            seller.id, "SELECT FROM orders WHERE seller_id = :id", id=seller.id
        )
        == []
    )


@pytest.mark.night
@pytest.mark.day
async def test_an_upload_of_thousands_of_rows_is_joined_otherwise_and_ends_the_same(a_seller):
    seller = await a_seller()
    # Also half of it.
    count = 2 * LOOKED_UP + 500
    orders = [an_order(f"A-{number}") for number in range(count)]
    details = [{"order_number": f"A-{number}", "city": "Testville"} for number in range(-1, count)]
    lines = [
        {"order_number": f"A-{number}", "sku_id": number, "quantity": 2}
        for number in range(-1, count)
    ]
    for expected in ([count, count, 2 * count], [0, 0, 0]):
        reports = [
            await seller.orders(orders),
            await seller.shipping(details),
            await seller.items(lines),
        ]
        assert [report["skipped"] for report in reports] == [0, 1, 1]
        rows = await seller.service.sql(
            seller.id,
            "SELECT (report->>'written')::int AS n FROM upload WHERE seller_id = :id"
            " ORDER BY id DESC LIMIT 3",
            id=seller.id,
        )
        assert [row["n"] for row in reversed(rows)] == expected
    stored = await seller.stored_orders()
    assert len(stored) == count
    assert {(order["city"], order["items_quantity"]) for order in stored} == {("Testville", 2)}


async def test_a_refunds_amount_is_the_same_by_function_and_by_sql(service):
    amounts = (None, Decimal("0"), Decimal("1.25"), Decimal("99999999"))
    kinds = (None, "", "full", "FULL ", "partial")
    cases = list(itertools.product(amounts[::2], amounts, amounts, amounts, kinds))
    types = ("numeric", "numeric", "numeric", "numeric", "text")
    columns = ", ".join(
        f"CAST(:{name} AS {kind}[])" for name, kind in zip("otpsk", types, strict=True)
    )
    sql = refund_amount_sql("g.own", "g.total", "g.product", "g.shipping", "g.kind")
    given = f"unnest({columns}) WITH ORDINALITY AS g (own, total, product, shipping, kind, at)"
    async with service.database.shared() as session:
        values = dict(zip("otpsk", map(list, zip(*cases, strict=True)), strict=True))
        found = (
            await session.scalars(text(f"SELECT {sql} FROM {given} ORDER BY at"), values)
        ).all()
    assert [str(amount) for amount in found] == [str(refund_amount(*case)) for case in cases]

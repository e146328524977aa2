"""Monthly sales reports: what is stored, what is refused, and which months are missing, seen from
where the marketplace is.
"""

import asyncio
import gzip
import json
from datetime import UTC, date, datetime

import pytest

from cardsync.platform import clock
from cardsync.sales.orders.sales_reports import months_without
from orders_builder import an_order

OCTOBER = {"date_from": "2026-10-01", "date_to": "2026-10-31"}
FIELDS = {
    "gross_sales", "order_count", "product_amount", "total_fees", "shipping_amount",
    "total_refund_amount", "refunded_orders",
    "refunded_fees", "adjustments", "net_sales_minus_fees", "net_sales",
}  # fmt: skip


def at(moment):
    """Set the clock, which goes on from there."""
    clock.shift(datetime.fromisoformat(moment) - clock.now())


async def send(seller, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await seller.post(
        "/api/v1/sales_report",
        content=content,
        headers={"Content-Type": "application/json"} | headers,
    )


async def sent(seller, **report):
    answer = await send(seller, {**OCTOBER, "report": report})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refusal(seller, body, **headers):
    answer = await send(seller, body, **headers)
    assert set(answer.json()) == {"error", "code"}, answer.text
    assert await reports(seller) == []
    return answer.status_code, answer.json()["code"]


async def reports(seller):
    return (await seller.get("/api/v1/sales_report")).json()["reports"]


async def gaps(seller):
    answer = await seller.get("/api/v1/sales_report/gaps")
    assert answer.status_code == 200, answer.text
    return answer.json()["gaps"]


async def test_a_report_is_stored_with_the_scale_it_came_with(a_seller):
    seller, other = await a_seller(), await a_seller()
    body = b"""{"date_from": "2026-10-01", "date_to": "2026-10-31", "report": {
        "gross_sales": 1234.50, "order_count": 17, "product_amount": "1200.5", "total_fees": 99.1250, "shipping_amount": 34,
        "total_refund_amount": 0, "refunded_orders": "2", "refunded_fees": 0.00, "adjustments": -5.10,
        "net_sales_minus_fees": 1130.275, "net_sales": 1229.4, "of_the_future": {}}}"""
    answer = await send(seller, body)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "month": "2026-10"})
    [stored] = await reports(seller)
    assert (
        abs((datetime.fromisoformat(stored.pop("received_at")) - clock.now()).total_seconds()) < 60
    )
    assert stored == {
        "month": "2026-10", "date_from": "2026-10-01", "date_to": "2026-10-31",
        "report": {
            "gross_sales": "1234.50", "order_count": 17, "product_amount": "1200.50",
            "total_fees": "99.1250",
            "shipping_amount": "34.00", "total_refund_amount": "0.00", "refunded_orders": 2,
            "refunded_fees": "0.00",
            "adjustments": "-5.10", "net_sales_minus_fees": "1130.275", "net_sales": "1229.40",
        },
    }  # fmt: skip
    assert await reports(other) == []


@pytest.mark.parametrize(
    ("report", "empty"),
    [
        ({}, True),
        ({"gross_sales": 0, "net_sales": "0.00", "order_count": 0}, True),
        ({"gross_sales": None}, True),
        ({"gross_sales": "nonsense"}, True),
        ({"gross_sales": 0.01}, False),
        ({"net_sales": -3}, False),
    ],
)
async def test_a_month_without_revenue_is_covered_and_told_as_empty(a_seller, report, empty):
    seller = await a_seller()
    answer = await sent(seller, **report)
    assert answer.get("empty", False) is empty
    assert [row["month"] for row in await reports(seller)] == ["2026-10"]


async def test_the_month_again_updates_what_it_carries_and_null_clears(a_seller):
    seller = await a_seller()
    await sent(seller, gross_sales=10, net_sales=9, order_count=3)
    await send(
        seller,
        {**OCTOBER, "date_to": "2026-10-30", "report": {"gross_sales": 11, "net_sales": None}},
    )
    [stored] = await reports(seller)
    assert stored["date_to"] == "2026-10-30"
    told = {name: value for name, value in stored["report"].items() if value is not None}
    assert told == {"gross_sales": "11.00", "order_count": 3}
    assert set(stored["report"]) == FIELDS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gross_sales", "12,50"), ("gross_sales", "$12"), ("gross_sales", True),
        ("gross_sales", []), ("gross_sales", 123456789),
        ("gross_sales", "99999999.99995"), ("order_count", 1.5), ("order_count", -1),
        ("order_count", "many"), ("order_count", 2**63),
    ],
)  # fmt: skip
async def test_what_is_no_such_number_counts_as_absent_and_is_told(a_seller, field, value):
    seller = await a_seller()
    await sent(seller, **{field: 7})
    answer = await sent(seller, **{field: value, "net_sales": 1})
    assert answer == {"status": "ok", "month": "2026-10", "ignored": [field]}
    [stored] = await reports(seller)
    assert stored["report"][field] in (7, "7.00")


@pytest.mark.parametrize(
    "number", [b"1e999999999", b"1E-999999999", b"9" * 5000, b"1" + b"0" * 400 + b".5"]
)
async def test_a_number_of_any_size_is_no_crash(a_seller, number):
    seller = await a_seller()
    body = (
        json.dumps({**OCTOBER, "report": {"gross_sales": "N", "order_count": "N"}})
        .encode()
        .replace(b'"N"', number)
    )
    assert (await send(seller, body)).status_code in (200, 422)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"not json", b'{"date_from": "\xff"}', b"{}",
        {"date_to": "2026-10-31", "report": {}},
        {"date_from": "2026-10-01", "report": {}},
        {**OCTOBER, "date_from": None, "report": {}},
        {**OCTOBER, "date_from": "October", "report": {}},
        {**OCTOBER, "date_from": "2026-13-01", "report": {}},
        {**OCTOBER, "date_from": 20261001, "report": {}},
        {**OCTOBER, "date_from": "2026-W40-4", "report": {}},
        {**OCTOBER, "date_to": "2026-10-32", "report": {}},
    ],
    ids=str,
)  # fmt: skip
async def test_no_json_and_no_date_are_invalid_json(a_seller, body):
    assert await refusal(await a_seller(), body) == (422, "invalid_json")


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"null", b'"text"',
        OCTOBER,
        {**OCTOBER, "report": None},
        {**OCTOBER, "report": []},
        {**OCTOBER, "report": "none"},
        {**OCTOBER, "date_from": "2026-10-02", "report": {}},
        {**OCTOBER, "date_from": "2026-10-31", "report": {}},
        {**OCTOBER, "date_to": "2026-11-01", "report": {}},
        {**OCTOBER, "date_to": "2026-09-30", "report": {}},
        {**OCTOBER, "date_to": "2025-10-31", "report": {}},
    ],
    ids=str,
)  # fmt: skip
async def test_a_body_of_the_wrong_shape_is_an_invalid_payload(a_seller, body):
    assert await refusal(await a_seller(), body) == (422, "invalid_payload")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/gzip", "application/octet-stream"]
)
@pytest.mark.parametrize("zipped", [True, False])
async def test_gzip_is_told_by_its_first_bytes(a_seller, kind, zipped):
    seller = await a_seller()
    body = json.dumps({**OCTOBER, "report": {"net_sales": 1}}).encode()
    answer = await send(seller, gzip.compress(body) if zipped else body, **{"Content-Type": kind})
    assert answer.status_code == 200
    assert await refusal(await a_seller(), gzip.compress(body)[:-4], **{"Content-Type": kind}) == (
        422,
        "invalid_gzip",
    )


async def test_another_content_type_is_unsupported(a_seller):
    assert await refusal(await a_seller(), b"{}", **{"Content-Type": "text/csv"}) == (
        415,
        "unsupported_media_type",
    )


async def test_two_reports_of_a_month_at_once_are_one_row_that_holds_both(a_seller):
    seller = await a_seller()
    bodies = [{**OCTOBER, "report": {name: 1}} for name in sorted(FIELDS)]
    answers = await asyncio.gather(*(send(seller, body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    [stored] = await reports(seller)
    assert None not in stored["report"].values()


async def test_without_dated_orders_nothing_is_missing(a_seller):
    seller = await a_seller()
    await an_order(seller, order_date=None)
    assert await gaps(seller) == []


async def test_two_years_are_missing_of_a_new_seller_and_uploads_fill_them(a_seller):
    seller, other = await a_seller(), await a_seller()
    at("2026-11-21T12:00:00+00:00")
    await an_order(seller, order_date=date(2026, 11, 20))
    missing = await gaps(seller)
    assert (len(missing), missing[0], missing[-1]) == (24, "2024-11-01", "2026-10-01")
    assert missing == sorted(missing)
    await sent(seller)
    await send(
        seller, {"date_from": "2025-01-01", "date_to": "2025-01-31", "report": {"net_sales": 5}}
    )
    assert await gaps(seller) == [
        month for month in missing if month not in ("2026-10-01", "2025-01-01")
    ]
    assert await gaps(other) == []


async def test_a_report_that_ends_before_its_month_does_not_cover_it_once_the_month_is_over(
    a_seller,
):
    seller = await a_seller()
    at("2026-10-20T12:00:00+00:00")
    await an_order(seller, order_date=date(2026, 10, 1))
    half = {"date_from": "2026-10-01", "date_to": "2026-10-19", "report": {"net_sales": 5}}
    assert (await send(seller, half)).status_code == 200
    assert "2026-10-01" not in await gaps(seller)
    at("2026-11-02T12:00:00+00:00")
    assert "2026-10-01" in await gaps(seller)
    await sent(seller, net_sales=9)
    assert "2026-10-01" not in await gaps(seller)


async def test_an_older_first_order_goes_further_back(a_seller):
    seller = await a_seller()
    at("2026-11-21T12:00:00+00:00")
    await an_order(seller, order_date=date(2026, 11, 1))
    await an_order(seller, order_date=date(2023, 12, 31))
    missing = await gaps(seller)
    assert (missing[0], missing[1], missing[-1], len(missing)) == (
        "2023-12-01",
        "2024-01-01",
        "2026-10-01",
        35,
    )


@pytest.mark.parametrize(
    ("moment", "last"),
    [
        # Midnight in New York is 5 o'clock in winter and 4 o'clock in summer, UTC.
        ("2026-12-01T04:59:50+00:00", "2026-10-01"),
        ("2026-12-01T05:00:00+00:00", "2026-11-01"),
        ("2026-07-01T03:59:50+00:00", "2026-05-01"),
        ("2026-07-01T04:00:00+00:00", "2026-06-01"),
        # The clocks go back on 1 November 2026 and forward on 14 March 2027.
        ("2026-11-01T03:59:50+00:00", "2026-09-01"),
        ("2026-11-01T04:00:00+00:00", "2026-10-01"),
        ("2027-04-01T03:59:50+00:00", "2027-02-01"),
        ("2027-04-01T04:00:00+00:00", "2027-03-01"),
        ("2027-01-01T04:59:50+00:00", "2026-11-01"),
        ("2027-01-01T05:00:00+00:00", "2026-12-01"),
        ("2028-03-01T05:00:00+00:00", "2028-02-01"),
    ],
)
async def test_a_month_ends_at_midnight_where_the_marketplace_is(a_seller, moment, last):
    seller = await a_seller()
    await an_order(seller, order_date=date(2028, 1, 1))
    at(moment)
    missing = await gaps(seller)
    assert missing[-1] == last
    assert len(missing) == 24


@pytest.mark.parametrize(
    ("first", "count"), [(None, 0), (date(2030, 1, 1), 24), (date(2024, 11, 30), 24),
                         (date(2024, 10, 31), 25), (date.min, 12 * 2025 + 10)]
)  # fmt: skip
def test_how_far_back_it_goes(first, count):
    months = months_without([], first, datetime(2026, 11, 21, tzinfo=UTC))
    assert len(months) == count
    assert all(month.day == 1 for month in months)
    assert not months or months[-1] == date(2026, 10, 1)

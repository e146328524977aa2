"""Summaries of sales: sums by day, week, month and game in the account's zone, with fees from the
marketplace's reports.
"""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from browsers import joined
from builders import a_csv, a_row
from cardsync.sales.orders.sales_figures import figures
from cardsync.sales.reports import start_of
from orders_builder import an_item, an_order

SPAN = {"from": "2026-07-01", "to": "2026-08-31"}


def without_profit(row):
    """The figures of a row; what was earned is tested in `features/lots`."""
    return tuple(value for name, value in row.items() if name != "profit")


async def summary(seller, by="day", **query):
    answer = await seller.get("/api/sales/summary", params=SPAN | {"by": by} | query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def report(seller, **figures):
    body = {"date_from": "2026-07-01", "date_to": "2026-07-31", "report": figures}
    answer = await seller.post("/api/v1/sales_report", json=body)
    assert answer.status_code in (200, 201), answer.text


async def a_summer(seller):
    await an_order(seller, order_date=date(2026, 7, 1), total_amt=10)
    await an_order(seller, order_date=date(2026, 7, 3), total_amt=20, refund_amt="5.00")
    await an_order(seller, order_date=date(2026, 7, 3), total_amt=99, status="Canceled")
    await an_order(seller, order_date=date(2026, 7, 6), total_amt=30)
    await an_order(seller, order_date=date(2026, 6, 30), total_amt=99)


async def test_sums_by_day_week_and_month_with_the_months_fees(a_seller):
    seller = await a_seller()
    await a_summer(seller)
    await report(seller, gross_sales="100.00", total_fees="12.00", refunded_fees="2.00")
    told = await summary(seller)
    assert [without_profit(period) for period in told["periods"]] == [
        ("2026-07-01", 1, "10.00", 0, "0.00", "1.00", "9.00"),
        ("2026-07-03", 1, "20.00", 1, "5.00", "2.00", "13.00"),
        ("2026-07-06", 1, "30.00", 0, "0.00", "3.00", "27.00"),
    ]
    assert (told["fee_rate"], told["gaps"]) == ("0.1000", [])
    weeks = await summary(seller, "week")
    assert [(week["start"], week["gross"], week["net"]) for week in weeks["periods"]] == [
        ("2026-06-29", "30.00", "22.00"),
        ("2026-07-06", "30.00", "27.00"),
    ]
    months = await summary(seller, "month")
    [month] = months["periods"]
    assert month | {"start": None} == told["total"] == weeks["total"] == months["total"]


async def test_a_month_without_a_report_is_a_gap_without_a_net(a_seller):
    seller = await a_seller()
    await a_summer(seller)
    await an_order(seller, order_date=date(2026, 8, 2), total_amt=7)
    await report(seller, gross_sales="100.00", total_fees="10.00")
    told = await summary(seller, "month")
    assert [(month["start"], month["fees"]) for month in told["periods"]] == [
        ("2026-07-01", "6.00"),
        ("2026-08-01", None),
    ]
    assert told["gaps"] == ["2026-08"]
    assert (told["total"]["gross"], told["total"]["net"], told["fee_rate"]) == ("67.00", None, None)


async def test_a_day_is_one_of_the_accounts_zone(a_seller):
    seller = await a_seller()
    late = datetime(2026, 7, 2, 3, 0, tzinfo=UTC)
    await an_order(seller, order_date=date(2026, 7, 1), placed_at_given=late, total_amt=1)
    await an_order(seller, order_date=date(2026, 7, 1), total_amt=2)
    for zone, days in (
        ("America/Los_Angeles", ["2026-07-01"]),
        ("Europe/Berlin", ["2026-07-01", "2026-07-02"]),
    ):
        await seller.set(time_zone=zone)
        told = await summary(seller)
        assert [period["start"] for period in told["periods"]] == days
        assert told["time_zone"] == zone
    outside = await summary(seller, **{"from": "2026-07-02", "to": "2026-07-02"})
    assert [period["gross"] for period in outside["periods"]] == ["1.00"]


async def test_games_their_days_to_sell_and_the_best_and_worst_cards(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(number, price=f"{number}.00") for number in (1, 2, 3))))
    await seller.service.sql(
        seller.id,
        "UPDATE card SET created_at = '2026-06-21T12:00:00Z' WHERE seller_id = :id",
        id=seller.id,
    )
    order = await an_order(seller, order_date=date(2026, 7, 1), total_amt=10)
    await an_item(seller, order, sku_id=1, quantity=3, unit_price="2.00", product_line="=Magic")
    await an_item(seller, order, sku_id=2, quantity=1, unit_price="4.00", product_line="Pokemon")
    told = await summary(seller, "game")
    assert [without_profit(game) for game in told["games"]] == [
        ("=Magic", 1, 3, "6.00", 10.0, 0, 0),
        ("Pokemon", 1, 1, "4.00", 10.0, 0, 0),
    ]
    assert told["total"]["gross"] == "10.00"
    cards = (await seller.get("/api/sales/cards", params=SPAN)).json()
    assert [(card["pieces"], card["gross"]) for card in cards["best"]] == [(3, "6.00"), (1, "4.00")]
    assert [(card["product_name"], card["days"]) for card in cards["worst"]] == [("Card 3", 71)]
    answer = await seller.get("/api/sales/cards.csv", params=SPAN)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["sold"], row["copies"], row["amount"], row["days"]) for row in rows] == [
        ("best", "3", "6.00", ""),
        ("best", "1", "4.00", ""),
        ("nothing", "1", "3.0000", "71"),
    ]
    answer = await seller.get("/api/sales/summary.csv", params=SPAN | {"by": "game"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["game"], row["gross"]) for row in rows] == [
        ("'=Magic", "6.00"),
        ("Pokemon", "4.00"),
    ]


async def test_a_copy_without_a_price_is_estimated_or_unknown_and_never_zero(a_seller):
    seller = await a_seller()
    july = {"order_date": date(2026, 7, 1), "total_amt": 12}
    shared = await an_order(seller, product_amt="10.00", **july)
    await an_item(seller, shared, sku_id=1, unit_price="4.00")
    await an_item(seller, shared, sku_id=2, quantity=2, product_line="pokemon")
    await an_item(seller, shared, sku_id=3, product_line="lorcana")
    for nothing_left in (None, "4.00"):
        order = await an_order(seller, product_amt=nothing_left, **july)
        await an_item(seller, order, sku_id=4, quantity=3, product_line="yugioh")
        await an_item(seller, order, sku_id=1, unit_price="4.00")
    told = await summary(seller, "game")
    assert [(g["game"], g["gross"], g["estimated"], g["unpriced"]) for g in told["games"]] == [
        ("magic", "12.00", 0, 0),
        ("pokemon", "4.00", 2, 0),
        ("lorcana", "2.00", 1, 0),
        ("yugioh", None, 0, 6),
    ]
    cards = (await seller.get("/api/sales/cards", params=SPAN)).json()["best"]
    assert [(card["gross"], card["estimated"], card["unpriced"]) for card in cards] == [
        ("12.00", 0, 0),
        ("4.00", 2, 0),
        ("2.00", 1, 0),
        (None, 0, 6),
    ]
    answer = await seller.get("/api/sales/cards.csv", params=SPAN)
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["amount"], row["estimated"], row["unpriced"]) for row in rows] == [
        ("12.00", "0", "0"),
        ("4.00", "2", "0"),
        ("2.00", "1", "0"),
        ("", "0", "6"),
    ]


async def test_spans_that_mean_nothing_are_refused_and_staff_sees_no_sums(a_seller):
    seller = await a_seller()
    for span, told in (
        ({"from": "2026-08-01", "to": "2026-07-01"}, "from: must not be after to"),
        ({"from": "2000-01-01", "to": "2026-07-01"}, "at most 3660 days"),
        ({"from": "2025-01-01", "to": "2026-07-01", "by": "game"}, "at most 366 days"),
        ({"from": "soon", "to": "2026-07-01"}, ""),
    ):
        answer = await seller.get("/api/sales/summary", params=span)
        assert answer.status_code == 422, answer.text
        assert told in answer.json()["error"]
    staff = await joined(seller, f"staff-{seller.email}")
    for path in ("summary", "summary.csv", "cards"):
        answer = await staff.get(f"/api/sales/{path}", params=SPAN)
        assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    assert (await summary(seller))["periods"] == []


AMOUNTS = st.decimals(0, 1000, places=2)
DAYS = st.dictionaries(
    st.dates(date(2026, 1, 1), date(2026, 4, 30)),
    st.tuples(st.integers(1, 5), AMOUNTS, st.integers(0, 3), AMOUNTS),
    max_size=20,
)


@given(DAYS, st.sampled_from(["day", "week", "month"]), st.sets(st.integers(1, 4)))
def test_periods_hold_every_day_once_and_a_gap_hides_the_net(days, by, months):
    rates = {date(2026, month, 1): Decimal("0.1") for month in months}
    found = figures([(day, *sums, Decimal(1)) for day, sums in days.items()], rates, by)
    for place in (1, 2, 3, 4):
        total = sum(period[place] for period in found.periods)
        assert total == sum(sums[place - 1] for sums in days.values())
    assert [period.start for period in found.periods] == sorted({start_of(day, by) for day in days})
    assert found.gaps == sorted({day.replace(day=1) for day in days} - rates.keys())
    assert (found.total is None) == (not days)
    if found.total is not None:
        assert (found.total.net is None) == bool(found.gaps)

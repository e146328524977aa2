"""Backtests: what rules would have asked on each stored day, priced one after the other, beside
what sold; and nothing written.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from orders_builder import an_item, an_order

pytestmark = pytest.mark.day

BACKTEST = "/api/pricing/backtest"
FIRST = clock.now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=9)
AT_MARKET = [{"adjust_bp": 0}]


def at(day: int, hour: int = 12) -> datetime:
    return FIRST.replace(hour=hour) + timedelta(days=day)


def span(first: int = 0, last: int = 9) -> dict[str, str]:
    return {"from": at(first).date().isoformat(), "to": at(last).date().isoformat()}


async def seen(seller, moment: datetime, *rows, **headers):
    report = await seller.import_csv(
        a_csv(*rows), **{"X-Exported-At": clock.rfc3339(moment)}, **headers
    )
    assert report["state"] == "done", report


async def what_of(seller, rules=AT_MARKET, **body):
    answer = await seller.post(BACKTEST, json={"rules": rules, **span(), **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def days(found):
    return [(day["cards"], day["listed_value"], day["changed"]) for day in found["days"]]


async def a_past_of_three_days(a_seller, **settings):
    seller = await a_seller(time_zone="UTC", **settings)
    await seen(
        seller,
        at(0),
        a_row(1, market="2.00", price="1.00", quantity=3),
        a_row(2, market="1.00", price="1.00"),
    )
    await seen(
        seller,
        at(1),
        a_row(1, market="3.00", price="1.00", quantity=2),
        a_row(2, market="1.00", price="1.00"),
    )
    await seen(
        seller,
        at(3),
        a_row(1, market="3.00", price="1.00", quantity=2),
        a_row(3, market="5.00", price="1.00"),
    )
    return seller


async def test_each_day_is_priced_by_what_was_known_then(a_seller):
    seller = await a_past_of_three_days(a_seller)
    found = await what_of(seller)
    assert [day["date"] for day in found["days"]] == [
        at(day).date().isoformat() for day in (0, 1, 3)
    ]
    # Card 1 goes to market, then follows it; card 2 is gone on the last day, on which card 3 came.
    assert days(found) == [(2, "7.00", 1), (2, "7.00", 1), (2, "11.00", 1)]
    assert found["summary"] == {
        "snapshots": 3, "changed": 3, "blocked": {}, "listed_value_before": "4.00",
        "listed_value_after": "11.00",
        "sold": 0, "compared": 0, "sold_value": "0.00", "asked_value": "0.00",
        "without_sold_price": 0, "without_asked_price": 0,
    }  # fmt: skip


@pytest.mark.night
async def test_only_the_days_asked_for_and_both_ends_are_in(a_seller):
    seller = await a_past_of_three_days(a_seller)
    assert days(await what_of(seller, **span(1, 3))) == [(2, "7.00", 1), (2, "11.00", 1)]
    assert days(await what_of(seller, **span(2, 2))) == []
    moments = {"from": clock.rfc3339(at(1)), "to": clock.rfc3339(at(3) - timedelta(seconds=1))}
    assert days(await what_of(seller, **moments)) == [(2, "7.00", 1)]


@pytest.mark.night
async def test_a_day_goes_on_from_what_was_asked_the_day_before(a_seller):
    seller = await a_seller(time_zone="UTC")
    for day in range(4):
        await seen(seller, at(day), a_row(1, market="2.00", price="1.00"))
    capped = [{"adjust_bp": 0, "cap": {"up_bp": 2_000, "down_bp": 2_000}}]
    assert [value for _, value, _ in days(await what_of(seller, capped))] == [
        "1.20",
        "1.44",
        "1.72",
        "2.00",
    ]
    weekly = [{"adjust_bp": 0, "cap": {"up_bp": 2_000, "down_bp": 2_000, "period": "week"}}]
    begun = [n for n in range(1, 4) if at(n).weekday() == 0]
    assert [value for _, value, _ in days(await what_of(seller, weekly))] == [
        "1.44" if begun and day >= begun[0] else "1.20" for day in range(4)
    ]


async def test_a_guard_holds_in_the_past_too(a_seller):
    seller = await a_seller(time_zone="UTC")
    for day in range(2):
        await seen(seller, at(day), a_row(1, market="2.00", price="1.00"))
    guard = {"name": "G", "guard": True, "query": "market>1", "floor": "5.00"}
    told = days(await what_of(seller, [{"adjust_bp": 0}, guard]))
    assert [value for _, value, _ in told] == ["5.00", "5.00"]


@pytest.mark.night
async def test_two_snapshots_of_a_day_share_its_cap(a_seller):
    seller = await a_seller(time_zone="UTC")
    await seen(seller, at(0, 8), a_row(1, market="2.00", price="1.00"))
    await seen(seller, at(0, 20), a_row(1, market="2.50", price="1.00"))
    await seen(seller, at(1, 8), a_row(1, market="2.50", price="1.00"))
    capped = [{"adjust_bp": 0, "cap": {"up_bp": 2_000, "down_bp": 2_000}}]
    assert days(await what_of(seller, capped)) == [(1, "1.20", 1), (1, "1.44", 1)]


@pytest.mark.night
async def test_a_card_that_came_mid_way_begins_its_cap_with_its_first_price(a_seller):
    seller = await a_seller(time_zone="UTC")
    new = {"market": "5.00", "price": "1.00", "quantity": 2}
    await seen(seller, at(0), a_row(1, market="2.00", price="1.00"))
    await seen(seller, at(1), a_row(1, market="2.00", price="1.00"), a_row(2, **new))
    await seen(seller, at(1, 18), a_row(1, market="2.00", price="1.00"), a_row(2, **new))
    # Sold out, a blank price where one was asked, and a card that never had one.
    await seen(
        seller,
        at(2),
        a_row(1, quantity=0),
        a_row(2, **new | {"price": ""}),
        a_row(3, market="1.00", price=""),
    )
    found = await what_of(seller, [{"cap": {"up_bp": 1000, "down_bp": 1000, "period": "day"}}])
    assert days(found) == [(1, "1.10", 1), (2, "3.41", 2), (2, "3.42", 2)]


@pytest.mark.night
async def test_never_lower_holds_on_to_what_was_asked(a_seller):
    seller = await a_seller(time_zone="UTC")
    for day, market in enumerate(("1.50", "1.20", "1.80")):
        await seen(seller, at(day), a_row(1, market=market, price="1.00"))
    found = await what_of(seller, [{"adjust_bp": 0, "never_lower": True}])
    assert days(found) == [(1, "1.50", 1), (1, "1.50", 0), (1, "1.80", 1)]


@pytest.mark.night
async def test_queries_see_the_values_of_then(a_seller):
    seller = await a_past_of_three_days(a_seller)
    dear = [{"query": "market>2.50", "adjust_bp": 10_000}, {"query": "name:card", "adjust_bp": 0}]
    # 3 x 2.00 + 1.00; then twice 3.00 for each of two; then the new card too.
    assert days(await what_of(seller, dear)) == [(2, "7.00", 1), (2, "13.00", 1), (2, "22.00", 1)]
    few = [{"query": "qty>=3", "adjust_bp": 0}]
    found = await what_of(seller, few)
    assert [changed for _, _, changed in days(found)] == [1, 0, 0]
    assert found["summary"]["blocked"] == {"no_rule": 2}


@pytest.mark.night
async def test_a_query_that_asks_for_the_time_is_asked_of_each_day(a_seller):
    seller = await a_seller(time_zone="UTC")
    await seen(seller, at(0), a_row(1, market="2.00", price="1.00"))
    await seller.service.sql(
        seller.id, "UPDATE card SET created_at = :at WHERE seller_id = :id", at=at(0), id=seller.id
    )
    for day in (1, 2, 3):
        await seen(seller, at(day), a_row(1, market="2.00", price="1.00"))
    assert [
        changed
        for _, _, changed in days(await what_of(seller, [{"query": "age>=2", "adjust_bp": 0}]))
    ] == [
        0,
        0,
        1,
        0,
    ]


@pytest.mark.night
async def test_a_sale_is_on_on_its_days(a_seller):
    seller = await a_seller(time_zone="UTC")
    for day in range(3):
        await seen(seller, at(day), a_row(1, market="2.00", price="2.00"))
    sale = {
        "name": "One day", "adjust_bp": -5_000, "starts_at": clock.rfc3339(at(1, 0)),
        "ends_at": clock.rfc3339(at(2, 0)),
    }  # fmt: skip
    assert days(await what_of(seller, sales=[sale])) == [
        (1, "2.00", 0),
        (1, "1.00", 1),
        (1, "2.00", 1),
    ]


@pytest.mark.night
async def test_the_way_back_from_a_sale_waits_for_nobody(a_seller):
    seller = await a_seller(time_zone="UTC")
    limits = {"review_up_bp": 5_000, "review_down_bp": 2_000}
    assert (await seller.http.patch("/api/pricing/settings", json=limits)).status_code == 200
    for day in range(4):
        # A second card makes each upload differ.
        other = a_row(2, market=f"1.0{day}", price="1.00", quantity=0)
        await seen(seller, at(day), a_row(1, market="10.00", price="10.00"), other)
    sale = {
        "name": "Half off",
        "adjust_bp": -6_000,
        "starts_at": clock.rfc3339(at(1, 0)),
        "ends_at": clock.rfc3339(at(3, 0)),
    }
    found = await what_of(seller, sales=[sale])
    assert [day["listed_value"] for day in found["days"]] == ["10.00", "4.00", "4.00", "10.00"]


@pytest.mark.night
async def test_stale_cards_are_reduced_by_the_days_of_then(a_seller):
    seller = await a_seller(time_zone="UTC")
    for day in range(4):
        await seen(seller, at(day), a_row(1, market="1.00", price="1.00"))
    order = await an_order(
        seller, order_date=at(1).date(), placed_at_given=at(1, 13), status="Completed - Paid"
    )
    await an_item(seller, order, sku_id=1, unit_price="0.80")
    stale = {"after_days": 1, "every_days": 1, "step_bp": 1_000, "limit_bp": 5_000}
    found = await what_of(seller, [{"stale": stale}])
    # Sold after the second day's snapshot: the days count anew.
    assert [value for _, value, _ in days(found)] == ["1.00", "0.90", "1.00", "0.90"]


@pytest.mark.night
async def test_what_sold_stands_beside_what_would_have_been_asked(a_seller):
    seller = await a_past_of_three_days(a_seller)
    for moment, sku, price in (
        (at(0, 2), 1, "1.10"),
        (at(0, 15), 1, "1.20"),
        (at(2), 1, "1.30"),
        (at(3, 20), 4, None),
    ):
        order = await an_order(
            seller, order_date=moment.date(), placed_at_given=moment, status="Completed - Paid"
        )
        await an_item(seller, order, sku_id=sku, unit_price=price, quantity=2)
    cancelled = await an_order(
        seller, order_date=at(2).date(), placed_at_given=at(2), status="Canceled"
    )
    await an_item(seller, cancelled, sku_id=1, unit_price="9.00")
    found = await what_of(seller)
    assert [(line["marketplace_id"], line["sold_at"], line["sold_price"],
             line["asked_price"]) for line in found["sold"]] == [
        (4, clock.rfc3339(at(3, 20)), None, None),
        (1, clock.rfc3339(at(2)), "1.30", "3.00"),
        (1, clock.rfc3339(at(0, 15)), "1.20", "2.00"),
        (1, clock.rfc3339(at(0, 2)), "1.10", None),
    ]  # fmt: skip
    told = {
        name: found["summary"][name] for name in ("sold", "compared", "sold_value", "asked_value")
    }
    assert told == {"sold": 4, "compared": 2, "sold_value": "5.00", "asked_value": "10.00"}
    assert found["summary"]["without_sold_price"] == 1
    assert found["summary"]["without_asked_price"] == 2


@pytest.mark.night
async def test_without_a_line_of_both_prices_the_sums_are_unknown_and_not_zero(a_seller):
    seller = await a_past_of_three_days(a_seller)
    order = await an_order(seller, order_date=at(2).date(), placed_at_given=at(2))
    await an_item(seller, order, sku_id=1)
    found = (await what_of(seller))["summary"]
    assert (found["sold"], found["compared"]) == (1, 0)
    assert (found["sold_value"], found["asked_value"]) == (None, None)
    browser = await signed_in(seller)
    page = (await browser.get("/pricing/backtest", params=span())).text
    assert "$0.00" not in page
    assert "know the price paid for 1 item:" in " ".join(page.split())


async def test_the_newest_day_asks_what_the_preview_asks(a_seller):
    seller = await a_seller(time_zone="UTC")
    rows = [a_row(n, market=f"{n}.37", price="1.00", quantity=n) for n in range(1, 30)]
    await seen(seller, clock.now().replace(microsecond=0) - timedelta(minutes=5), *rows)
    rules = [
        {"query": "price>0 market<9", "adjust_bp": -300, "rounding": "x99"},
        {"adjust_bp": 100, "floor": "12.34"},
    ]
    ahead = (await seller.post("/api/pricing/preview", json={"rules": rules})).json()
    now = datetime.now(UTC)
    found = await what_of(seller, rules, to=now.date().isoformat())
    assert found["summary"]["listed_value_before"] == ahead["listed_value_before"]
    assert found["summary"]["listed_value_after"] == ahead["listed_value_after"]
    assert found["summary"]["changed"] == ahead["up"] + ahead["down"]


@pytest.mark.night
async def test_nothing_is_written_and_two_at_once_say_the_same(a_seller):
    seller = await a_past_of_three_days(a_seller)
    kept = [
        await seller.service.sql(seller.id, f"SELECT * FROM {table} WHERE seller_id = {seller.id}")
        for table in TABLES
    ]
    one, two = await asyncio.gather(what_of(seller), what_of(seller))
    assert one == two
    await seller.hold_lease("sync")
    assert await what_of(seller) == one
    now = [
        await seller.service.sql(seller.id, f"SELECT * FROM {table} WHERE seller_id = {seller.id}")
        for table in TABLES[:-1]
    ]
    assert now == kept[:-1]


TABLES = ("card", "price_observation", "price_run", "price_change", "activity", "sync_state")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({}, "invalid_payload", "from"),
        ({"from": "2026-11-01"}, "invalid_payload", "to"),
        ({**span(), "from": "yesterday", "rules": []}, "invalid_payload", "from"),
        ({**span(), "from": "2026-13-01", "rules": []}, "invalid_payload", "from"),
        ({**span(), "to": "9999-12-31", "rules": []}, "invalid_payload", "to"),
        ({**span(), "rules": 1}, "invalid_payload", "rules: must be a list"),
        (
            {"from": "2026-11-02", "to": "2026-11-01", "rules": []},
            "invalid_payload",
            "from: must not be after to",
        ),
        ({**span(), "rules": None}, "invalid_payload", "rules"),
        ({**span(), "rules": [{}, {"adjust": 1}]}, "invalid_rule", "rules[1].adjust"),
        ({**span(), "rules": [{"query": "prise>1"}]}, "invalid_query", "rules[0].query"),
        ({**span(), "rules": [], "sales": [{"adjust_bp": 5}]}, "invalid_rule", "sales[0]."),
    ],
)
async def test_what_cannot_be_tested_is_refused(a_seller, body, code, said):
    answer = await (await a_seller()).post(BACKTEST, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["error"].startswith(said)


async def test_another_sellers_past_is_not_seen(a_seller):
    await a_past_of_three_days(a_seller)
    assert (await what_of(await a_seller()))["days"] == []


BOTH = [
    a_row(1, market="2.00", price="1.00"),
    a_row(2, line="Pokemon", market="5.00", price="4.00"),
]
# The days after which something happens: an upload, or an import of prices that moves card 2.
AGES = {
    "an import of prices": [(0, "both"), (5, "import"), (3, "magic named")],
    "an import, and a file without a name": [(0, "both"), (5, "import"), (3, "magic")],
    "an import as the last thing": [(0, "both"), (6, "magic"), (2, "import"), (1, "magic")],
    "seen again after an import": [(0, "both"), (5, "import"), (1, "both"), (5, "magic named")],
    "files that do not speak of the line": [(0, "both"), (5, "magic"), (3, "magic")],
    "two lines one after the other": [(0, "magic"), (1, "pokemon"), (4, "magic named"), (4, "pokemon")],
    "seen before the span, unchanged": [(0, "both"), (9, "both"), (3, "magic")],
}  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("name", AGES)
async def test_a_days_market_is_as_old_as_for_a_run_of_that_day(a_seller, name):
    seller = await a_seller(time_zone="UTC")
    for number, (later, what) in enumerate(AGES[name]):
        clock.shift(timedelta(days=later))
        if what == "import":
            told = {"marketplace_id": 2, "old_price": "4.00", "new_price": f"4.5{number}"}
            event = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1, "rows": [told]}
            answer = await seller.post("/api/v1/repricing_events", json=event)
            assert answer.status_code == 201, answer.text
            await seller.service.run_jobs()
            assert str((await seller.cards())[1]["price"]) == f"4.5{number}00"
            continue
        rows = {"both": BOTH, "pokemon": BOTH[1:]}.get(what, BOTH[:1])
        named = {"X-Product-Line": "magic"} if what == "magic named" else {}
        await seller.import_csv(a_csv(*rows), **named)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    run = (await seller.get("/api/pricing/runs")).json()["runs"][0]
    now = clock.now()
    for since in (now - timedelta(days=60), now - timedelta(hours=1)):
        moments = {"from": clock.rfc3339(since), "to": clock.rfc3339(now)}
        found = await what_of(seller, **moments)
        assert (found["days"][-1]["cards"], found["summary"]["blocked"]) == (
            run["cards"],
            run["blocked"],
        )

"""GET /api/market_depth/holds: gates that did not pass, with the clocks of their receipts looked at
once more.
"""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.recommendations.holds import hold_of
from market_builder import ago, listing, sale

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(hours=24)
GATE = {"min_listings": 3, "min_sales_30d": 1, "max_age_hours": 24, "undercut_bp": 1000}
CARD = SimpleNamespace(
    id=1, marketplace_id=1, product_name="", set_name="", number="", condition=None, printing=""
)
HOLDS = "/api/market_depth/holds"


async def holds(seller, **query):
    answer = await seller.get(HOLDS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def synced(seller):
    """A sync by a gated rule: market, low and price are 10.00."""
    rule = {"name": "By depth", "state": "published", "market_gate": GATE}
    answer = await seller.post("/api/pricing/rules", json=rule)
    assert answer.status_code == 201, answer.text
    [card] = (await seller.get("/api/cards")).json()["cards"]
    cells = {"market": "10.00", "low": "10.00", "price": "10.00"}
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], **cells)))
    await seller.service.run_jobs()
    return card


async def test_a_gate_with_too_few_listings_holds_and_names_its_count(listed, observed, product):
    seller = await listed()
    seen = ago(hours=1)
    await observed(sale(product, "9.00", ago(days=1), seen), listing(product, "8.00", seen))
    assert await holds(seller) == {"holds": [], "total": 0}
    card = await synced(seller)
    answer = await holds(seller)
    assert answer["total"] == 1
    [held] = answer["holds"]
    assert held["marketplace_id"] == 1
    assert (held["card"]["id"], held["card"]["product_name"]) == (card["id"], card["product_name"])
    assert held["state"] == "held"
    assert held["price_options"] == {
        "formula_price": "10.00",
        "aggressive_price": "7.20",
        "lowest_listing": "8.00",
    }
    assert held["gate_verdict"] == {
        "condition_listings": 1,
        "passed": False,
        "reason": "There are fewer listings than the rule requires.",
    }
    assert held["observed_at"] == seen
    assert held["buy_out_detected_at"] is None
    assert await holds(seller, page="x", per_page="1") == answer
    assert await holds(seller, page=2) == {"holds": [], "total": 0}


async def gate_of(seller):
    """The verdict on the only card, which all that show it agree on."""
    [row] = (await seller.get("/api/cards")).json()["cards"]
    one = (await seller.get(f"/api/cards/{row['id']}")).json()
    badges = await seller.get("/api/market_depth/badges", params={"card_id": row["id"]})
    [badge] = badges.json()["cards"]
    assert one["gate_hold"] == row["gate_hold"]
    assert ((badge["held"] or {}).get("reason") == "gate") is (row["gate_hold"] is not None)
    assert (await holds(seller))["total"] == (row["gate_hold"] is not None)
    return row["gate_hold"], badge["held"] and badge["held"]["message"]


async def test_a_card_says_that_a_gate_holds_it_until_a_pricing_lets_it_go(
    listed, observed, product
):
    seller = await listed()
    seen = ago(hours=1)
    await observed(sale(product, "9.00", ago(days=1), seen), listing(product, "8.00", seen))
    assert await gate_of(seller) == (None, None)
    card = await synced(seller)
    told = "Waiting for market data, so the price stays the same. "
    assert await gate_of(seller) == (
        "too_few_listings",
        f"{told}There are fewer listings than the rule requires.",
    )
    stranger = await listed()
    assert await gate_of(stranger) == (None, None)
    cells = {"name": card["product_name"], "market": "10.00", "low": "10.00", "price": "10.00"}
    clock.shift(timedelta(days=2))
    await seller.import_csv(a_csv(a_row(1, **cells)))
    await seller.service.run_jobs()
    assert (await gate_of(seller))[0] == "listings_stale"
    seen = ago(hours=1)
    prices = ("8.00", "8.10", "8.20")
    await observed(
        sale(product, "9.00", ago(days=1), seen),
        *(listing(product, price, seen) for price in prices),
    )
    await seller.import_csv(a_csv(a_row(1, **cells)))
    await seller.service.run_jobs()
    assert await gate_of(seller) == (None, None)


@pytest.mark.night
async def test_without_a_gate_nothing_is_held_any_more(listed, observed, product):
    seller = await listed()
    seen = ago(hours=1)
    await observed(sale(product, "9.00", ago(days=1), seen), listing(product, "8.00", seen))
    card = await synced(seller)
    assert (await gate_of(seller))[0] == "too_few_listings"
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    gated = next(rule["id"] for rule in rules if rule["market_gate"])
    assert (await seller.http.delete(f"/api/pricing/rules/{gated}")).status_code == 200
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], price="10.00")))
    await seller.service.run_jobs()
    assert await gate_of(seller) == (None, None)


@pytest.mark.night
async def test_a_buy_out_holds_for_four_hours(listed, observed, product):
    seller = await listed()
    before, after = ago(hours=3), ago(hours=1)
    await observed(listing(product, "8.00", before, quantity=20))
    await observed(
        sale(product, "9.00", ago(hours=2), after, quantity=18),
        *(listing(product, price, after) for price in ("9.00", "9.10", "9.20")),
    )
    await synced(seller)
    clock.stop()
    try:
        [held] = (await holds(seller))["holds"]
        assert (held["state"], held["buy_out_detected_at"]) == ("bought_out", after)
        assert held["price_options"]["lowest_listing"] == "9.00"
        clock.shift(timedelta(hours=3, seconds=30))
        [held] = (await holds(seller))["holds"]
        assert (held["state"], held["price_options"]) == ("stale", None)
    finally:
        clock.reset()


async def test_a_strangers_holds_stay_hidden(listed, observed, product, a_seller):
    seller = await listed()
    seen = ago(hours=1)
    await observed(sale(product, "9.00", ago(days=1), seen), listing(product, "8.00", seen))
    await synced(seller)
    stranger = await a_seller()
    assert (await holds(stranger))["total"] == 0


def receipt(**changed):
    return {
        "verdict": "too_few_listings",
        "formula_price": 100_000,
        "aggressive_price": 72_000,
        "listings_low": 80_000,
        "listings_count": 1,
        "observed_at": NOW - timedelta(hours=1),
        "listings_observed_at": NOW - timedelta(hours=1),
        "sales_fetched_at": NOW - timedelta(hours=1),
        "buy_out_detected_at": None,
    } | changed


@pytest.mark.parametrize("name", ["observed_at", "listings_observed_at", "sales_fetched_at"])
@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(0), "held"),
        (DAY, "held"),
        (DAY + timedelta(microseconds=1), "stale"),
        (-timedelta(microseconds=1), "stale"),
        (None, "stale"),
    ],
)
def test_every_clock_is_looked_at_over_its_edge(name, age, state):
    at = None if age is None else NOW - age
    held = hold_of(CARD, receipt(**{name: at}), DAY, NOW)
    assert held.state == state
    assert (held.price_options is None) == (state == "stale")


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(hours=4), "bought_out"),
        (timedelta(hours=4, microseconds=1), "stale"),
        (-timedelta(microseconds=1), "stale"),
    ],
)
def test_the_window_of_a_buy_out_has_an_edge(age, state):
    held = hold_of(CARD, receipt(verdict="buy_out", buy_out_detected_at=NOW - age), DAY, NOW)
    assert held.state == state
    assert (held.price_options is None) == (state == "stale")

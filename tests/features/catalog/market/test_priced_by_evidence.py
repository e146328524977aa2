"""Imported sales and listings price cards: the anchor, the gate and a buy-out in a run after a sync,
frozen into its receipt.
"""

from datetime import timedelta

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.missing_evidence import NO_LISTINGS, NO_SALES
from market_builder import ago, listing

RULES = "/api/pricing/rules"
GATE = {"min_listings": 2, "min_sales_30d": 1, "max_age_hours": 24, "undercut_bp": 1000}


def sale(product, price, days, fetched):
    return f"{product},NM,Normal,English,{price},1,{ago(days=days)},{fetched},"


async def ruled(seller, **fields):
    rule = {"name": "By evidence", "state": "published", **fields}
    answer = await seller.post(RULES, json=rule)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def priced(seller, name):
    """Sync once more, and explain the card."""
    cells = {"market": "10.00", "low": "10.00", "price": "10.00"}
    await seller.import_csv(a_csv(a_row(1, name=name, **cells)))
    await seller.service.run_jobs()
    answer = await seller.get("/api/v1/pricing/explain/1")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def name_of(seller):
    [card] = (await seller.get("/api/cards")).json()["cards"]
    return card["product_name"]


def step(told, name):
    return next(one for one in told["steps"] if one["name"] == name)


async def test_the_median_of_recent_sales_is_the_anchor(listed, observed, product):
    seller = await listed()
    fetched = ago(hours=1)
    sales = [sale(product, price, days, fetched) for price, days in (("7.00", 1), ("9.00", 2))]
    await observed(*sales)
    await ruled(seller, price_source="sales_anchor")
    name = await name_of(seller)
    # Two sales are too few; with the third the anchor holds.
    told = await priced(seller, name)
    assert told["target_price"] == "10.00"
    [unused] = step(told, "price_source")["unused_sources"]
    assert unused == {"source": "sales_anchor", "reason": "too_few_sales"}
    await observed(sale(product, "8.00", 3, fetched))
    told = await priced(seller, name)
    assert told["target_price"] == "8.00"
    assert step(told, "price_source")["source"] == "sales_anchor"
    assert told["inputs"]["sales_count"] == 3
    assert told["historical_breakdown"]["steps"][2] == step(told, "price_source")


async def test_the_lowest_listing_is_undercut_until_a_buy_out(listed, observed, product):
    seller = await listed()
    # The listings of one moment are a snapshot.
    seen = ago(hours=3)
    await observed(
        sale(product, "9.00", 1, ago(hours=1)),
        listing(product, "8.00", seen, quantity=12),
        listing(product, "9.00", seen, quantity=2),
    )
    await ruled(seller, market_gate=GATE)
    name = await name_of(seller)
    told = await priced(seller, name)
    assert told["target_price"] == "7.20", step(told, "market_gate")
    assert step(told, "market_gate")["verdict"] == "taken"
    # The supply falls by more than four fifths within a day, with sales.
    seen = ago(hours=1)
    await observed(
        f"{product},NM,Normal,English,9.50,9,{ago(hours=2)},{seen},",
        listing(product, "9.00", seen),
        listing(product, "9.80", seen),
    )
    told = await priced(seller, name)
    assert step(told, "market_gate")["verdict"] == "buy_out", step(told, "market_gate")
    assert told["target_price"] == "10.00"
    assert step(told, "market_gate")["buy_out_detected_at"] == seen


async def test_a_rule_warns_only_while_nothing_was_imported(listed, observed, product):
    seller = await listed()
    fields = {"price_source": "sales_anchor", "market_gate": GATE}
    await observed(sale(product, "9.00", 1, ago(hours=1)), listing(product, "8.00", ago(hours=1)))
    rule = await ruled(seller, **fields)
    assert NO_SALES not in rule["warnings"]
    assert NO_LISTINGS not in rule["warnings"]


async def test_an_undercut_without_a_gate_rises_to_fresh_listings(listed, observed, product):
    seller = await listed()
    await ruled(seller, undercut_up_bp=500, priority=1)
    name = await name_of(seller)
    assert (await priced(seller, name))["target_price"] == "10.00"
    await observed(listing(product, "20.00", ago(hours=1)))
    told = await priced(seller, name)
    assert told["target_price"] == "19.00"
    assert step(told, "undercut")["listing_source"] == "listings"
    # The import itself priced the card, and its receipt froze the evidence.
    assert told["historical_breakdown"]["inputs"]["listings_low"] == "20.00"
    assert step(told["historical_breakdown"], "undercut") == step(told, "undercut")
    clock.shift(timedelta(hours=24))
    told = await priced(seller, name)
    assert (told["target_price"], step(told, "undercut")["listing_source"]) == ("10.00", "low")

"""GET /api/market_depth/badges and the badges on pages: a buy-out, few listings, and why a price is
held; none without fresh evidence.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.holdout_draw import window
from market_builder import ago, listing, sale
from orders_builder import an_item, an_order

BADGES = "/api/market_depth/badges"
CELLS = {"market": "10.00", "low": "10.00", "price": "10.00"}


async def badge(seller, **query):
    answer = await seller.get(BADGES, params=query or {"marketplace_id": 1})
    assert answer.status_code == 200, answer.text
    [one] = answer.json()["cards"]
    return one


@pytest.mark.parametrize(
    ("seen", "count"),
    [({"hours": 23, "minutes": 59}, 2), ({"hours": 24, "minutes": 1}, None), ({"hours": -1}, None)],
)
async def test_fresh_listings_are_counted(listed, observed, product, seen, count):
    seller = await listed(**CELLS)
    at = ago(**seen)
    await observed(
        listing(product, "12.00", at),
        listing(product, "13.00", at),
        listing(product, "9.00", at, condition="LP"),
    )
    one = await badge(seller)
    assert one["condition_listings"] == count
    assert one["listings_observed_at"] == (at if count else None)
    assert (one["bought_out_at"], one["held"]) == (None, None)


async def test_a_product_that_was_seen_without_listings_has_none(listed, observed, product):
    seller = await listed(**CELLS)
    await observed(listing(product, "12.00", ago(hours=1), condition="LP"))
    assert (await badge(seller))["condition_listings"] == 0


@pytest.mark.night
async def test_a_buy_out_is_told_for_four_hours(listed, observed, product):
    seller = await listed(**CELLS)
    before, after = ago(hours=10), ago(hours=2)
    await observed(
        *(listing(product, "12.00", before, quantity=4) for _ in range(5)),
        listing(product, "30.00", after, quantity=1),
        *(sale(product, "12.00", ago(hours=5, minutes=n), ago(hours=1)) for n in range(5)),
    )
    assert (await badge(seller))["bought_out_at"] == after
    browser = await signed_in(seller)
    page = (await browser.get("/cards")).text
    assert "Buyout <time" in page
    assert "1 seller left" in page
    clock.shift(timedelta(hours=2, minutes=1))
    assert (await badge(seller))["bought_out_at"] is None
    assert "Buyout" not in (await browser.get("/cards")).text


async def test_cards_and_order_lines_say_why_a_price_is_held(listed):
    seller = await listed(**CELLS)
    rule = {"name": "At market", "state": "published", "priority": 1}
    assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
    await seller.http.patch("/api/pricing/settings", json={"review_up_bp": 1_000})
    [card] = (await seller.get("/api/cards")).json()["cards"]
    cells = CELLS | {"market": "20.00"}
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], **cells)))
    one = await badge(seller, card_id=card["id"])
    told = "An increase to 20.00 is over your limit and needs approval."
    assert one["held"] == {"reason": "rise", "message": told, "price": "20.00"}
    order = await an_order(seller, order_date=clock.now().date(), status="Ready to Ship")
    await an_item(seller, order, sku_id=1, unit_price=10)
    browser = await signed_in(seller)
    [found] = (await seller.get("/api/orders")).json()["orders"]
    shown = told.replace("20.00", "$20.00")
    for path in ("/cards", f"/cards/{card['id']}", f"/orders/{found['id']}"):
        assert shown in (await browser.get(path)).text, path
    for path in ("/cards", f"/orders/{found['id']}"):
        assert ">needs review<" in (await browser.get(path)).text, path
    page = (await browser.get("/cards")).text
    [change] = re.findall(r'data-label="Change">(.*?)</td>', page, re.DOTALL)
    assert "needs review" in change
    drawer = (await browser.get(f"/cards?card={card['id']}")).text.partition('id="peek"')[2]
    assert "needs review" in drawer.partition("</aside>")[0]
    assert "on target" not in change


@pytest.mark.night
async def test_a_cap_that_holds_and_a_hold_out_are_told(listed):
    seller = await listed(**CELLS)
    cap = {"mode": "hold", "up_bp": 1_000, "down_bp": 1_000, "period": "day"}
    rule = {"name": "At market", "state": "published", "priority": 1, "cap": cap}
    rule["holdout_bp"] = 1
    made = (await seller.post("/api/pricing/rules", json=rule)).json()
    [card] = (await seller.get("/api/cards")).json()["cards"]
    row = a_row(1, name=card["product_name"], **(CELLS | {"market": "20.00"}))
    await seller.import_csv(a_csv(row))
    assert (await badge(seller))["held"]["reason"] == "cap"
    sql = """
        INSERT INTO price_decision (seller_id, kind, source_id, part, marketplace_id, price, asked)
        VALUES (:id, 'held_out', :rule, :part, 1, 10, 11)
    """
    part = int((clock.now() - clock.read_moment("1970-01-01T00:00:00Z")).days) // 30
    await seller.service.sql(seller.id, sql, id=seller.id, rule=made["id"], part=part)
    held = (await badge(seller))["held"]
    assert (held["reason"], held["price"]) == ("holdout", "11.00")


@pytest.mark.night
async def test_a_hold_out_that_was_switched_off_holds_no_price(listed):
    seller = await listed(**CELLS)
    rule = {"name": "At market", "state": "published", "priority": 1, "holdout_bp": 2_000}
    made = (await seller.post("/api/pricing/rules", json=rule)).json()
    sql = """
        INSERT INTO price_decision (seller_id, kind, source_id, part, marketplace_id, price, asked)
        VALUES (:id, 'held_out', :rule, :part, 1, 10, 11)
    """
    await seller.service.sql(
        seller.id, sql, id=seller.id, rule=made["id"], part=window(clock.now())
    )
    assert (await badge(seller))["held"]["reason"] == "holdout"
    answer = await seller.http.patch(f"/api/pricing/rules/{made['id']}", json={"holdout_bp": None})
    assert answer.status_code == 200, answer.text
    assert (await badge(seller))["held"] is None


async def test_other_shops_cards_and_too_many_are_left_out(a_seller, listed):
    other, seller = await a_seller(), await listed(**CELLS)
    [card] = (await seller.get("/api/cards")).json()["cards"]
    answer = await other.get(BADGES, params={"card_id": card["id"]})
    assert answer.json() == {"cards": []}
    assert (await other.get(BADGES)).json() == {"cards": []}
    many = {"card_id": ",".join(str(n) for n in range(1, 202))}
    assert (await other.get(BADGES, params=many)).status_code == 422

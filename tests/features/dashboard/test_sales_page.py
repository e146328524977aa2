"""The page of sales over HTTP: the figures of the JSON reads, by month, week, day and game, and the
best and worst cards.
"""

from __future__ import annotations

import re
from datetime import date

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from cardsync.dashboard.formats import game_name
from orders_builder import an_item, an_order

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
SPAN = {"from": "2026-07-01", "to": "2026-08-31"}


@pytest.fixture
async def shop(a_seller):
    seller = await a_shop(a_seller, a_row(1, name=HOSTILE))
    for day, amount in ((1, "10.25"), (3, "20.00"), (20, "1234.50")):
        order_id = await an_order(
            seller, order_date=date(2026, 7, day), total_amt=amount, refund_amt="3.75"
        )
        await an_item(seller, order_id, product_name=HOSTILE, sku_id=1, unit_price=amount)
    return seller


@pytest.mark.parametrize("by", ["month", "week", "day"])
async def test_periods_show_the_figures_of_the_api(shop, by):
    browser = await signed_in(shop)
    page = await browser.get("/sales", params=SPAN | {"by": by})
    told = (await browser.get("/api/sales/summary", params=SPAN | {"by": by})).json()
    assert page.status_code == 200
    assert told["periods"]
    for period in [*told["periods"], told["total"]]:
        for amount in (period["gross"], period["refunds"]):
            whole, cents = amount.split(".")
            assert f"${int(whole):,}.{cents}" in page.text
    months = [date.fromisoformat(f"{gap}-01") for gap in told["gaps"]]
    named = ", ".join(f"{month:%B %Y}" for month in months)
    assert f"Fees for {named} are estimated." in " ".join(page.text.split())
    # Periods are bars, which need no script; the table behind has every figure.
    bars = re.findall(r'<rect class="series-\d" x=', page.text)
    # Gross, net and refunds: the net of a month without a report is estimated.
    drawn = len(told["periods"]) > 1
    assert len(bars) == (3 * len(told["periods"]) if drawn else 0)
    assert ("Not enough history for a chart yet." in page.text) == (len(told["periods"]) == 1)
    assert f"/api/sales/summary.csv?by={by}&amp;from=2026-07-01&amp;to=2026-08-31" in page.text


async def test_games_and_cards_show_names_as_text(shop):
    browser = await signed_in(shop)
    games = (await browser.get("/api/sales/summary", params=SPAN | {"by": "game"})).json()["games"]
    page = await browser.get("/sales", params=SPAN | {"by": "game"})
    for game in games:
        assert f"<bdi>{game_name(game['game'])}</bdi>" in page.text
    best = (await browser.get("/api/sales/cards", params=SPAN)).json()["best"]
    page = (await browser.get("/sales", params=SPAN | {"by": "cards"})).text
    assert f'href="/cards/{best[0]["card_id"]}"' in page
    assert "<b onclick" not in page
    assert "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;" in page


@pytest.mark.parametrize("by", ["game", "cards"])
async def test_a_price_that_is_unknown_is_about_its_share_or_a_dash_and_its_reason(shop, by):
    july = {"order_date": date(2026, 7, 2), "total_amt": 9}
    whole, nothing = await an_order(shop, product_amt=8, **july), await an_order(shop, **july)
    await an_item(shop, whole, sku_id=2, product_line="pokemon", quantity=2)
    await an_item(shop, nothing, sku_id=3, product_line="lorcana")
    browser = await signed_in(shop)
    page = (await browser.get("/sales", params=SPAN | {"by": by})).text
    assert 'about</span> <span class="money">$8.00</span>' in page
    assert "the price that day isn't on record for 2 copies" in page
    assert "equally" in page
    assert '<span class="money">–</span>' in page
    assert "the order doesn't say what 1 copy cost" in page
    assert "$0.00" not in page


async def test_a_shop_without_sales_is_told_what_to_do(a_seller):
    browser = await signed_in(await a_seller())
    for by in ("month", "week", "day", "game", "cards"):
        page = await browser.get("/sales", params={"by": by})
        assert page.status_code == 200
        assert 'href="/sync"' in page.text


async def test_a_wrong_address_is_answered_with_a_sentence(shop):
    browser = await signed_in(shop)
    for query, told in (
        ({"by": "year"}, "By must be one of"),
        ({"from": "soon"}, "From must be a day like"),
        ({"from": "2026-08-01", "to": "2026-07-01"}, "From must not be after to."),
        ({"from": "2020-08-01", "to": "2026-07-01", "by": "game"}, "at most 366 days"),
    ):
        page = await browser.get("/sales", params=query)
        assert page.status_code == 422
        assert told in page.text


async def test_staff_neither_sees_nor_reads_sales(shop):
    staff = await joined(shop, f"staff-{shop.email}")
    assert 'href="/sales"' not in (await staff.get("/cards")).text
    answer = await staff.get("/sales")
    assert answer.status_code == 403
    assert "Gross" not in answer.text

"""The pages of orders and customers over HTTP: the API's figures, filters in the address, and the
forms that mark an order.
"""

from __future__ import annotations

import re
from datetime import date
from html import unescape

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from cards_builder import a_place, card_ids
from cardsync.dashboard.pages.orders import STATES
from cardsync.sales.orders import queries
from orders_builder import an_item, an_order

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    seller = await a_shop(a_seller, a_row(1, name="Black Lotus", price="5.00"))
    await a_place(seller, (await card_ids(seller))[1], 3, 4, 2)
    return seller


async def orders_of(shop):
    first = await an_order(shop, buyer_name=HOSTILE, order_date=date(2026, 7, 3), total_amt=12)
    await an_item(shop, first, sku_id=1, product_name="Black Lotus", unit_price=4, quantity=2)
    for number in range(3):
        await an_item(shop, first, product_name=f"{HOSTILE} {number}")
    second = await an_order(
        shop, status="Shipped", buyer_name="Ada", refund_amt=3, refund_reason=HOSTILE,
        feedback_rating=5, feedback_comment=HOSTILE, shipping_type="tracked", total_amt=1000,
    )  # fmt: skip
    await an_order(shop, buyer_name="ADA", total_amt=8)
    return first, second


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"status": "Shipped"},
        {"search": "ada"},
        {"date_from": "2026-07-01", "date_to": "2026-07-31"},
        {"product_line": "magic"},
        {"refund": "true"},
        {"unfeedbacked": "true", "sort": "total", "direction": "asc"},
        {"shipping_type": "tracked"},
        {"ship_mark": "pending"},
        {"pull_session": "none"},
        {"pull_session": "pulled"},
        {"state": "to_ship", "direction": "asc"},
        {"state": "on_the_way"},
        {"state": "refunded"},
        {"per_page": "1", "page": "2", "unfeedbacked": "true"},
        {"page": "9", "search": "a"},
    ],
    ids=str,
)
async def test_the_table_and_the_tabs_show_what_the_api_answers(shop, query):
    await orders_of(shop)
    browser = await signed_in(shop)
    answer = (await browser.get("/api/orders", params=query)).json()
    page = await browser.get("/orders", params=query or {"state": "all"})
    assert page.status_code == 200
    links = [int(id) for id in re.findall(r'href="/orders/(\d+)"', page.text)]
    assert links == [order["id"] for order in answer["orders"]]
    for status in answer["status_counts"]:
        assert f'<option value="{status}"' in page.text
    for state, name in STATES.items():
        of_state = (await browser.get("/api/orders", params={"state": state})).json()["total"]
        assert re.search(rf"{name}\s+<span class=\"badge[^>]*>{of_state}</span>", page.text), name
    if links:
        assert f"{answer['total']} order{'s' * (answer['total'] != 1)}" in page.text


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ({"search": "ad"}, "more than 6 orders"),
        # Numbers count through all tests, and 1000 precedes 999: the first orders are any of them.
        ({"search": "ada", "sort": "number"}, "more than [36] orders"),
        ({"unfeedbacked": "true", "status": "Shipped"}, "more than 6 orders"),
        ({"search": "ADA", "state": "on_the_way"}, "more than 3 orders"),
        # The tab's count is the total.
        ({"state": "on_the_way"}, "20 orders, page"),
    ],
    ids=str,
)
async def test_a_page_of_frequent_matches_does_not_count_them(shop, monkeypatch, query, least):
    monkeypatch.setattr(queries, "PROBED", 30)
    monkeypatch.setattr(queries, "PROBED_FOR_EACH", 3)
    monkeypatch.setattr(queries, "COUNTED", 6)
    for number in range(40):
        status = "Shipped" if number % 2 else "Completed"
        name = "Ada" if number % 4 else "Bob"
        await an_order(shop, status=status, buyer_name=name, order_date=date(2026, 7, 3))
    browser = await signed_in(shop)
    answer = (await browser.get("/api/orders", params=query | {"per_page": "100"})).json()
    page = (await browser.get("/orders", params=query | {"per_page": "3"})).text
    assert re.search(least, page)
    for status in answer["status_counts"]:
        assert f'<option value="{status}"' in page
    links, after = [], True
    while after:
        assert all(int(n) < answer["total"] for n in re.findall(r"more than (\d+) orders", page))
        links += re.findall(r'href="/orders/(\d+)"', page)
        if after := re.search(r'rel="next"[^>]*href="([^"]+)"', page, re.DOTALL):
            page = (await browser.get(unescape(after[1]))).text
    assert [int(link) for link in links] == [order["id"] for order in answer["orders"]]
    assert len(links) == answer["total"]
    assert f"{answer['total']} orders" in page
    assert "more than" not in page


async def test_a_pull_under_way_stands_above_the_orders(shop):
    await orders_of(shop)
    browser = await signed_in(shop)
    assert "Continue pull" not in (await browser.get("/orders")).text
    opened = await browser.post("/api/pull_sessions", json={})
    assert opened.status_code == 201, opened.text
    pull = opened.json()
    page = (await browser.get("/orders")).text
    assert f"<span>Continue pull {pull['id']}</span>" in page


async def test_an_order_beside_the_table_is_the_one_that_the_address_names(shop, a_seller):
    first, second = await orders_of(shop)
    browser = await signed_in(shop)
    back = f"/orders?sort=total&order={first}"
    whole = (await browser.get(back)).text.partition('id="peek"')[2]
    part = (await browser.get(f"/orders/peek?sort=total&order={first}")).text
    for page in (whole, part):
        assert f'data-of="{first}"' in page
        assert f'href="/orders/{first}">Open order</a>' in page
        assert 'href="/orders?sort=total"' in page
        for told in ("Black Lotus", "3-4", "$4.00", "$12.00", ESCAPED, "Mark shipped"):
            assert told in page
        assert "<b onclick" not in page
    assert "Mark shipped" not in (await browser.get(f"/orders/peek?order={second}")).text
    marked = await browser.form(f"/orders/{first}/mark_shipped", back=back)
    assert marked.headers["location"].startswith(back)
    stranger = await signed_in(await a_seller())
    await an_order(await a_seller())
    for reader, address in ((browser, "/orders?order=999999"), (stranger, back)):
        assert 'data-of="' not in (await reader.get(address)).text


async def test_links_keep_the_filters(shop):
    await orders_of(shop)
    browser = await signed_in(shop)
    page = await browser.get("/orders", params={"search": "ada", "refund": "true"})
    assert 'href="/orders?search=ada&amp;refund=true&amp;sort=total&amp;direction=asc"' in page.text
    wrong = await browser.get("/orders", params={"date_from": "yesterday"})
    assert wrong.status_code == 422
    assert "is not a date like 2026-07-03" in wrong.text


async def test_a_shop_without_orders_is_told_what_to_do(shop):
    browser = await signed_in(shop)
    assert "No orders yet" in (await browser.get("/orders?state=all")).text
    assert "Nothing to ship" in (await browser.get("/orders")).text
    assert "No customers yet" in (await browser.get("/customers")).text
    await orders_of(shop)
    page = await browser.get("/orders", params={"search": "nobody"})
    assert "No orders match these filters" in page.text


async def test_an_order_shows_items_places_prices_refund_and_feedback_as_text(shop):
    first, second = await orders_of(shop)
    browser = await signed_in(shop)
    page = (await browser.get(f"/orders/{first}")).text
    for told in ("Black Lotus", "3-4", "$4.00", "$5.00", "$8.00", "$12.00", ESCAPED):
        assert told in page
    refunded = (await browser.get(f"/orders/{second}")).text
    assert "$3.00" in refunded
    assert "★ 5" in refunded
    assert refunded.count(ESCAPED) == 2
    for text in (page, refunded, (await browser.get("/orders")).text):
        assert "<b onclick" not in text
    assert (await browser.get("/orders/999999")).status_code == 404


async def test_the_pull_of_an_order_is_shown(shop):
    first, _ = await orders_of(shop)
    browser = await signed_in(shop)
    assert "Not pulled yet." in (await browser.get(f"/orders/{first}")).text
    session = (await browser.post("/api/pull_sessions")).json()
    assert f"Pull {session['id']} (open)" in (await browser.get(f"/orders/{first}")).text


async def test_staff_marks_an_order_and_takes_it_back(shop):
    first, _ = await orders_of(shop)
    staff = await joined(shop, f"staff-{shop.id}@example.invalid")

    async def marks():
        told = (await staff.get(f"/api/orders/{first}")).json()
        return told["shipped_marked_at"] is not None, told["pull_dismissed_at"] is not None

    for mark, expected, next_button in (
        ("mark_shipped", (True, False), "Undo shipped"),
        ("unmark_shipped", (False, False), "Mark shipped"),
        ("dismiss", (False, True), "Return to pulls"),
        ("undismiss", (False, False), "Skip in pulls"),
    ):
        page = (await staff.get(f"/orders/{first}")).text
        assert f'action="/orders/{first}/{mark}"' in page
        answer = await staff.form(f"/orders/{first}/{mark}")
        assert answer.status_code == 303, answer.text
        assert await marks() == expected
        shown = await staff.get(answer.headers["location"])
        assert next_button in shown.text
        assert 'class="toast"' in shown.text


async def test_an_order_that_is_gone_offers_no_mark_and_an_unknown_price_is_about_its_share(shop):
    browser = await signed_in(shop)
    for status, offered in (("Ready to Ship", True), ("Shipped - Delivered", False)):
        order = await an_order(shop, status=status, product_amt="4.16", total_amt="5.47")
        await an_item(shop, order, product_name="Kuriboh")
        page = (await browser.get(f"/orders/{order}")).text
        for mark in ("mark_shipped", "dismiss"):
            assert (f'action="/orders/{order}/{mark}"' in page) == offered
        assert 'about</span> <span class="money">$4.16</span>' in page
        assert "share of the rest of the order" in page


async def test_forms_without_a_token_and_unknown_marks_are_refused(shop):
    first, _ = await orders_of(shop)
    browser = await signed_in(shop)
    assert (await browser.http.post(f"/orders/{first}/dismiss")).status_code == 403
    answer = await browser.form(f"/orders/{first}/burn")
    assert answer.status_code == 404
    answer = await browser.form("/orders/999999/dismiss")
    assert answer.status_code == 404


async def test_customers_are_those_of_the_api(shop):
    await orders_of(shop)
    browser = await signed_in(shop)
    answer = (await browser.get("/api/customers")).json()
    page = (await browser.get("/customers")).text
    assert f"{answer['total']} customers" in page
    assert "$1,008.00" in page
    assert page.count(">repeat<") == 1
    assert ESCAPED in page
    assert "<b onclick" not in page

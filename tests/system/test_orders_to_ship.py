"""Twelve orders in a real browser, from the list to the slips: ticked, pulled on a phone by one code
for all games, marked as shipped, printed. The clicks at the desk are counted.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.system.processes import Server
from tests.system.processes import until as eventually
from tests.system.shop_with_pages import NOW, Shop, a_shop_with_pages
from tests.system.test_pages_in_browser import a_window
from tests.system.test_phones_pull import a_phone, pull_if_shown, shown

from builders import an_order

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]
ORDERS = 12
GAMES = ("magic", "pokemon", "lorcana")
# A click that Playwright holds back, because the page has moved, reaches no document.
CLICKS = "document.addEventListener('click', () => sessionStorage.n = 1 + (+sessionStorage.n || 0), true)"


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    day = NOW.strftime("%m/%d/%Y")
    with made.seller.http() as http:
        http.post(f"/api/pull_sessions/{made.session_id}/cancel")
        while waiting := http.get("/api/orders?state=to_ship").json()["orders"]:
            marked = {"order_ids": [order["id"] for order in waiting]}
            assert http.post("/api/orders/mark_shipped", json=marked).status_code == 200
        numbers = [f"TWELVE-{n:02}" for n in range(ORDERS)]
        orders = [
            an_order(number, buyer_name=f"Buyer {number}", order_date=day, status="Ready to Ship")
            for number in numbers
        ]
        items = [
            {"order_number": number, "sku_id": 900_000 + n, "quantity": 1,
             "product_name": f"Card {n}",
             "product_line": GAMES[n % 3], "set_name": "A Set", "condition": "Near Mint Foil"}
            for n, number in enumerate(numbers)
        ]  # fmt: skip
        for path, rows in (("orders", orders), ("order_items", items)):
            assert http.post(f"/api/v1/{path}", json=rows).status_code == 202

        def arrived() -> bool:
            found = http.get("/api/orders?search=TWELVE").json()["orders"]
            return len(found) == ORDERS and all(order["items"] for order in found)

        eventually(arrived, "the orders with their items")
    return made


def clicks(page: Page) -> int:
    return int(page.evaluate("+sessionStorage.n || 0"))


def test_twelve_orders_are_shipped_with_at_most_six_clicks(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.add_init_script(CLICKS)
        page.goto("/orders")
        for width in (1440, 1024, 390):
            page.set_viewport_size({"width": width, "height": 900})
            button = page.get_by_role("button", name=re.compile("^Mark shipped: Buyer")).first
            box = button.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= width - box["width"], (width, box)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": 1440, "height": 900})
        page.get_by_label("Select this page").click()
        page.get_by_role("button", name="Start pull").click()
        link = page.get_by_role("link", name="Pull on this device")
        # The first card is pulled by the page's form, as where the script is slow to arrive.
        phone = a_phone(browser, str(link.get_attribute("href")), late_script=True)
        assert "Buyer" not in phone.locator("main").inner_text()
        assert "NM Foil" in phone.locator("#current").inner_text()
        for done in range(ORDERS):
            eventually(lambda: pull_if_shown(phone), phone.locator("main").inner_text)
            phone.wait_for_function(
                "n => document.querySelector('#progress progress').value >= n", arg=done + 1
            )
        assert shown(phone) == ORDERS
        phone.get_by_role("heading", name="All done here").wait_for()
        # The phone counts a mark before it is sent.
        phone.wait_for_function("() => document.getElementById('network').textContent === ''")
        phone.context.close()
        page.reload()
        page.get_by_text(f"{ORDERS} orders pulled").wait_for()
        page.locator(".next").get_by_role("button", name="End the pull").click()
        page.get_by_role("button", name=f"Mark {ORDERS} shipped").click()
        page.get_by_role("link", name=f"Print {ORDERS} slips").click()
        page.locator("article.paper").last.wait_for()
        assert page.locator("article.paper").count() == ORDERS
        page.evaluate("print = () => { sessionStorage.printed = 1; }")
        page.get_by_role("button", name="Print", exact=True).click()
        assert page.evaluate("sessionStorage.printed") == "1"
        assert clicks(page) <= 6
        page.goto("/orders")
        page.get_by_text("Nothing to ship").wait_for()

"""Two jobs of a shop with prices in a real browser, with their clicks: a guard for dear foils, and
what has not sold in 180 days, from the search to the promotion that is on.
"""

from __future__ import annotations

import re
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.system.processes import Server
from tests.system.processes import until as eventually
from tests.system.shop_with_pages import NOW, Shop
from tests.system.test_orders_to_ship import CLICKS, clicks
from tests.system.test_pages_in_browser import a_window, settled

from builders import a_csv, a_row, an_order

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]
LYING = 3


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    """A shop with six foils, three of which sold 200 days ago and the others today."""
    seller = server.seller(name="Price jobs")
    rows = [
        a_row(n, name=f"Job card {n}", condition="Near Mint Foil", price="30.00", market="30.00")
        for n in range(1, 2 * LYING + 1)
    ]
    assert seller.finished(seller.upload(a_csv(*rows)))["state"] == "done"
    sold = [(n, NOW - timedelta(days=200 if n <= LYING else 0)) for n in range(1, 2 * LYING + 1)]
    with seller.http() as http:
        orders = [
            an_order(f"JOB-{n}", order_date=at.strftime("%m/%d/%Y"), status="Completed")
            for n, at in sold
        ]
        items = [
            {"order_number": f"JOB-{n}", "sku_id": n, "quantity": 1, "product_name": "Job card"}
            for n, _ in sold
        ]
        for path, body in (("orders", orders), ("order_items", items)):
            assert http.post(f"/api/v1/{path}", json=body).status_code == 202

        def arrived() -> bool:
            found = http.get("/api/cards", params={"search": "unsold>180"}).json()
            return bool(found["total"] == LYING)

        eventually(arrived, "the cards without a sale")
    return Shop(seller, "Price jobs", seller.email, seller.password, 0, 0)


def test_a_guard_is_written_with_at_most_five_clicks(browser: Browser, shop: Shop) -> None:
    """It alone clicks from Today to a guard that is on: Rules, More, New guard, Save and publish."""
    with a_window(browser, shop, viewport={"width": 1440, "height": 900}) as page:
        page.add_init_script(CLICKS)
        page.goto("/today")
        page.get_by_role("link", name="Rules", exact=True).click()
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("link", name="New guard").click()
        settled(page)
        for label, words in (
            ("Name", "Dear foils"),
            ("Cards that match", "foil price>20"),
            ("Never below cost plus percent", "15"),
        ):
            page.locator("input").and_(page.get_by_label(label, exact=True)).fill(words)
        # A bare word looks for a name, so the effect asks what was meant.
        page.locator("#draft").get_by_text("is:foil price>20", exact=True).wait_for()
        search = page.locator("input").and_(page.get_by_label("Cards that match", exact=True))
        search.fill("is:foil price>20")
        page.locator("#draft").get_by_text("Never below cost plus 15%.").wait_for()
        page.get_by_role("button", name="Save and publish").click()
        page.get_by_text("published", exact=True).first.wait_for()
        assert clicks(page) <= 5
    with shop.seller.http() as http:
        [guard] = [r for r in http.get("/api/pricing/rules").json()["rules"] if r.get("guard")]
    assert (guard["query"], guard["floor_cost_bp"]) == ("is:foil price>20", 1_500)


def test_what_has_not_sold_is_promoted_with_at_most_six_clicks(
    browser: Browser, shop: Shop
) -> None:
    """It alone clicks from a search to a promotion that is on: all, More, Start a promotion, the box
    of “never lower”, Start now.
    """
    with a_window(browser, shop, viewport={"width": 1440, "height": 900}) as page:
        page.add_init_script(CLICKS)
        page.goto("/cards")
        page.locator("#search").fill("unsold>180")
        page.locator("#search").press("Enter")
        page.get_by_text(f"{LYING} cards").first.wait_for()
        page.get_by_label("Select this page").click()
        more = page.locator(".selection").get_by_role("button", name="More")
        more.click()
        page.get_by_role("button", name="Start a promotion").click()
        page.wait_for_url("**/pricing/sales/new*")
        settled(page)
        page.get_by_label("Name", exact=True).fill("Lying long")
        page.get_by_label(re.compile("Also lower cards")).click()
        effect = page.locator("#effect-part")
        effect.get_by_text("$81.00").first.wait_for()
        page.get_by_role("button", name="Start now").click()
        page.get_by_text("live", exact=True).first.wait_for()
        assert clicks(page) <= 6
        page.goto("/cards?search=unsold>180&columns=name,price,last_sold")
        page.get_by_role("link", name="Save this view").wait_for()
    with shop.seller.http() as http:
        [sale] = http.get("/api/pricing/sales").json()["sales"]
        assert sale["enabled"]
        eventually(
            lambda: http.get("/api/cards", params={"search": "target=27"}).json()["total"] == LYING,
            "the promotion's prices",
        )

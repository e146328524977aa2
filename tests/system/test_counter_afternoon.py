"""A whole afternoon of a counter in a real browser: a customer's cards are found and priced, the
customer accepts on a phone, the cards are counted and one is worse than it was said to be, credit is
paid and spent, the cards go into stock, and a stranger's cart from the public buylist becomes the
next draft.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages
from tests.system.test_pages_in_browser import a_window, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]
IN_CATALOG = "UPDATE product SET provisional = false"
STOCKED = """
    SELECT quantity, condition, status FROM quick_add WHERE seller_id = %(seller)s ORDER BY id
"""


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    server.sql(IN_CATALOG)
    with made.seller.http() as http:
        assert http.post("/api/buying/presets/hungry").status_code == 200
        assert http.patch("/api/buying/buylist", json={"is_open": True}).status_code == 200
    return made


def a_dear_card(shop: Shop) -> str:
    """Return the name of a card that the rules buy."""
    with shop.seller.http() as http:
        found = http.get("/api/cards", params={"search": "market>5 cond:NM", "per_page": 5}).json()
    return str(found["cards"][0]["product_name"])


def a_phone(browser: Browser, address: str) -> Page:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(address)
    return page


def priced(desk: Page, name: str) -> None:
    """Find the card, and draft an offer of two copies."""
    desk.goto("/buying/offers/new")
    desk.get_by_label("Card name or number").fill(name)
    desk.get_by_role("button", name="Search", exact=True).last.click()
    desk.get_by_label(f"Copies of {name}", exact=True).first.fill("2")
    desk.get_by_role("button", name="Price cards with copies").click()
    desk.wait_for_url(re.compile(r"/buying/offers/\d+"))


def test_an_afternoon_at_the_counter(browser: Browser, shop: Shop) -> None:
    name = a_dear_card(shop)
    with a_window(browser, shop) as desk:
        priced(desk, name)
        offer = desk.url.partition("?")[0]
        look(desk, "a draft")
        desk.locator("main summary").first.click()
        assert desk.get_by_text("The buy rule").first.is_visible()
        desk.get_by_label("New customer name").fill("Mia Moss")
        desk.get_by_role("button", name="Send offer").click()
        desk.get_by_role("button", name="Link for the customer's phone").click()
        link = desk.locator(".share code").inner_text()

        phone = a_phone(browser, link)
        look(phone, "the customer's offer")
        assert "Mia" not in phone.content()
        # The total beside the button follows the ticks and the way of paying.
        total, all_copies = phone.locator(".dock p"), "2 cards"
        assert total.inner_text().startswith(all_copies)
        phone.get_by_label(f"Sell {name}").first.uncheck()
        phone.get_by_text("0 cards").wait_for()
        assert phone.get_by_role("button", name="Accept offer").is_disabled()
        phone.get_by_label(f"Sell {name}").first.check()
        phone.get_by_role("radio", name=re.compile(r"[0-9] cash")).check()
        assert "in cash" in total.inner_text()
        phone.get_by_role("radio", name=re.compile(r"[0-9] store credit")).check()
        assert "in store credit" in total.inner_text()
        phone.get_by_role("button", name="Accept offer").click()
        phone.get_by_text("You accepted this offer.").wait_for()

        desk.get_by_text("The customer accepted for").wait_for()
        desk.get_by_label(f"Copies received of {name}").fill("1")
        desk.get_by_label(f"Condition received of {name}").select_option("LP")
        desk.get_by_role("button", name="Confirm count").click()
        desk.get_by_text("1 of 2 copies were received.").wait_for()
        desk.get_by_role("button", name="Pay", exact=True).click()
        desk.get_by_role("button", name="Add to inventory").click()
        desk.get_by_text("Added to inventory.").wait_for()
        look(desk, "the drafts of an offer")
        assert shop.seller.sql(STOCKED) == [{"quantity": 1, "condition": "LP", "status": "draft"}]
        phone.reload()
        phone.get_by_text("This link opens no offer").wait_for()

        desk.goto(offer)
        desk.get_by_role("link", name="Mia Moss").click()
        balance = desk.locator("dl.facts .money").first.inner_text()
        desk.get_by_label("Amount").fill(balance.strip("$"))
        desk.get_by_role("button", name="Redeem").click()
        desk.get_by_text("Store credit changed.").wait_for()
        assert desk.locator("dl.facts .money").first.inner_text() == "$0.00"

        stranger = a_phone(browser, f"{shop.seller.server.url}/buylist/{shop.seller.id}?q={name}")
        look(stranger, "the public buylist")
        stranger.get_by_label(f"Copies of {name}, Unlimited", exact=True).first.fill("3")
        stranger.get_by_role("button", name=f"Add {name}, Unlimited to cart").first.click()
        stranger.get_by_text("3 cards", exact=True).wait_for()
        look(stranger, "a cart")
        stranger.get_by_role("link", name="View cart").click()
        stranger.get_by_label("Your name").fill("Zed")
        stranger.get_by_label("Your email or phone").fill("zed@example.invalid")
        stranger.get_by_role("button", name="Send to").click()
        stranger.get_by_text("Your cart is sent").wait_for()
        desk.goto("/today")
        desk.get_by_text("offer to customers waits for you").wait_for()
        desk.goto("/buying/offers?status=draft")
        desk.get_by_text("from the public buylist").wait_for()

"""The five tasks of a new user, each counted in clicks, keys and texts: a double click counts as
one, and so do a text that is typed into a field and each other key.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages, recommended
from tests.system.test_pages_in_browser import a_window, settled

from schedule import whole_night

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [
    pytest.mark.day,
    pytest.mark.night,
    whole_night,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]


class Hand:
    """A person's hand: what it does is counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def click(self, what: Locator, **options: Any) -> None:
        self.count += 1
        what.click(**options)

    def press(self, key: str) -> None:
        self.count += 1
        self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.count += 1
        self.page.keyboard.type(text)


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    recommended(made)
    return made


def done(page: Page) -> None:
    page.locator("#notices :is(.toast, .notice.good)").first.wait_for()


def test_a_card_is_found_and_its_price_changed(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards")
        hand = Hand(page)
        hand.type("dark ritual")
        page.wait_for_url(re.compile("search=dark"))
        settled(page)
        row = page.locator("[data-rows] > tr", has_text="Dark Ritual").first
        cell = row.locator("td.price")
        hand.click(cell, click_count=2)
        hand.type("149.00")
        hand.press("Enter")
        done(page)
        assert hand.count <= 4


def test_the_five_best_prices_are_approved(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/today")
        hand = Hand(page)
        hand.click(page.get_by_role("navigation", name="Pages").get_by_text("Suggestions"))
        page.wait_for_url("**/recommendations")
        boxes = page.locator("tbody input[name=take]")
        hand.click(boxes.nth(0))
        hand.click(boxes.nth(4), modifiers=["Shift"])
        hand.click(page.locator(".selection button[name=answer][value=accepted]"))
        page.get_by_text("5 prices approved.").wait_for()
        assert hand.count <= 4


def test_a_pull_of_all_orders_is_started(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        with shop.seller.http() as http:
            http.post(f"/api/pull_sessions/{shop.session_id}/cancel")
        page.goto("/today")
        hand = Hand(page)
        hand.click(page.get_by_role("navigation", name="Pages").get_by_text("Pulls"))
        hand.click(page.get_by_role("button", name=re.compile("Open a pull of")))
        page.wait_for_url(re.compile(r"/pulls/\d+"))
        assert hand.count <= 2


def test_a_rule_for_foils_is_made_and_its_effect_seen(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/pricing")
        hand = Hand(page)
        hand.click(page.get_by_role("link", name="New rule"))
        page.wait_for_url("**/pricing/rules/new")
        hand.click(page.locator("#f-name"))
        hand.type("Foils")
        hand.press("Tab")
        hand.type("is:foil")
        hand.click(page.locator("#f-percent"))
        hand.type("5")
        page.locator("#draft").get_by_text(re.compile("5% above the market price")).first.wait_for()
        hand.click(page.get_by_role("button", name="Save draft"))
        page.wait_for_url(re.compile(r"/pricing/rules/\d+"))
        assert hand.count <= 8


def test_twenty_cards_are_put_on_a_shelf(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards")
        hand = Hand(page)
        boxes = page.locator("tbody input[name=card_ids]")
        hand.click(boxes.nth(0))
        hand.click(boxes.nth(19), modifiers=["Shift"])
        assert page.locator("tbody input[name=card_ids]:checked").count() == 20
        hand.click(page.locator(".selection").get_by_text("Shelve"))
        hand.click(page.get_by_role("button", name="Assign location"))
        done(page)
        assert hand.count <= 6

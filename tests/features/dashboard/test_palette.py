"""What the palette and the page that finds anything know: every page, tab and action, by the words
that owners of shops use for them.
"""

from __future__ import annotations

import re

import pytest

from browsers import joined, operates, signed_in
from builders import a_csv, a_row
from cardsync.dashboard.page_list import pages
from cardsync.dashboard.pages import pricing, settings_pages

# An owner's words, and the page that they lead to first.
WORDS = {
    "backup": "/settings/data", "restore": "/settings/data", "delete account": "/settings/data",
    "password": "/settings/sign-in", "passkey": "/settings/sign-in",
    "invite": "/settings/people", "staff": "/settings/people", "employee": "/settings/people",
    "api key": "/settings/keys", "assistant": "/settings/assistants", "claude": "/settings/assistants",
    "chatgpt": "/settings/assistants", "dark mode": "/settings/appearance",
    "theme": "/settings/appearance", "email notif": "/settings/notices",
    "digest": "/settings/notices", "quiet hours": "/settings/sync", "pause": "/settings/sync",
    "time zone": "/settings/shop", "store name": "/settings/shop", "postage": "/settings/shop",
    "billing": "/account/credits", "sign out": "/account", "log out": "/account",
    "fees": "/pricing/settings", "daily limit": "/pricing/settings", "fixed price": "/pricing/pins",
    "strategy": "/pricing/presets", "new rule": "/pricing/rules/new", "discount": "/pricing/sales",
    "promo": "/pricing/sales", "labels": "/print/labels", "dymo": "/print/labels",
    "ship": "/orders", "refund": "/returns", "pick list": "/pulls", "inventory": "/cards",
    "scan": "/add-cards", "shoebox": "/buying", "store credit": "/buying/customers",
    "buylist": "/buying/buylist", "stocktake": "/counts", "binder": "/shelves",
    "margin": "/profit", "revenue": "/sales", "audit": "/counts", "csv": "/cards/export.csv",
    "export": "/cards/export.csv", "roll back": "/pricing/rollback", "approve": "/pricing/reviews",
}  # fmt: skip
# What a person does not open by name: parts of pages, and the doors of set-up.
PARTS = {
    "/", "/find", "/find/pages", "/cards/count", "/cards/more", "/cards/order", "/cards/peek",
    "/orders/peek", "/orders/ship",
    "/sync/state",
    "/sync/prices.csv", "/sync/prices/count", "/shelves/box", "/styleguide", "/recommendations/accept",
    "/lists/export.csv", "/pricing/runs/export.csv", "/activity/export.csv", "/shelves/put",
    "/print/labels", "/print/slips",
}  # fmt: skip


def hrefs(page, kind="Pages"):
    return [
        href.replace("&amp;", "&")
        for href, found in re.findall(r'href="([^"]*)" data-found="([^"]+)"', page)
        if found == kind
    ]


async def of_palette(browser):
    """The palette's list, as a page leads to it."""
    [address] = re.findall(r'data-from="([^"]+)"', (await browser.get("/today")).text)
    answer = await browser.get(address)
    assert answer.headers["cache-control"].startswith("private, max-age")
    return re.findall(r'role="option" data-href="([^"]+)"', answer.text)


@pytest.fixture
async def owner(a_seller):
    seller = await a_seller()
    await operates(seller)
    return await signed_in(seller)


async def test_every_page_and_tab_is_known(owner):
    known = set(await of_palette(owner))
    reads = {
        route.path
        for route in pages.routes
        for handler in getattr(route, "route_handlers", ())
        if "GET" in handler.http_methods and "{" not in route.path
    }
    assert sorted(reads - PARTS - known) == []
    tabs = {path for path, *_ in settings_pages.TABS}
    tabs |= {path for group in pricing.TABS for path, *_ in group}
    assert sorted(tabs - known) == []


async def test_owners_words_find_the_right_page_first(owner):
    wrong = {}
    for words, path in WORDS.items():
        [first, *_] = hrefs((await owner.get("/find", params={"search": words})).text) or [""]
        if first != path:
            wrong[words] = first
    assert wrong == {}
    assert len(WORDS) >= 40


async def test_all_that_the_palette_names_opens(owner):
    for path in await of_palette(owner):
        assert (await owner.get(path, follow_redirects=True)).status_code == 200, path


async def test_staff_find_no_page_that_they_cannot_open(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    for path in await of_palette(staff):
        assert (await staff.get(path, follow_redirects=True)).status_code == 200, path
    assert hrefs((await staff.get("/find?search=backup")).text) == []
    assert hrefs((await staff.get("/find?search=profit")).text) == []


async def test_who_sees_other_pages_has_another_list_and_no_page_carries_it(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    texts = [(await browser.get(path)).text for browser in (owner, staff)
             for path in ("/today", "/cards")]  # fmt: skip
    addresses = [re.findall(r'data-from="([^"]+)"', text) for text in texts]
    assert addresses[0] == addresses[1] != addresses[2] == addresses[3]
    assert all('role="option"' not in text for text in texts)


async def test_a_hit_has_its_price_and_stock_and_what_can_be_sold_comes_first(a_seller):
    seller = await a_seller()
    rows = [
        a_row(1, name="Ant A", quantity=0, price="1.00"),
        a_row(2, name="Ant B", quantity=3, price="7.50"),
        a_row(3, name="Ant C", quantity=1, price="2.00"),
        *(a_row(number, name=f"Bee {number}") for number in range(4, 24)),
    ]
    await seller.import_csv(a_csv(*(row | {"Total Quantity": "1"} for row in rows)))
    await seller.import_csv(a_csv(*rows))
    browser = await signed_in(seller)
    page = (await browser.get("/find?search=ant")).text
    assert re.findall(r"Ant [ABC]", page) == ["Ant B", "Ant C", "Ant A"]
    parts = [
        (await browser.get(f"/find?search=ant&part={part}&most=4")).text
        for part in ("cards", "sold_out")
    ]
    assert [re.findall(r"Ant [ABC]", part) for part in parts] == [["Ant B", "Ant C"], ["Ant A"]]
    assert "$7.50" in page
    assert "3 copies" in page
    assert "out of stock" in page

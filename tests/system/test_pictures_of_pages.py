"""Every page looks as it did when a person last looked at it: at three widths, light and dark.

A picture that changed on purpose is kept anew by `KEEP_PICTURES=1` and this file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.kept_pictures import differs
from tests.system.processes import Server, a_folder
from tests.system.shop_with_pages import Shop, a_shop_with_pages, lived_in, recommended
from tests.system.test_pages_in_browser import a_window, ids_of, settled
from tests.system.test_phones_pull import a_link

import pages
from schedule import whole_night

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.day,
    pytest.mark.night,
    whole_night,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]

LOOKS = [
    (width, height, scheme)
    for width, height in ((390, 844), (1024, 768), (1440, 900))
    for scheme in ("light", "dark")
]


# The words find something in this shop, and the days have an upload.
QUERIES: Mapping[str, str] = {
    "/find": "search=dragon",
    "/lists/{list_id:int}/add": "search=dragon",
    "/pricing/backtest": "from=2026-01-01&to=2099-12-31",
}
# Pages in a state of their own.
STATES = (
    "/cards?card={card_id}",
    "/cards?selected",
    "/cards/999999999",
    "/orders?order={order_id}",
)
# Every phone is this one, so that no other has claimed its card.
ONE_PHONE = "localStorage.setItem('pull-device', '\"00112233445566778899aabbccddeeff\"')"


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    lived_in(made)
    recommended(made)
    return made


@pytest.fixture(scope="module")
def link(shop: Shop) -> str:
    return a_link(shop)[1]


@pytest.fixture(scope="module")
def set_up() -> Iterator[str]:
    """The link that begins an installation without a shop."""
    with a_folder() as folder, Server(folder) as started:
        yield started.run("set-up-link", "--port", str(started.port)).out.strip()


def addresses(ids: Mapping[str, int | str]) -> dict[str, str]:
    """Return the addresses of all pages, each by its route, which names its picture: it has no
    ids.
    """
    found = {}
    for one in pages.built("page", "development"):
        query = QUERIES.get(one.route)
        path = pages.filled(one.route, ids)
        found[one.route] = f"{path}?{query}" if query else one.address(ids)
    return found | {state: pages.filled(state, ids) for state in STATES}


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_page_looks_as_its_kept_picture(
    browser: Browser, shop: Shop, width: int, height: int, scheme: Any
) -> None:
    size: Any = {"width": width, "height": height}
    changed = {}
    with a_window(browser, shop, viewport=size, color_scheme=scheme) as page:
        for route, address in addresses(ids_of(page, shop)).items():
            page.goto(address)
            if route == "/cards?selected":
                page.locator("input[name=card_ids]").first.check()
            settled(page)
            changed[route] = differs(page, f"{width}-{scheme}", route)
    assert {route: how for route, how in changed.items() if how} == {}


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_page_of_strangers_looks_as_its_kept_picture(
    browser: Browser,
    shop: Shop,
    link: str,
    set_up: str,
    width: int,
    height: int,
    scheme: Any,
) -> None:
    url = shop.seller.server.url
    buylist = f"{url}/buylist/{shop.seller.id}?q=dragon"
    shown = {"/sign-in": f"{url}/sign-in", "/buylist": buylist, "/p": link, "/set-up": set_up}
    size: Any = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme)
    context.add_init_script(ONE_PHONE)
    changed = {}
    page = context.new_page()
    for route, address in shown.items():
        page.goto(address)
        settled(page)
        changed[route] = differs(page, f"{width}-{scheme}", route)
    context.close()
    assert {route: how for route, how in changed.items() if how} == {}

"""Every page looks as it did when a person last looked at it: at three widths, light and dark.

A picture that changed on purpose is kept anew by `KEEP_PICTURES=1` and this file.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.kept_pictures import differs
from tests.soak import night
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages, recommended
from tests.system.test_pages_in_browser import a_window, ids_of, settled

from pages import built

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    night,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]

LOOKS = [
    (width, height, scheme)
    for width, height in ((390, 844), (1024, 768), (1440, 900))
    for scheme in ("light", "dark")
]


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    recommended(made)
    return made


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_page_looks_as_its_kept_picture(
    browser: Browser, shop: Shop, width: int, height: int, scheme: Any
) -> None:
    size: Any = {"width": width, "height": height}
    changed = {}
    with a_window(browser, shop, viewport=size, color_scheme=scheme) as page:
        ids = ids_of(page, shop)
        for one in built("page", "development"):
            page.goto(one.address(ids))
            settled(page)
            # The route has no ids, so that a picture keeps its name.
            changed[one.route] = differs(page, f"{width}-{scheme}", one.route)
    assert {route: how for route, how in changed.items() if how} == {}

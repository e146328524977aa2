"""Printed pages as PDF by chromium: labels are where their sheet says, within half a millimetre,
and a decoder reads the QR codes back.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pypdfium2
import pytest
import zxingcpp
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages
from tests.system.test_pages_in_browser import a_window

from cardsync.stock.printing.sheets import SHEETS, Sheet, layout

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]
# Pixels a millimetre: 600 dots an inch.
DOTS = 600 / 25.4
WITHIN = 0.5


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    return a_shop_with_pages(server)


@pytest.fixture(scope="module")
def page(browser: Browser, shop: Shop) -> Iterator[Page]:
    with a_window(browser, shop) as opened:
        yield opened


def printed(page: Page, address: str = "") -> list[Any]:
    """Return the pages of the PDF that chromium prints, each as grey pixels, with their sizes."""
    if address:
        page.goto(address)
    pdf = pypdfium2.PdfDocument(page.pdf(prefer_css_page_size=True))
    return [sheet.render(scale=600 / 72, grayscale=True).to_numpy().squeeze() for sheet in pdf]


def is_dark(pixels: Any, x: float, y: float, across: bool) -> float | None:
    """Return how far from a point, in millimetres, the nearest dark pixel lies, to either side."""
    at, other = round(x * DOTS), round(y * DOTS)
    reach = round(1 * DOTS)
    if across:
        found = pixels[min(other, pixels.shape[0] - 1), max(0, at - reach) : at + reach] < 128
        begins = max(0, at - reach) - at
    else:
        found = pixels[max(0, other - reach) : other + reach, min(at, pixels.shape[1] - 1)] < 128
        begins = max(0, other - reach) - other
    return min((abs(begins + n) / DOTS for n, dark in enumerate(found) if dark), default=None)


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize("sheet", SHEETS.values(), ids=list(SHEETS))
def test_the_labels_of_each_sheet_lie_within_half_a_millimetre(page: Page, sheet: Sheet) -> None:
    [pixels] = printed(page, f"/print/labels?kind=test&sheet={sheet.key}")
    height, width = pixels.shape
    assert abs(width / DOTS - float(sheet.page.width)) < WITHIN
    assert abs(height / DOTS - float(sheet.page.height)) < WITHIN
    label = (float(sheet.label.width), float(sheet.label.height))
    wrong = []
    for number, at in enumerate(layout(sheet, sheet.labels), start=1):
        left, top = float(at.left), float(at.top)
        # The edges' lines are looked for where no text stands: near the lower right corner.
        x, y = left + label[0] * 0.9, top + label[1] * 0.9
        for name, off in (
            ("left", is_dark(pixels, left, y, True)),
            ("right", is_dark(pixels, left + label[0], y, True)),
            ("top", is_dark(pixels, x, top, False)),
            ("bottom", is_dark(pixels, x, top + label[1], False)),
        ):
            if off is None or off > WITHIN:
                wrong.append((number, name, off))
    assert wrong == []


def codes(pixels: Any) -> list[tuple[str, float, float]]:
    """Return the texts of a page's QR codes, each with the middle of its code in millimetres."""
    # Small kinds of QR codes, which we do not print, are found by chance within larger ones.
    found = zxingcpp.read_barcodes(pixels, formats=zxingcpp.BarcodeFormat.QRCodeModel2)
    return [
        (
            one.text,
            (one.position.top_left.x + one.position.bottom_right.x) / 2 / DOTS,
            (one.position.top_left.y + one.position.bottom_right.y) / 2 / DOTS,
        )
        for one in found
    ]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("key", "start"), [("avery-5160", 7), ("herma-4200", 3), ("dymo-11354", 1)]
)
def test_the_codes_of_cards_are_read_back_from_their_places(
    page: Page, shop: Shop, key: str, start: int
) -> None:
    sheet = SHEETS[key]
    cards = page.request.get("/api/cards?per_page=8&sort=name").json()["cards"]
    address = f"/print/labels?sheet={key}&start={start}&per_page=8&sort=name"
    sheets = printed(page, address)
    origin = shop.seller.server.url
    told = {}
    for number, pixels in enumerate(sheets, start=1):
        told |= {text: (number, x, y) for text, x, y in codes(pixels)}
    assert told.keys() == {f"{origin}/cards/{card['id']}" for card in cards}
    for card, at in zip(cards, layout(sheet, len(cards), start), strict=True):
        number, x, y = told[f"{origin}/cards/{card['id']}"]
        side = float(min(sheet.label.height, sheet.label.width / 2)) - 2.4
        assert number == at.page
        assert abs(x - (float(at.left) + 1.2 + side / 2)) < WITHIN
        # A code stands at the top of its label.
        assert abs(y - (float(at.top) + 1.2 + side / 2)) < WITHIN


@pytest.mark.night
def test_the_codes_of_boxes_lead_to_their_boxes(page: Page, shop: Shop) -> None:
    [pixels] = printed(page, "/print/labels?kind=boxes&first=11&last=14&sheet=avery-l7163")
    url = shop.seller.server.url
    assert sorted(text for text, _, _ in codes(pixels)) == [
        f"{url}/shelves/{box}" for box in range(11, 15)
    ]


def test_the_codes_of_a_cover_open_the_queues_of_phones(page: Page, shop: Shop) -> None:
    page.goto(f"/pulls/{shop.session_id}")
    page.get_by_role("button", name="More for this pull").click()
    page.get_by_role("button", name="Print QR codes by game").click()
    page.locator("img.qr").first.wait_for()
    links = page.get_by_role("link", name="Pull on this device")
    told = {links.nth(n).get_attribute("href") for n in range(links.count())}
    assert told == {text for pixels in printed(page) for text, _, _ in codes(pixels)}
    for address in told:
        assert page.request.get(f"{address}/queue").json()["lines"]


@pytest.mark.night
def test_other_papers_print_without_what_is_only_for_screens(page: Page, shop: Shop) -> None:
    """The sheets of tables keep to the page's width."""
    order = page.request.get("/api/orders?per_page=1&search=Buyer").json()["orders"][0]["id"]
    for address in ("/print/restock", f"/print/orders/{order}", f"/print/pulls/{shop.session_id}"):
        page.goto(address)
        page.emulate_media(media="print")
        hidden = page.locator("header.head")
        assert not hidden.is_visible(), address
        page.emulate_media(media="screen")
        for pixels in printed(page, address):
            ink = (pixels < 128).any(axis=0)
            assert not ink[:4].any(), address
            assert not ink[-4:].any(), address

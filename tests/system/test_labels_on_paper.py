"""Two full sheets of labels as Debian's chromium prints them: in the PDF each label's outline is
where the layout says, also on the second page. Without chromium these are skipped; the soak runs
them, because test_printed_pages.py looks at one sheet of each kind every time.
"""

from __future__ import annotations

import re
import shutil
import zlib
from typing import TYPE_CHECKING

import pytest

from cardsync.stock.printing.sheets import SHEETS, Sheet, layout
from cardsync.stock.printing.style import style_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium")
NEAR = 0.5
MM_A_PIXEL = 25.4 / 96
MM_A_POINT = 25.4 / 72
OUTLINE = re.compile(rb"([\d.]+) ([\d.]+) [\d.]+ [\d.]+ re\nS")
SHIFT = re.compile(rb"([\d.]+) 0 0 [\d.]+ (-?[\d.]+) (-?[\d.]+) cm\n0 0 0 RG")

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]


def printed(browser: Browser, sheet: Sheet, pages: int) -> bytes:
    """The PDF of full pages of labels with outlines."""
    labels = "".join(f'<div class="label p{n}"></div>' for n in range(1, sheet.labels + 1))
    body = f'<main>{f"""<div class="page">{labels}</div>""" * pages}</main>'
    page = browser.new_page()
    page.set_content(
        f'<!doctype html><style>{style_of(sheet)}</style><body class="outlined">{body}'
    )
    made = page.pdf(prefer_css_page_size=True)
    page.close()
    return made


def corners(pdf: bytes) -> list[list[tuple[float, float]]]:
    """The upper left corners of the outlines in millimetres, page by page."""
    found = []
    for stream in re.findall(rb"(?<!end)stream\r?\n(.*?)endstream", pdf, re.S):
        try:
            content = zlib.decompressobj().decompress(stream)
        except zlib.error:
            continue
        if not (shift := SHIFT.search(content)):
            continue
        scale, right, down = map(float, shift.groups())
        # The line's middle is drawn, half a pixel inside.
        found.append(
            [
                (
                    (float(x) - 0.5 + right / scale) * MM_A_PIXEL,
                    (float(y) - 0.5 + down / scale) * MM_A_PIXEL,
                )
                for x, y in OUTLINE.findall(content)
            ]
        )
    return found


@pytest.mark.parametrize("key", SHEETS)
def test_every_label_lies_within_half_a_millimetre(browser, key):
    sheet = SHEETS[key]
    pdf = printed(browser, sheet, 2)
    sizes = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert len(sizes) == 2
    for width, height in sizes:
        assert float(width) * MM_A_POINT == pytest.approx(float(sheet.page.width), abs=NEAR)
        assert float(height) * MM_A_POINT == pytest.approx(float(sheet.page.height), abs=NEAR)
    told = [(float(at.left), float(at.top)) for at in layout(sheet, sheet.labels)]
    pages = corners(pdf)
    assert len(pages) == 2
    for page in pages:
        assert len(page) == sheet.labels
        for (left, top), (x, y) in zip(told, page, strict=True):
            assert (x, y) == pytest.approx((left, top), abs=NEAR)

"""Compares a picture of a page with the one that is kept in tests/pictures, with a tolerance.

`KEEP_PICTURES=1` keeps the new ones instead. They are small: a third of the size, as WebP. What
differs is written in full size to a folder that the failure names, so that a person can look at it.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PIL import Image, ImageChops

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER: Final = Path(__file__).parent / "pictures"
KEEPS: Final = os.environ.get("KEEP_PICTURES") == "1"
SCALE: Final = 3
# Fonts are drawn a little differently by each machine: a cell of so many points, which is about
# a word, differs if its color is off by more than this, of 255.
CELL, COLOR = 8, 24
# The share of a strip's cells that may differ: a day changes a number here and there.
TOLERANCE: Final = 0.02
# A page is compared down to here, in strips, so that a long one hides no more than a short one.
HIGHEST, STRIP = 3_000, 304

# Times, ids, what is drawn by days, codes and the caret differ from run to run. A picture that
# waits until it is scrolled to would be there or not. It returns the height of the page.
_STILL: Final = """async highest => {
  for (const time of document.querySelectorAll('time')) time.textContent = 'Nov 26';
  const drawn = document.querySelectorAll('.bars rect, .meter, .canvas, img[src^="data:"]');
  for (const one of drawn) one.style.visibility = 'hidden';
  document.activeElement?.blur();
  scrollTo(0, 0);
  const pictures = [...document.images].filter(
    one => one.getBoundingClientRect().top < highest,
  );
  for (const one of pictures) one.loading = 'eager';
  await Promise.all(pictures.map(one => one.decode().catch(() => {})));
  return Math.min(document.documentElement.scrollHeight, highest);
}"""


def name_of(route: str) -> str:
    """Return a file name for a route."""
    return re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-") or "start"


def differs(page: Page, look: str, route: str) -> str:
    """Return how a page differs from its kept picture; nothing where it does not, or is kept."""
    height = page.evaluate(_STILL, HIGHEST)
    width = page.evaluate("innerWidth")
    whole: Any = {"x": 0, "y": 0, "width": width, "height": height}
    taken = page.screenshot(
        full_page=True, clip=whole, animations="disabled", type="jpeg", quality=90
    )
    new = _small(Image.open(io.BytesIO(taken)))
    kept = FOLDER / look / f"{name_of(route)}.webp"
    if KEEPS:
        kept.parent.mkdir(parents=True, exist_ok=True)
        new.save(kept, quality=60, method=6)
        return ""
    if not kept.exists():
        return f"{kept.relative_to(FOLDER)} is not kept yet"
    share = changed(new, Image.open(kept).convert("RGB"))
    if share <= TOLERANCE:
        return ""
    shown = Path(tempfile.gettempdir()) / "cardsync-pictures" / look / f"{name_of(route)}.jpg"
    shown.parent.mkdir(parents=True, exist_ok=True)
    shown.write_bytes(taken)
    return f"{share:.1%} changed: look at {shown}"


def _small(picture: Image.Image) -> Image.Image:
    size = (picture.width // SCALE, picture.height // SCALE)
    return picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)


def changed(one: Image.Image, other: Image.Image) -> float:
    """Return the part of the cells, 0 to 1, in which two pictures differ, of the strip in which
    most do; 1 for other widths. What one has below the other's end differs.
    """
    if one.width != other.width:
        return 1.0
    whole = (0, 0, one.width, max(one.height, other.height))
    difference = ImageChops.difference(one.crop(whole), other.crop(whole))
    tops = range(0, difference.height, STRIP)
    return max(_far(difference.crop((0, top, one.width, top + STRIP))) for top in tops)


def _far(strip: Image.Image) -> float:
    cells = (-(-strip.width // CELL), STRIP // CELL)
    bands = [band.tobytes() for band in strip.resize(cells, Image.Resampling.BOX).split()]
    far = [max(point) > COLOR for point in zip(*bands, strict=True)]
    return sum(far) / len(far)

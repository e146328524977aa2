"""Takes a picture of what the agent's tab shows: PNG, masked, scaled down until it is small enough
for the server.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cardsync_agent.browser.masks import covered, masked_elements
from cardsync_agent.browser.origins import shown
from cardsync_agent.browser.trouble import StepNotDone, browser_errors
from cardsync_agent.workflow.pack import Pack

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_BYTES = 2_000_000
_SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08)


@dataclass(frozen=True)
class Picture:
    """`page_url` has no query, since that may hold personal data, too."""

    content: bytes = field(repr=False)
    page_url: str


def picture(page: Page, pack: Pack, most_bytes: int = MOST_BYTES) -> Picture:
    """Raises StepNotDone where no picture can be taken, and BrowserGone."""
    with browser_errors(), covered(page, masked_elements(page, pack)):
        return Picture(_png(page, most_bytes), shown(page.url))


def _png(page: Page, most_bytes: int) -> bytes:
    session = page.context.new_cdp_session(page)
    try:
        seen = session.send("Page.getLayoutMetrics")["cssVisualViewport"]
        area = {
            "x": seen["pageX"], "y": seen["pageY"],
            "width": seen["clientWidth"], "height": seen["clientHeight"],
        }  # fmt: skip
        # On a screen with two pixels to a point, a scale of 1 would be a picture of twice the size.
        density = float(page.evaluate("() => window.devicePixelRatio")) or 1.0
        for scale in _SCALES:
            clip = {**area, "scale": scale / density}
            taken = session.send("Page.captureScreenshot", {"format": "png", "clip": clip})
            content = base64.b64decode(taken["data"])
            if len(content) <= most_bytes:
                return content
    finally:
        session.detach()
    raise StepNotDone(f"no picture of the page has less than {most_bytes:,} bytes")

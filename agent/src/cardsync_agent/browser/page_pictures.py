"""Takes a picture of the agent's tab: PNG, masked, scaled down until it is small enough for the
server.
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
# A tab behind another tab may give no picture for minutes; the front tab takes tenths of a second.
_LONGEST_MS = 5_000.0
_SCALES = (0.7, 0.5, 0.35, 0.25, 0.15, 0.08)
# The page itself scales the picture, because the agent has no image library.
_SMALLER = """
async ([content, scale]) => {
  const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
  const whole = await createImageBitmap(new Blob([bytes]));
  const size = [whole.width, whole.height].map((of) => Math.max(1, Math.round(of * scale)));
  const canvas = new OffscreenCanvas(...size);
  canvas.getContext('2d').drawImage(whole, 0, 0, ...size);
  const made = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  let out = '';
  for (let at = 0; at < made.length; at += 8192) {
    out += String.fromCharCode(...made.subarray(at, at + 8192));
  }
  return btoa(out);
}
"""


@dataclass(frozen=True)
class Picture:
    """`page_url` has no query, because a query may contain personal data."""

    content: bytes = field(repr=False)
    page_url: str


def picture(page: Page, pack: Pack, most_bytes: int = MOST_BYTES) -> Picture:
    """Take a picture. Raises StepNotDone if no picture can be taken, and BrowserGone."""
    with browser_errors(), covered(page, masked_elements(page, pack)):
        return Picture(_png(page, most_bytes), shown(page.url))


def _png(page: Page, most_bytes: int) -> bytes:
    whole = page.screenshot(scale="css", caret="initial", timeout=_LONGEST_MS)
    if len(whole) <= most_bytes:
        return whole
    given = base64.b64encode(whole).decode()
    for scale in _SCALES:
        content = base64.b64decode(page.evaluate(_SMALLER, [given, scale]))
        if len(content) <= most_bytes:
            return content
    raise StepNotDone(f"no picture of the page has less than {most_bytes:,} bytes")

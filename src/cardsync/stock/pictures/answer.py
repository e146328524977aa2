"""Builds the response for a picture, with caching headers, so that a browser requests each picture
only once.
"""

from __future__ import annotations

from typing import Final

from litestar import Response

from cardsync.stock.pictures.read_pictures import PictureAnswer

# A product's picture does not change; a card's picture changes with its photo and its product.
FOREVER: Final = "private, max-age=31536000, immutable"
A_DAY: Final = "private, max-age=86400"
# Browsers soon request a stand-in again, because the server may have a picture by then.
FOR_NOW: Final = "private, max-age=300"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Vary": "Cookie",
}


def answer(shown: PictureAnswer, none_match: str | None, kept_for: str) -> Response[bytes]:
    """Return the picture, or 304 if the browser already has it."""
    known = {tag.strip().removeprefix("W/") for tag in (none_match or "").split(",")}
    headers = HEADERS | {
        "ETag": shown.tag,
        "Cache-Control": kept_for if shown.kept else FOR_NOW,
    }
    if shown.tag in known:
        return Response(b"", status_code=304, media_type=shown.media_type, headers=headers)
    return Response(shown.content, media_type=shown.media_type, headers=headers)

"""Fetches a client's metadata document from the address that the client names."""

from __future__ import annotations

from typing import Final

import msgspec

from cardsync.platform.value_types import Json
from cardsync.web.public_fetch import FetchRequest, NotFetched, Resolver, fetch, resolve

SECONDS: Final = 5.0
BYTES_MOST: Final = 65_536


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


async def fetch_json(url: str, *, development: bool = False, look_up: Resolver = resolve) -> Json:
    """Return the document as JSON. Raises NotFetched."""
    asked = FetchRequest("application/json", _is_json, "it is no JSON", BYTES_MOST, SECONDS)
    body = await fetch(url, asked, development=development, look_up=look_up)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotFetched("it is no JSON") from None

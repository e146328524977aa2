"""Parses ids of cards from a query."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from cardsync.platform import errors
from cardsync.platform.kit.typed_numbers import read_id

MarketplaceIds = Annotated[
    list[str] | None, QueryParameter(description="Cards by the marketplace's id; repeatable")
]
CardIds = Annotated[list[str] | None, QueryParameter(description="Cards by our id; repeatable")]


def read_ids(name: str, given: list[str] | None) -> list[int]:
    """Return the ids of a query parameter that may be repeated or contain commas. Raises
    InvalidPayload.
    """
    found: list[int] = []
    for said in ",".join(given or []).split(","):
        digits = said.strip()
        if not digits:
            continue
        if (id := read_id(digits)) is None:
            raise errors.InvalidPayload(f"{name} must be an integer, not {digits[:40]!r}")
        found.append(id)
    return list(dict.fromkeys(found))

"""Reads ids of cards from an address."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from cardsync.platform import errors

MarketplaceIds = Annotated[
    list[str] | None, QueryParameter(description="Cards by the marketplace's id; repeatable")
]
CardIds = Annotated[list[str] | None, QueryParameter(description="Cards by our id; repeatable")]


def read_ids(name: str, given: list[str] | None) -> list[int]:
    """Return ids that are repeated or separated by commas. Raises InvalidPayload."""
    found: list[int] = []
    for said in ",".join(given or []).split(","):
        digits = said.strip()
        if not digits:
            continue
        plain = digits.removeprefix("-")
        if not (plain.isascii() and plain.isdigit() and len(plain) < 19):
            raise errors.InvalidPayload(f"{name} must be an integer, not {digits[:40]!r}")
        found.append(int(digits))
    return list(dict.fromkeys(found))

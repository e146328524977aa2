"""Reads the query of GET /api/cards into a typed filter. Pure.

A page number or page size out of range becomes the nearest allowed number. An unknown status, sort
or direction is refused with 422. A list of ids that is empty or malformed selects no cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast, get_args

from cardsync.platform import errors, limits
from cardsync.platform.kit.row_pages import OF_CARDS, Paging, read_paging
from cardsync.platform.kit.typed_numbers import whole
from cardsync.stock.search.fields import LINE_NAMES
from cardsync.stock.search.folding import folded

Status = Literal["active", "gone", "all"]
Sort = Literal["name", "set", "number", "price", "target", "quantity", "updated", "location"]
Direction = Literal["asc", "desc"]

Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CardFilter:
    """A filter that selects the cards that match all its fields. `ids` is None if the query has no
    ids.
    """

    search: str = ""
    game: str = ""
    status: Status = "active"
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class CardPage(Paging):
    page: int = 1
    per_page: int = limits.CARDS_PER_PAGE
    sort: Sort = "name"
    direction: Direction = "asc"


def read_filter(given: Given) -> CardFilter:
    """Read the filter of a query. Raises InvalidPayload."""
    return CardFilter(
        search=_last(given, "search"),
        game=line_of(_last(given, "game"), _last(given, "product_line")),
        status=cast(Status, _one_of(given, "status", get_args(Status)) or "active"),
        ids=None if (ids := selected_ids(given)) is None else ids_of(ids),
    )


def read_page(given: Given) -> CardPage:
    """Read the page of a query. Raises InvalidPayload."""
    return CardPage(
        **asdict(read_paging(_last(given, "page"), _last(given, "per_page"), *OF_CARDS)),
        sort=cast(Sort, _one_of(given, "sort", get_args(Sort)) or "name"),
        direction=cast(Direction, _one_of(given, "direction", get_args(Direction)) or "asc"),
    )


def line_of(game: str, product_line: str) -> str:
    """Return the product line of `game` or `product_line`, two names of one parameter. Raises
    InvalidPayload if the two name different lines.
    """
    named = [line for text in (game, product_line) if (line := game_of(text))]
    if len(set(named)) > 1:
        raise errors.InvalidPayload(
            "game and product_line are the same thing: they name two product lines"
        )
    return named[0] if named else ""


def game_of(text: str) -> str:
    return LINE_NAMES.get(folded(text).strip(), text.strip().casefold())


def selected_ids(given: Given) -> str | None:
    """Return the values of the parameter `selected_ids`, joined by commas; None if it is absent."""
    return ",".join(given["selected_ids"]) if "selected_ids" in given else None


def ids_of(given: object) -> tuple[int, ...]:
    """Parse card ids from an array or a comma-separated text; the result is empty if any part is
    malformed.
    """
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    read = [_id(part) for part in parts]
    return () if None in read else tuple(dict.fromkeys(cast("list[int]", read)))


def _id(part: object) -> int | None:
    if isinstance(part, str):
        return whole(part.strip(), limits.LARGEST_ID)
    return (
        part if isinstance(part, int) and not isinstance(part, bool) and 0 <= part < 2**63 else None
    )


def _last(given: Given, name: str) -> str:
    """Return the parameter's last value, with U+FFFD in place of NUL, which PostgreSQL refuses."""
    return (given.get(name) or [""])[-1].replace("\0", "\ufffd")


def _one_of(given: Given, name: str, words: Sequence[str]) -> str | None:
    value = _last(given, name).strip().lower()
    if value and value not in words:
        raise errors.InvalidPayload(f"{name}: {value[:60]!r} is not one of {', '.join(words)}")
    return value or None

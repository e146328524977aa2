"""Reads the query of GET /api/orders into a typed filter, and converts a range of dates into blocks
of `order_tally`. Pure.

Numbers are clamped to their range. Any other invalid value raises an error (422) that names the
parameter. A blank value counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Literal, NamedTuple, TypeVar, cast, get_args

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.platform import errors, limits
from cardsync.platform.kit.row_pages import Paging, read_paging
from cardsync.platform.kit.typed_numbers import clamped, whole
from cardsync.sales.limits import ITEMS_PER_ORDER, ITEMS_PER_ORDER_MOST, ORDERS_PER_PAGE_MOST

T = TypeVar("T")

Sort = Literal["date", "total", "buyer", "status", "number"]
Direction = Literal["asc", "desc"]
ShippingType = Literal["pwe", "tracked", "expedited"]
State = Literal["to_ship", "on_the_way", "delivered", "refunded"]
PullWord = Literal["active", "none", "dismissed", "pulled", "missing"]

Given = Mapping[str, Sequence[str]]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SWITCH = {
    "true": True,
    "1": True,
    "false": False,
    "0": False,
}


@dataclass(frozen=True)
class OrderFilter(Paging):
    """A filter of orders. Empty `statuses` match all statuses; an `items_per_order` of None returns
    all items. If `by_buyer` is false, `search` searches only order numbers. If `counted` is false,
    the matches of a filter are not counted if they are many.
    """

    page: int = 1
    per_page: int = limits.ORDERS_PER_PAGE
    sort: Sort = "date"
    direction: Direction = "desc"
    statuses: tuple[str, ...] = ()
    search: str = ""
    by_buyer: bool = True
    date_from: date | None = None
    date_to: date | None = None
    product_line: str = ""
    refunded: bool = False
    unfeedbacked: bool = False
    shipping_type: ShippingType | None = None
    ship_pending: bool = False
    pull_session: int | PullWord | None = None
    state: State | None = None
    items_per_order: int | None = ITEMS_PER_ORDER
    counted: bool = True

    def asked_by(self, caller: Caller) -> OrderFilter:
        """Return the filter; for a caller who may not see buyers, without searching or sorting by
        buyer.
        """
        if caller.sees_buyers:
            return self
        return replace(self, by_buyer=False, sort="date" if self.sort == "buyer" else self.sort)

    @property
    def tallied(self) -> bool:
        """Return whether `order_tally` alone can count the matching orders."""
        by_row = (
            self.search,
            self.product_line,
            self.unfeedbacked,
            self.ship_pending,
            self.pull_session is not None,
            self.state is not None,
        )
        return not any(by_row)

    @property
    def by_to_ship(self) -> bool:
        """Return whether the SQL conditions need the statuses of orders to ship as a parameter."""
        return self.pull_session in ("none", "pulled", "missing") or self.state in (
            "to_ship",
            "on_the_way",
        )


def read_filter(given: Given) -> OrderFilter:
    """Read the parameters into a filter. Raises InvalidPayload."""
    items = clamped(_last(given, "items_per_order"), ITEMS_PER_ORDER, ITEMS_PER_ORDER_MOST, 0)
    return OrderFilter(
        **asdict(read_page(given)),
        sort=cast(Sort, _one_of(given, "sort", get_args(Sort)) or "date"),
        direction=cast(Direction, _one_of(given, "direction", get_args(Direction)) or "desc"),
        statuses=_statuses(given),
        search=_last(given, "search"),
        date_from=_date(given, "date_from"),
        date_to=_date(given, "date_to"),
        product_line=_product_line(_last(given, "product_line").strip()),
        refunded=_switch(given, "refund"),
        unfeedbacked=_switch(given, "unfeedbacked"),
        shipping_type=cast(
            "ShippingType | None",
            _one_of(given, "shipping_type", get_args(ShippingType)),
        ),
        ship_pending=_one_of(given, "ship_mark", ("pending",)) is not None,
        pull_session=_pull_session(given),
        state=cast("State | None", _one_of(given, "state", get_args(State))),
        items_per_order=None if _one_of(given, "items", ("full",)) else items,
    )


def read_page(given: Given) -> Paging:
    page, per_page = _last(given, "page"), _last(given, "per_page")
    return read_paging(page, per_page, limits.ORDERS_PER_PAGE, ORDERS_PER_PAGE_MOST)


def status_group(status: str) -> str:
    """Return the `status_group` of a status: both spellings of Cancelled are one group."""
    return "Cancelled" if status.strip().lower() in ("canceled", "cancelled") else status


def _last(given: Given, name: str) -> str:
    values = given.get(name) or [""]
    return _storable(values[-1])


def _storable(value: str) -> str:
    """Replace NUL, which PostgreSQL does not store."""
    return value.replace("\0", "\ufffd")


def _read(
    given: Given,
    name: str,
    what: str,
    read: Callable[[str], T | None],
) -> T | None:
    """Return the parameter's value as `read` converts it; None if the parameter is absent. Raises
    InvalidPayload if `read` returns None.
    """
    if not (value := _last(given, name).strip()):
        return None
    if (made := read(value)) is None:
        raise errors.InvalidPayload(f"{name}: {value[:60]!r} is not {what}")
    return made


def _one_of(given: Given, name: str, words: Sequence[str]) -> str | None:
    known = {word: word for word in words}
    return _read(
        given,
        name,
        f"one of {', '.join(words)}",
        lambda value: known.get(value.lower()),
    )


def _switch(given: Given, name: str) -> bool:
    return bool(
        _read(
            given,
            name,
            "true or false",
            lambda value: _SWITCH.get(value.lower()),
        )
    )


def _date(given: Given, name: str) -> date | None:
    return _read(given, name, "a date like 2026-07-03", _calendar_day)


def _calendar_day(value: str) -> date | None:
    try:
        return date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except ValueError:
        return None


def _statuses(given: Given) -> tuple[str, ...]:
    values = given.get("status", ())
    asked = dict.fromkeys(status_group(_storable(value)) for value in values if value.strip())
    return () if "all" in asked else tuple(asked)


def _product_line(value: str) -> str:
    return NAME_BY_LABEL.get(value.casefold(), value)


def _pull_session(given: Given) -> int | PullWord | None:
    def read(value: str) -> int | PullWord | None:
        if (number := whole(value, limits.LARGEST_ID)) is not None:
            return number
        word = value.lower()
        return cast(PullWord, word) if word in get_args(PullWord) else None

    return _read(
        given, "pull_session", "a session id, active, none, dismissed, pulled or missing", read
    )


# `order_tally` counts days in blocks; block 0 begins on this date.
BLOCKS_FROM = date(2000, 1, 1)
BLOCK_DAYS = 32


class Blocks(NamedTuple):
    """The range of blocks from `first` to `last`; empty if `last` is less than `first`. `edges`
    maps a block of which only some days count to its first and last counted day, from 1 to 32.
    """

    first: int
    last: int
    edges: Mapping[int, tuple[int, int]]


def blocks(first: date | None, last: date | None) -> Blocks:
    """Return the blocks that cover the days from `first` to `last`, both included."""
    (first_block, begin), (last_block, end) = _place(first or date.min), _place(last or date.max)
    edges: dict[int, tuple[int, int]] = {}
    if first and begin > 1:
        edges[first_block] = (begin, BLOCK_DAYS)
    if last and end < BLOCK_DAYS:
        edges[last_block] = (edges.get(last_block, (1, 0))[0], end)
    return Blocks(first_block, last_block, edges)


def _place(day: date) -> tuple[int, int]:
    block, before = divmod((day - BLOCKS_FROM).days, BLOCK_DAYS)
    return block, before + 1

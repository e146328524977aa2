"""Reads the price changes in a price file, for the members who approve it: pages of its cards,
those with the largest changes of the listed value first, and the sums over all cards.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import each_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.prices.files.content import served
from cardsync.prices.files.kept_file import KEPT, LARGEST_FIRST, SUMS, Sums, kept_rows, kept_sums
from cardsync.prices.files.price_updates import file_of, why_empty_by

_SUMS: Final = f"SELECT {SUMS} FROM card c WHERE {{which}}"
_COLUMNS: Final = """
    c.id, c.product_name, c.set_name, c.condition_label, c.quantity, c.market, c.price,
    c.target_price
"""
_LARGEST: Final = f"""
    SELECT {_COLUMNS} FROM card c WHERE {{which}}
     ORDER BY {LARGEST_FIRST} LIMIT :limit OFFSET :offset
"""


class PriceInFile(NamedTuple):
    """A card in the price file. `price` is the marketplace's price, or None before the card's first
    price.
    """

    card_id: int
    product_name: str
    set_name: str
    condition: str
    quantity: int
    market: Decimal | None
    price: Decimal | None
    target: Decimal


NONE: Final = Sums(0, 0, Decimal(), 0, Decimal(), 0)


class PageOfFile(NamedTuple):
    """A page of a price file. `sums` is None if the page was not counted. If the file is empty,
    `why_empty` has the reasons, or None if drafts must be priced to find them.
    """

    prices: list[PriceInFile]
    has_more: bool
    sums: Sums | None
    why_empty: list[str] | None


async def page_of_file(
    reading: Reading, caller: Caller, page: Paging, now: datetime, *, counted: bool
) -> PageOfFile:
    """Return a page of the file that `price_updates.export` writes in the same snapshot. If the
    kept figures are outdated, only the last page is counted, unless `counted`.
    """
    first, last = page.offset + 1, page.offset + page.per_page
    (forced, which), sums, rows = await each_of(
        reading,
        file_of(reading, caller, now),
        kept_sums(reading, caller.seller_id),
        kept_rows(reading, caller.seller_id, _COLUMNS, first, last),
    )
    if forced:
        return PageOfFile([], False, None, await why_empty_by(reading, caller, forced, which))
    sums = _sums_that_hold(caller, which, sums)
    if sums is None or min(sums.total, last) > KEPT:
        values = page.values | {"limit": page.per_page + 1}
        rows = await reading.rows(_LARGEST.format(which=which), values)
    prices = list(map(PriceInFile._make, rows[: page.per_page]))
    if not prices and page.page == 1:
        return PageOfFile([], False, None, await why_empty_by(reading, caller, forced, which))
    has_more = len(rows) > page.per_page
    if sums is None and has_more and not counted:
        return PageOfFile(prices, has_more, None, [])
    if page.page == 1 and not has_more:
        # The page has the whole file, so only its cards are read again.
        which += f" AND c.id IN ({', '.join(str(int(row.card_id)) for row in prices)})"
    return PageOfFile(prices, False, sums or await _sums(reading, which), [])


async def sums_of_file(
    reading: Reading, caller: Caller, now: datetime
) -> tuple[Sums, list[str] | None]:
    """Return the sums of the file, and the reasons for a file that is empty, like
    `page_of_file`.
    """
    (forced, which), sums = await each_of(
        reading, file_of(reading, caller, now), kept_sums(reading, caller.seller_id)
    )
    if forced:
        sums = NONE
    else:
        sums = _sums_that_hold(caller, which, sums) or await _sums(reading, which)
    if sums.total:
        return sums, []
    return sums, await why_empty_by(reading, caller, forced, which)


def _sums_that_hold(caller: Caller, which: str, sums: Sums | None) -> Sums | None:
    """Return the kept sums if no sale has ended since, whose targets would leave the file. Pure."""
    return sums if which == served(caller.seller_id, []) else None


async def _sums(reading: Reading, which: str) -> Sums:
    [row] = await reading.rows(_SUMS.format(which=which), {})
    return Sums._make(row)

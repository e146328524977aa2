"""Reads the price changes in a price file, for the members who approve it: pages of its cards,
those with the largest changes of the listed value first, and the sums over all cards.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.prices.files.price_updates import file_of, why_empty_by

# The last column counts first prices: cards without a price, and cards that have only a My Store
# Price, if it equals the target.
_SUMS: Final = """
    SELECT count(*),
           count(*) FILTER (WHERE c.target_price > c.price),
           coalesce(sum((c.target_price - c.price) * c.quantity)
               FILTER (WHERE c.target_price > c.price), 0),
           count(*) FILTER (WHERE c.target_price < c.price),
           coalesce(sum((c.price - c.target_price) * c.quantity)
               FILTER (WHERE c.target_price < c.price), 0),
           count(*) FILTER (WHERE c.price IS NULL OR c.price = c.target_price)
      FROM card c WHERE {which}
"""
_LARGEST: Final = """
    SELECT c.id, c.product_name, c.set_name, c.condition_label, c.quantity, c.market, c.price,
           c.target_price
      FROM card c WHERE {which}
     ORDER BY abs(c.target_price - c.price) * c.quantity DESC NULLS FIRST, c.id
     LIMIT :limit OFFSET :offset
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


class Sums(NamedTuple):
    """The sums over a price file. `raised_by` and `lowered_by` are in dollars, for all copies of
    the raised and lowered cards.
    """

    total: int
    raised: int
    raised_by: Decimal
    lowered: int
    lowered_by: Decimal
    first_prices: int


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
    """Return a page of the file that `price_updates.export` writes in the same snapshot. Only the
    last page is counted, unless `counted`.
    """
    forced, which = await file_of(reading, caller, now)
    rows = [] if forced else await _rows(reading, which, page)
    prices, has_more = rows[: page.per_page], len(rows) > page.per_page
    if forced or (not prices and page.page == 1):
        return PageOfFile([], False, None, await why_empty_by(reading, caller, forced, which))
    if has_more and not counted:
        return PageOfFile(prices, has_more, None, [])
    if page.page == 1 and not has_more:
        # The page has the whole file, so only its cards are read again.
        which += f" AND c.id IN ({', '.join(str(int(row.card_id)) for row in prices)})"
    return PageOfFile(prices, False, await _sums(reading, which), [])


async def sums_of_file(
    reading: Reading, caller: Caller, now: datetime
) -> tuple[Sums, list[str] | None]:
    """Return the sums of the file, and the reasons for a file that is empty, like
    `page_of_file`.
    """
    forced, which = await file_of(reading, caller, now)
    sums = NONE if forced else await _sums(reading, which)
    if sums.total:
        return sums, []
    return sums, await why_empty_by(reading, caller, forced, which)


async def _rows(reading: Reading, which: str, page: Paging) -> list[PriceInFile]:
    """Return the rows of a page and the next one."""
    values = page.values | {"limit": page.per_page + 1}
    rows = await reading.rows(_LARGEST.format(which=which), values)
    return list(map(PriceInFile._make, rows))


async def _sums(reading: Reading, which: str) -> Sums:
    [row] = await reading.rows(_SUMS.format(which=which), {})
    return Sums._make(row)

"""Adds lots for the demo shop's cards, and sets the cost of sending its orders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from sqlalchemy import text

from cardsync.access.caller import as_owner
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Row
from cardsync.sales.lots.add_lots import NewLot, add_lots
from cardsync.shop.accounts import sellers
from cardsync_demo import price_walk

_COPIES: Final = """
    SELECT c.marketplace_id, coalesce(c.market, c.price) AS worth, c.quantity AS stock,
           coalesce(sum(i.quantity), 0) AS sold
      FROM card c
      LEFT JOIN order_item i ON i.seller_id = :seller AND i.sku_id = c.marketplace_id
     WHERE c.seller_id = :seller AND NOT c.custom AND coalesce(c.market, c.price) > 0
     GROUP BY c.seller_id, c.id ORDER BY c.marketplace_id
"""
_SENT_FOR: Final = {
    "letter_postage": Decimal("0.73"),
    "parcel_postage": Decimal("4.50"),
    "supplies": Decimal("0.25"),
}
# The cost of every ninth card is unknown, as in a real shop.
_UNKNOWN_EVERY: Final = 9
_SHARES: Final = (Decimal("0.45"), Decimal("0.60"), Decimal("0.75"))


async def write(settings: Settings, seller_id: int) -> int:
    """Add lots for a seller whose orders are already stored; return the number of lots."""
    assert settings.database_url is not None
    async with Database.open(settings.database_url, pool=2, hot_pool=1) as opened:
        async with opened.tenant(seller_id) as session:
            rows = (await session.execute(text(_COPIES), {"seller": seller_id})).all()
            await sellers.change_seller(session, seller_id, _SENT_FOR)
        caller = await as_owner(opened, seller_id)
        assert caller is not None
        lots = [lot for row in rows for lot in _lots_of(row, clock.now().date())]
        async with opened.tenant(seller_id) as session:
            return len(await add_lots(session, caller, lots))


def _lots_of(row: Row, today: date) -> Iterator[NewLot]:
    """Yield two lots: one from before the shop's first order for the sold copies, and a later one
    for the copies in stock.
    """
    share = _SHARES[row.marketplace_id % len(_SHARES)]
    cost = None if row.marketplace_id % _UNKNOWN_EVERY == 0 else row.worth * share
    opened = today - timedelta(days=price_walk.DAYS + 1)
    if row.sold:
        yield NewLot(row.marketplace_id, row.sold, cost, opened, "file")
    if row.stock:
        later = today - timedelta(days=7 + row.marketplace_id % 90)
        dearer = None if cost is None else cost * Decimal("1.1")
        yield NewLot(row.marketplace_id, row.stock, dearer, later, "hand")

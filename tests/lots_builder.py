"""Lots put into a seller's tables, and settled, for tests of what cards cost."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import cast

from builders import Seller
from cardsync.access.caller import Caller
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.sales.lots.add_lots import NewLot, add_lots
from cardsync.sales.lots.settle_uses import LOTS
from cardsync.sales.orders import ingest
from cardsync.sales.orders.sales_sums import SALES_SUMS

Given = tuple[int, int, Decimal | None, date]


async def add(seller: Seller, *lots: Given, rule_id: int | None = None) -> list[int]:
    """Add lots of (card, copies, cost, day), as an offer does that comes into stock."""
    async with seller.service.database.tenant(seller.id) as session:
        given = [NewLot(*lot, "offer", 1, rule_id) for lot in lots]
        return await add_lots(session, cast(Caller, SimpleNamespace(seller_id=seller.id)), given)


async def settle(seller: Seller) -> None:
    """Apply the uploads that wait, let sold items take from lots, and keep the sums of sales."""
    while await ingest.work_off_one(seller.service.work, seller.id):
        pass
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.LOTS, Figure.SALES_SUMS)
    for kept in (LOTS, SALES_SUMS):
        while await kept.work_off(seller.service.work, seller.id):
            pass

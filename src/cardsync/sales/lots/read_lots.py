"""Reads lots, and the cost of a card's copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import Source, newest, rows_as, rows_of
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import usd
from cardsync.platform.settings import Settings
from cardsync.sales.lots.models import Lot
from cardsync.sales.lots.schemas import CostOfCard, LotBody, LotPage
from cardsync.web.csv_parts import PART, Part, lines_of, streamed
from cardsync.web.heavy_work import HeavyWork

_TABLE: Final = CsvTable(LotBody.__struct_fields__)


async def lots(
    session: AsyncSession,
    caller: Caller,
    marketplace_id: int | None,
    after: int | None,
    limit: int,
) -> LotPage:
    """Return lots, the newest first, of one card or of all. Raises OwnerRequired."""
    caller.must_see_revenue()
    of_card = "" if marketplace_id is None else "AND marketplace_id = :card"
    page = await newest(session, Lot, caller.seller_id, after, limit, of_card, card=marketplace_id)
    return LotPage([struct_of(LotBody, lot) for lot in page.rows], page.next)


async def newest_of_card(
    reading: Reading, caller: Caller, marketplace_id: int, limit: int
) -> list[LotBody]:
    """Return the newest lots of a card. Raises OwnerRequired."""
    caller.must_see_revenue()
    of_card = "AND marketplace_id = :card ORDER BY id DESC LIMIT :limit"
    values = {"card": marketplace_id, "limit": limit}
    rows = await rows_as(reading, Lot, caller.seller_id, of_card, **values)
    return [struct_of(LotBody, lot) for lot in rows]


_COST: Final = """
    SELECT copies, known, cost, oldest FROM card_cost
     WHERE seller_id = :seller AND marketplace_id = :card
"""


async def cost_of(session: Source, caller: Caller, marketplace_id: int) -> CostOfCard:
    """Return the cost of a card's remaining copies. Raises OwnerRequired."""
    caller.must_see_revenue()
    values = {"seller": caller.seller_id, "card": marketplace_id}
    for copies, known, cost, oldest in await rows_of(session)(_COST, values):
        return CostOfCard(copies, known, usd(cost), oldest)
    return CostOfCard(0, 0, None, None)


async def lots_as_csv(heavy: HeavyWork, caller: Caller) -> AsyncIterator[bytes]:
    """Return all lots as a CSV in parts, the newest lot first. Raises OwnerRequired."""
    caller.must_see_revenue()
    return await streamed(heavy, caller, _TABLE, part_of_lots)


async def part_of_lots(
    database: Database, caller: Caller, settings: Settings, now: datetime, after: int
) -> Part:
    """Return the CSV part with the lots older than the lot `after`."""
    async with database.tenant(caller.seller_id) as session:
        page = await lots(session, caller, None, after or None, PART)
    return Part(await lines_of(_TABLE, page.lots), page.after)

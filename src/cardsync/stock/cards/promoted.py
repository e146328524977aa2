"""Refuses a selection that has the id of a retired contribution, because the copies of that
contribution are in a live card now.
"""

from __future__ import annotations

from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import errors
from cardsync.stock.cards.bulk_selection import Selection


async def refuse_promoted(
    session: AsyncSession,
    seller_id: int,
    ids: list[int],
    column: Literal["id", "marketplace_id"] = "id",
) -> None:
    """Raise StockPromotedReload if one of these ids belongs to a retired contribution.

    The caller holds the lock of a list or of the account.
    """
    retired = f"""
        SELECT count(*) FROM card
         WHERE seller_id = :seller AND contribution = 'retired'
           AND {column} = ANY (CAST(:ids AS bigint[]))
    """
    if await session.scalar(
        text(retired),
        {
            "seller": seller_id,
            "ids": [id for id in ids if abs(id) < 2**63],
        },
    ):
        raise errors.StockPromotedReload


async def refuse_picked_promoted(
    session: AsyncSession,
    seller_id: int,
    selection: Selection,
) -> None:
    """Refuse the selection if it uses the id of a retired contribution. A search never finds
    retired contributions, so only ids are checked. Raises StockPromotedReload.
    """
    if selection.marketplace_ids is not None:
        await refuse_promoted(session, seller_id, selection.marketplace_ids, "marketplace_id")
    elif selection.card_ids is not None:
        await refuse_promoted(session, seller_id, selection.card_ids)

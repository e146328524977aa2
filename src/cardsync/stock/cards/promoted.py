"""Refuses a selection that names a retired contribution directly, because its stock was
promoted.
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
    """Raise StockPromotedReload if one of these directly selected ids is a retired contribution.

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
    """Check the ids that a selection uses; a search never finds retired contributions."""
    if selection.marketplace_ids is not None:
        await refuse_promoted(session, seller_id, selection.marketplace_ids, "marketplace_id")
    elif selection.card_ids is not None:
        await refuse_promoted(session, seller_id, selection.card_ids)

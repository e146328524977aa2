"""Cards whose price a rule holds because it would move too far: what a pricing held in, the
seller's rows of `held_price` replaced.

Run in the transaction that ends the pricing: `is:held` tells what the last one did.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

_LET_GO = """
    DELETE FROM held_price h USING card c
     WHERE h.seller_id = :seller AND c.seller_id = :seller AND c.marketplace_id = h.marketplace_id
       AND h.marketplace_id <> ALL (CAST(:held AS bigint[]))
       AND (CAST(:lines AS text[]) IS NULL OR c.product_line = ANY (CAST(:lines AS text[])))
"""
_HOLD = """
    INSERT INTO held_price (seller_id, marketplace_id) SELECT :seller, unnest(CAST(:held AS bigint[])) ON CONFLICT DO NOTHING
"""


async def hold_prices(
    session: AsyncSession,
    seller_id: int,
    marketplace_ids: Sequence[int],
    lines: Sequence[str] | None = None,
) -> None:
    """After a pricing of all cards, or of an upload that speaks of these product lines: of
    others, what an earlier one held stays.
    """
    held = list(marketplace_ids)
    named = {
        "seller": seller_id,
        "held": held,
        "lines": None if lines is None else list(lines),
    }
    await session.execute(text(_LET_GO), named)
    if held:
        await session.execute(text(_HOLD), {"seller": seller_id, "held": held})

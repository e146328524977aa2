"""Reads the cards whose price moved most in 7 or 30 days. Workers compute and store these cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.struct_rows import struct_of_values
from cardsync.shop.today.schemas import MoverBody, MoversBody

_MOVERS = """
    SELECT movers_at, movers -> :days FROM shop_figures WHERE seller_id = :seller
"""
_MOVED = """
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.condition_label, c.printing,
           c.language, c.quantity, moved.before, moved.after
      FROM unnest(CAST(:ids AS bigint[]), CAST(:before AS bigint[]), CAST(:after AS bigint[]))
           WITH ORDINALITY AS moved (id, before, after, place)
      JOIN card c ON c.seller_id = :seller AND c.id = moved.id
     ORDER BY moved.place
"""


async def read_movers(reading: Reading, caller: Caller, days: int) -> MoversBody:
    """Return the cards, the largest move first. Raises InvalidPayload."""
    period = _period(days)
    kept = await reading.rows(_MOVERS, {"seller": caller.seller_id, "days": str(days)})
    found_at, moved = kept[0] if kept else (None, None)
    cards: Sequence[TupleRow] = []
    if moved:
        ids, before, after = (list(column) for column in zip(*moved, strict=True))
        values = {"seller": caller.seller_id, "ids": ids, "before": before, "after": after}
        cards = await reading.rows(_MOVED, values)
    return MoversBody(
        period,
        found_at,
        [struct_of_values(MoverBody, card) for card in cards if card[9] > card[8]],
        [struct_of_values(MoverBody, card) for card in cards if card[9] < card[8]],
    )


def _period(days: int) -> Literal[7, 30]:
    if days == 7:
        return 7
    if days == 30:
        return 30
    raise errors.InvalidPayload("days: must be 7 or 30")

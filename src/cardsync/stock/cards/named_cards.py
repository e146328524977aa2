"""Finds the names of cards by marketplace id, for tables of sold or bought cards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.stock.cards.visible import VISIBLE

_NAMES: Final = f"""
    SELECT DISTINCT ON (c.marketplace_id) c.marketplace_id, c.id, c.product_name, c.set_name,
           c.condition
      FROM card c
     WHERE c.seller_id = :seller AND c.marketplace_id = ANY (CAST(:ids AS bigint[])) AND {VISIBLE}
     ORDER BY c.marketplace_id, c.gone, c.id
"""


class NamedCard(NamedTuple):
    """A card's id (of its inventory row) and the texts that name it."""

    id: int
    product_name: str
    set_name: str | None
    condition: str | None


async def named_cards(
    reading: Reading, caller: Caller, marketplace_ids: Iterable[int]
) -> dict[int, NamedCard]:
    """Return the cards by marketplace id; ids that the shop never had are missing."""
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "ids": sorted(set(marketplace_ids)),
    }
    if not values["ids"]:
        return {}
    return {row[0]: NamedCard(*row[1:]) for row in await reading.rows(_NAMES, values)}

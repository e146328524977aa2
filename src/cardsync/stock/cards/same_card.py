"""Reads a shop's listings of one catalog card in all conditions, printings and languages."""

from __future__ import annotations

from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.stock.cards.visible import VISIBLE

# Products are the same card if their game, name, set and number are the same.
_SAME: Final = Planned(
    "same_cards",
    f"""
    SELECT c.id, c.condition_label, c.printing, c.language, c.quantity, c.gone
      FROM card k
           JOIN product p ON p.id = k.product_id
           JOIN product o ON o.game = p.game AND o.name_key = p.name_key
                AND o.number_key IS NOT DISTINCT FROM p.number_key
                AND o.set_key IS NOT DISTINCT FROM p.set_key
           JOIN card c ON c.seller_id = :seller AND c.product_id = o.id
     WHERE k.seller_id = :seller AND k.id = :card AND (NOT c.gone OR c.id = k.id) AND {VISIBLE}
     ORDER BY c.printing, c.language, c.condition, c.id
     LIMIT :limit
    """,
    dict.fromkeys(("seller", "member", "card", "limit"), "bigint"),
)
_MOST: Final = 12


class SameCard(NamedTuple):
    id: int
    condition_label: str
    printing: str
    language: str
    quantity: int
    gone: bool


async def same_cards(reading: Reading, caller: Caller, card_id: int) -> list[SameCard]:
    """Return the card, and the shop's listings of it in other conditions, printings and languages
    that are in stock.
    """
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "card": card_id,
        "limit": _MOST,
    }
    return [SameCard._make(row) for row in await reading.rows(_SAME, values)]

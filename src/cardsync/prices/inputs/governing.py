"""Finds the names of the live rules that govern given cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cardsync.platform.database.snapshot_reads import Reading
from cardsync.prices.inputs.cards_to_price import choices, first_of
from cardsync.prices.inputs.rule_rows import live_run

_GOVERNED: Final = """
    SELECT c.id, {rule} AS rule FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[])) AND c.contribution IS NULL
"""


async def governing_rules(
    reading: Reading,
    seller_id: int,
    ids: Sequence[int],
    now: datetime,
) -> dict[int, str]:
    """Return the names of the governing rules by card id, without the cards that no rule
    governs.
    """
    _, run = await live_run(reading, seller_id, now)
    chosen = await choices(reading, seller_id, run)
    bound: dict[str, object] = {"seller": seller_id, "ids": list(ids), "now": now}
    sql = _GOVERNED.format(rule=first_of(chosen.rules, bound, "r"))
    names = {rule.id: rule.name for rule in chosen.run.live}
    rows = await reading.rows(sql, bound)
    return {card_id: names[rule] for card_id, rule in rows if rule is not None}

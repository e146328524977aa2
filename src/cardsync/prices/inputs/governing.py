"""Finds the names of the live rules that govern given cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.prices.inputs.cards_to_price import choices, first_of
from cardsync.prices.inputs.rule_rows import run_of

_GOVERNED: Final = """
    SELECT c.id, {rule} AS rule FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[])) AND c.contribution IS NULL
"""


async def governing_rules(
    session: AsyncSession,
    seller_id: int,
    ids: Sequence[int],
    now: datetime,
) -> dict[int, str]:
    """Return the names of the governing rules by card id, without the cards that no rule
    governs.
    """
    account = await session.get_one(Account, seller_id)
    chosen = await choices(session, seller_id, await run_of(session, account, now))
    bound: dict[str, object] = {"seller": seller_id, "ids": list(ids), "now": now}
    sql = _GOVERNED.format(rule=first_of(chosen.rules, bound, "r"))
    names = {rule.id: rule.name for rule in chosen.run.live}
    rows = await session.execute(text(sql), bound)
    return {row.id: names[row.rule] for row in rows if row.rule is not None}

"""Prices a customer's cards by the shop's own pricing rules, as Near Mint copies without an earlier
price. Promotions, reviews and control groups are ignored.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.platform.database.copy import read_rows
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.simulate import simulate
from cardsync.prices.inputs.cards_to_price import choices, first_of, guards_of
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.rules.file_queries import CARDS, NOBODY

# A distributed database sends the statement to the node that has the seller's tables, because a
# rule's condition may read these. That node has no table of the cards, so they are a part of the
# statement.
_FIRST: Final = """
    WITH c AS MATERIALIZED ({cards})
    SELECT {rule}, {guards} FROM c ORDER BY c.id
"""


async def own_targets(
    session: AsyncSession,
    seller_id: int,
    cards: pl.DataFrame,
    now: datetime,
) -> pl.Series:
    """Return the targets of the cards that `fill_rows` has copied, in their order."""
    account = await session.get_one(Account, seller_id)
    run = _unheld(await run_of(session, account, now))
    chosen = await choices(session, NOBODY, run)
    bound: dict[str, object] = {"seller": NOBODY, "now": now}
    sql = _FIRST.format(
        cards=CARDS, rule=first_of(chosen.rules, bound, "p"), guards=guards_of(chosen, bound)
    )
    found = await read_rows(session, sql, {"rule_id": pl.Int64, "guards": pl.Int64}, bound)
    return await asyncio.to_thread(_targets, cards.hstack(found), chosen.run)


def _unheld(run: Run) -> Run:
    """Return the run without promotions, the pause, reviews and control groups."""
    seller = replace(
        run.seller,
        automatic_pricing_paused=False,
        review_up_bp=None,
        review_down_bp=None,
        review_first_price=False,
    )
    rules = [replace(rule, review=None, holdout_bp=None) for rule in run.rules]
    return replace(run, rules=rules, seller=seller, sales=[])


def _targets(cards: pl.DataFrame, run: Run) -> pl.Series:
    priced = cards.select(
        "condition",
        "printing",
        "language",
        "market",
        "low",
        "low_with_shipping",
        "direct_low",
        "custom",
        "rule_id",
        "guards",
        quantity=pl.lit(1, pl.Int64),
        marketplace_id=pl.int_range(1, pl.len() + 1, dtype=pl.Int64),
        current_price=pl.lit(None, pl.Int64),
        observed_at=pl.lit(run.now).cast(TIME),
        product_line_enabled=pl.lit(True),
        game_has_rules=pl.lit(True),
    )
    return simulate(run, priced).cards["target"]

"""Prices the cards that a shop has bought by its current pricing rules, in the condition of each
copy. If a condition has no market price, its market price is estimated by the condition's
percentages in the rule that bought the copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.buying.engine.buy_rules import Base
from cardsync.buying.engine.value_lines import price_taken
from cardsync.buying.engine.wanted_lines import LineFacts, WantedLine
from cardsync.buying.rules.line_facts import as_cards, key_of, read_facts
from cardsync.buying.rules.own_targets import own_targets
from cardsync.prices.rules.file_queries import fill_rows

_BASES: Final[tuple[Base, ...]] = ("market", "low")


async def asking_prices(
    session: AsyncSession,
    seller_id: int,
    lines: Sequence[tuple[WantedLine, Mapping[str, int]]],
    now: datetime,
) -> list[int | None]:
    """Return the shop's price for a copy of each line; None if the pricing rules give none. Each
    line has the percentages of the conditions in its buy rule.
    """
    if not lines:
        return []
    known = await read_facts(session, seller_id, [line for line, _ in lines], [], now)
    columns: dict[str, list[object]] = {
        name: [getattr(line, name) for line, _ in lines]
        for name in ("product_id", "finish", "language", "condition")
    }
    for base in _BASES:
        columns[base] = [
            _of(line, shares, known.of_cards.get(key_of(line)), base) for line, shares in lines
        ]
    frame = pl.DataFrame(columns, schema_overrides=dict.fromkeys(_BASES, pl.Int64))
    texts = known.cards.drop(*_BASES, strict=False)
    joined = frame.join(
        texts, on=["product_id", "finish", "language"], how="left", maintain_order="left"
    )
    cards = await asyncio.to_thread(as_cards, joined)
    cards = cards.with_columns(condition=joined["condition"])
    await session.execute(text("DROP TABLE IF EXISTS rows_of_file"))
    await fill_rows(session, cards)
    return (await own_targets(session, seller_id, cards, now)).to_list()


def _of(
    line: WantedLine, shares: Mapping[str, int], facts: LineFacts | None, base: Base
) -> int | None:
    """Return the market price or low price (`base`) of a copy in the line's condition."""
    taken = None if facts is None else price_taken(line, facts, base, shares)
    share = shares.get(line.condition)
    if taken is None or taken.source != base or not share:
        return None
    return taken.amount * share // shares.get(taken.condition, 10_000)

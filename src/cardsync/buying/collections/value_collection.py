"""Values a collection's matched rows by the shop's buy rules, or by these rules with a draft."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import starmap
from typing import Any, Final, NamedTuple

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.collections.models import FINISH
from cardsync.buying.collections.read_collections import one_collection
from cardsync.buying.collections.schemas import BoughtShown, ValuedCollection, ValuedRow
from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.buy_sentences import sentences
from cardsync.buying.engine.wanted_lines import (
    REASONS,
    LineFacts,
    Reason,
    ValuedLine,
    WantedLine,
)
from cardsync.buying.rules.day_budgets import spent_today
from cardsync.buying.rules.line_facts import CardTexts, texts_of
from cardsync.buying.rules.price_schemas import PriceTakenShown, finishes_to_choose
from cardsync.buying.rules.value_offer import Valued, value, value_by
from cardsync.platform.database.copy import read_rows
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars
from cardsync.platform.value_types import FrameSchema

ROWS_PER_PAGE: Final = 100
_LINES: Final = f"""
    SELECT r.row, r.product_id, r.condition, {FINISH}, r.language, r.copies, r.sku,
           CASE WHEN r.finish = '' THEN 0 ELSE 1 END
      FROM collection_row r LEFT JOIN product p ON p.id = r.product_id
     WHERE r.seller_id = :seller AND r.collection_id = :collection
       AND r.product_id IS NOT NULL AND NOT r.left_out
     ORDER BY r.row
"""
_SCHEMA: Final[FrameSchema] = {
    "line": pl.Int64,
    "product_id": pl.Int64,
    "condition": pl.String,
    "finish": pl.String,
    "language": pl.String,
    "copies": pl.Int64,
    "sku": pl.Int64,
    "finish_said": pl.Int8,
}


async def lines_of(session: AsyncSession, caller: Caller, collection_id: int) -> list[WantedLine]:
    """Return the matched rows as lines of an offer."""
    values = {"seller": caller.seller_id, "collection": collection_id}
    frame = await read_rows(session, _LINES, _SCHEMA, values)
    said = frame.with_columns(pl.col("finish_said").cast(pl.Boolean))
    return list(starmap(WantedLine, said.iter_rows()))


async def value_collection(
    session: AsyncSession,
    caller: Caller,
    collection_id: int,
    now: datetime,
    page: int = 1,
) -> ValuedCollection:
    """Return the value of all matched rows, and one page of the rows with their explanations.
    Raises NotFound.
    """
    await one_collection(session, caller, collection_id)
    lines = await lines_of(session, caller, collection_id)
    spent = await spent_today(session, caller, now)
    first = (page - 1) * ROWS_PER_PAGE
    on_page = lines[first : first + ROWS_PER_PAGE]
    explained = {line.line for line in on_page}
    valued = await value(session, caller, lines, now, spent, explained)
    texts = texts_of(valued.cards, {line.product_id for line in on_page})
    of_page = slice(first, first + ROWS_PER_PAGE)
    parts = zip(on_page, valued.lines[of_page], valued.facts[of_page], strict=True)
    shown = [_row(line, one, facts, texts) for line, one, facts in parts]
    sums = sums_of(lines, valued)
    return ValuedCollection(
        sums.copies,
        sums.bought,
        dollars(sums.cash),
        dollars(sums.credit),
        sum(not one.bought for one in valued.lines),
        sum(one.reason == "no_price" for one in valued.lines),
        shown,
        len(lines),
        page,
        ROWS_PER_PAGE,
    )


class Sums(NamedTuple):
    """The sums of a collection's value. `left` has the number of copies that are not bought by
    reason.
    """

    copies: int
    bought: int
    cash: int
    credit: int
    left: dict[Reason, int]


def sums_of(lines: Sequence[WantedLine], valued: Valued) -> Sums:
    left: dict[Reason, int] = {}
    for one in valued.lines:
        if one.reason is not None:
            left[one.reason] = left.get(one.reason, 0) + one.left
    return Sums(
        sum(line.copies for line in lines),
        sum(one.copies for one in valued.lines),
        sum(one.cash for one in valued.lines),
        sum(one.credit for one in valued.lines),
        left,
    )


async def effect_of(
    session: AsyncSession,
    caller: Caller,
    lines: Sequence[WantedLine],
    rules: Sequence[BuyRule],
    now: datetime,
) -> Sums:
    """Return the value of the lines by the rules `rules`."""
    valued = await value_by(session, caller, lines, rules, now, explained=())
    return sums_of(lines, valued)


def _row(
    line: WantedLine,
    valued: ValuedLine,
    facts: LineFacts,
    texts: dict[int, CardTexts],
) -> ValuedRow:
    card = texts.get(line.product_id, CardTexts("", "", "", "", ""))
    rule: Any = valued.rule
    return ValuedRow(
        line.line,
        line.product_id,
        card.product_name,
        card.set_name,
        card.number,
        line.condition,
        line.finish,
        line.language,
        line.copies,
        [struct_of(BoughtShown, part) for part in valued.bought],
        valued.left,
        valued.reason,
        None if valued.reason is None else REASONS[valued.reason],
        _sum(valued.cash, [part.cash for part in valued.bought]),
        _sum(valued.credit, [part.credit for part in valued.bought]),
        valued.taken and struct_of(PriceTakenShown, valued.taken),
        finishes_to_choose(line, facts),
        rule and rule.id,
        rule and rule.name,
        sentences(valued),
        line.finish_said,
    )


def _sum(amount: int, parts: Sequence[int | None]) -> str | None:
    """Return `amount` as text, or None if each of `parts` is None: no copies are bought in that
    way.
    """
    return None if all(part is None for part in parts) else dollars(amount)

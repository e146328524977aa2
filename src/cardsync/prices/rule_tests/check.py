"""Checks rule tests on the cards: each test's verdict under a run of rules, with the first cards
that fail it and their explanations. Nothing is written.

Every card that any test selects is read and priced once, by the preview's engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.platform.database.copy import read_rows
from cardsync.platform.money import dollars_or_none
from cardsync.platform.value_types import Values
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import (
    ON_SALE,
    Stock,
    condition_of,
    read_stock,
    simulate_stock,
)
from cardsync.prices.inputs.rule_queries import Selection, selections
from cardsync.prices.models import RuleTest
from cardsync.prices.preview.preview import cards_of, reason_of
from cardsync.prices.rule_tests.expectations import read_expectation
from cardsync.prices.rule_tests.schemas import CardThatFails, RuleTestVerdict

FIRST: Final = 5


async def judge(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    tests: Sequence[RuleTest],
) -> list[RuleTestVerdict]:
    """Return the verdict of each test, in the order of `tests`, on the prices that the run would
    ask.
    """
    found = await selections(session, seller_id, [test.search for test in tests])
    if not any(selection.where for selection in found):
        return [
            _judged(test, each, pl.DataFrame()) for test, each in zip(tests, found, strict=True)
        ]
    account = await session.get_one(Account, seller_id)
    bound: Values = {}
    conditions = {
        place: condition_of(selection, bound, f"t{place}")
        for place, selection in enumerate(found)
        if selection.where is not None
    }
    chosen = f"{ON_SALE} AND ({' OR '.join(conditions.values())})"
    stock = await read_stock(session, account, run, chosen, **bound)
    effect = await simulate_stock(stock)
    values = {"seller": seller_id, "now": run.now, **bound}
    cards = effect.cards.with_columns(await _chosen_by(session, values, conditions, chosen, stock))
    verdicts = [
        _judged(
            test,
            selection,
            cards.filter(f"t{place}") if place in conditions else pl.DataFrame(),
        )
        for place, (test, selection) in enumerate(zip(tests, found, strict=True))
    ]
    await _explain(session, seller_id, verdicts, cards, stock.run)
    return verdicts


async def _chosen_by(
    session: AsyncSession,
    values: Mapping[str, object],
    conditions: Mapping[int, str],
    where: str,
    stock: Stock,
) -> list[pl.Series]:
    """Return for each test a column over the stock's cards: whether the test selects the card."""
    picks = ", ".join(f"coalesce({each}, false)::integer" for each in conditions.values())
    sql = f"SELECT c.id, {picks} FROM card c WHERE c.seller_id = :seller AND {where}"
    names = [f"t{place}" for place in conditions]
    schema = {"id": pl.Int64, **dict.fromkeys(names, pl.Int8)}
    cards_frame = await read_rows(session, sql, schema, values)
    joined = stock.cards.select("id").join(cards_frame, on="id", how="left", maintain_order="left")
    return [joined[name].fill_null(0).cast(pl.Boolean) for name in names]


def _judged(test: RuleTest, selection: Selection, cards: pl.DataFrame) -> RuleTestVerdict:
    """Judge one test. The test is red if some card fails it. It is also red if a part of its search
    cannot be used, for example because the search names a deleted list; `unread` then has the
    reason.
    """
    verdict = RuleTestVerdict(
        test.id, test.name, test.search, test.expectation, False, 0, 0, [], None
    )
    if selection.where is None or selection.warnings:
        verdict.red, verdict.unread = True, " ".join(selection.warnings)
        return verdict
    if cards.is_empty():
        return verdict
    failing = cards.filter(read_expectation(test.expectation).failing())
    verdict.cards, verdict.failing = cards.height, failing.height
    verdict.red = verdict.failing > 0
    verdict.first = [
        CardThatFails(
            row["marketplace_id"],
            None,
            dollars_or_none(row["current_price"]),
            dollars_or_none(row["asks"]),
            row["rule_id"],
            "",
        )
        for row in failing.sort("marketplace_id").head(FIRST).iter_rows(named=True)
    ]
    return verdict


async def _explain(
    session: AsyncSession,
    seller_id: int,
    verdicts: Sequence[RuleTestVerdict],
    cards: pl.DataFrame,
    run: Run,
) -> None:
    """Add to the first failing cards their names and the sentences of the steps that set their
    prices.
    """
    ids = {card.marketplace_id for verdict in verdicts for card in verdict.first}
    if not ids:
        return
    known = await cards_of(session, seller_id, sorted(ids))
    rows = cards.filter(pl.col("marketplace_id").is_in(list(ids))).iter_rows(named=True)
    reasons = {row["marketplace_id"]: _reason(row, run) for row in rows}
    for verdict in verdicts:
        for card in verdict.first:
            card.product_name = known[card.marketplace_id].product_name
            card.reason = reasons[card.marketplace_id]


def _reason(row: Mapping[str, object], run: Run) -> str:
    if row["target"] is None:
        return "No rule prices the card, so its price stays."
    return reason_of(row, run)

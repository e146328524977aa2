"""Finds the possible recommendations for a seller at a moment, as rows for the table `proposal`.
This module writes nothing.

A generation reads all cards. Accepting a recommendation reads its card again, by the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.catalog.market.of_cards import COLUMNS
from cardsync.platform.database.session import SessionReading
from cardsync.platform.value_types import NamedRow
from cardsync.prices.engine import engine
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import Stock, price_stock, read_stock
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.limits import RECOMMENDATIONS, STALE_STOCK
from cardsync.prices.recommendations import generation
from cardsync.prices.recommendations.evidence_json import digest, evidence_of, key_of
from cardsync.prices.recommendations.own_history import histories

UNSOLD: Final = timedelta(days=90)
# Advice on rules is valid for this time, unless a later sync ends it.
ADVICE_LASTS: Final = timedelta(days=14)

_UNSOLD: Final = """
    SELECT c.id FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND c.contribution IS NULL AND c.quantity > 0
       AND c.price IS NOT NULL AND c.created_at <= :old
       AND c.marketplace_id NOT IN (
           SELECT i.sku_id FROM orders o
             JOIN order_item i ON i.seller_id = :seller AND i.order_id = o.id
            WHERE o.seller_id = :seller AND o.order_date >= CAST(:old_day AS date)
              AND o.status_group <> 'Cancelled' AND i.sku_id IS NOT NULL)
     ORDER BY c.price * c.quantity DESC, c.id LIMIT :most
"""
_COLUMNS: Final = (
    "slot", "family", "kind", "card_id", "rule_id", "current_price", "proposed_price",
    "expected_value", "worth", "confidence", "evidence", "evidence_key", "expires_at",
)  # fmt: skip


@dataclass(frozen=True)
class Candidates:
    """Recommendations that may be stored. `rows` have the columns of `proposal`, with prices in
    ten-thousandths. `rule_cards` counts the cards that each rule governs.
    """

    rows: list[dict[str, object]]
    rule_cards: dict[int, int]


async def all_found(
    session: AsyncSession,
    account: Account,
    now: datetime,
    before: dict[int, int],
) -> Candidates:
    """Return all possible recommendations for the seller at this moment."""
    run = await run_of(session, account, now)
    stock, cards = await _cards(await read_stock(session, account, run, evidence=True))
    values = {
        "seller": account.seller_id,
        "old": now - UNSOLD,
        "old_day": (now - UNSOLD).date(),
        "most": STALE_STOCK,
    }
    unsold = (await session.scalars(text(_UNSOLD), values)).all()
    best = await _reviews(session, account.seller_id, stock.run, cards, RECOMMENDATIONS)
    return await asyncio.to_thread(
        _judged,
        stock,
        cards,
        best,
        unsold,
        before,
        now,
    )


async def _reviews(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    cards: pl.DataFrame,
    most: int,
) -> list[dict[str, object]]:
    """Return the best review of each card, at most `most` reviews. Reviews of the kind
    generic_raise are checked by the card's price history: if the market price has leapt, the card
    gets its best review of another kind instead.
    """
    asked = generation.Limits(run, most)
    able = generation.eligible(cards, cards["stored_target"])
    best = await asyncio.to_thread(generation.reviews, able, asked)
    generic = best.filter(pl.col("kind") == "generic_raise")["id"].to_list()
    known = await histories(session, seller_id, generic, run.now)
    leaps = [card_id for card_id, history in known.items() if history.is_a_leap]
    if leaps:
        leap = pl.col("id").is_in(leaps)
        others = able.filter(leap).with_columns(leaps=pl.lit(True))
        again = await asyncio.to_thread(generation.reviews, others, asked)
        best = pl.concat([best.filter(~leap), again]).sort(
            ["expected_value", "id"],
            descending=[True, False],
        )
    return [
        row | {"history": known.get(row["id"]) if row["kind"] == "generic_raise" else None}
        for row in best.iter_rows(named=True)
    ]


async def review_of(
    session: AsyncSession,
    account: Account,
    live: Run,
    card_id: int,
) -> tuple[bool, dict[str, Any] | None]:
    """Return whether the card is eligible for recommendations, and its review at this moment."""
    reads = SessionReading(session)
    stock, cards = await _cards(
        await read_stock(reads, account, live, card_ids=[card_id], evidence=True)
    )
    able = generation.eligible(cards, cards["stored_target"])
    best = await _reviews(session, account.seller_id, stock.run, cards, 1)
    return able.height > 0, _review(best[0]) if best else None


async def _cards(stock: Stock) -> tuple[Stock, pl.DataFrame]:
    """Return the stock, and its cards with their prices by the live rules and with all evidence."""
    return stock, await asyncio.to_thread(_with_evidence, stock, await price_stock(stock))


def _with_evidence(stock: Stock, priced: pl.DataFrame) -> pl.DataFrame:
    seen = stock.market
    if seen is None:
        seen = pl.DataFrame(schema=COLUMNS).clear(stock.cards.height)
    kept = [name for name in engine.INPUT_COLUMNS if name not in seen.columns]
    chosen = priced.select(
        *kept, "blockers", "rule_id", "sale_id", "guards", "target", "review", "holdout"
    ).with_columns(
        id=stock.cards["id"],
        stored_target=stock.cards["target_price"],
    )
    return chosen.hstack(seen)


def _judged(
    stock: Stock,
    cards: pl.DataFrame,
    best: Sequence[dict[str, object]],
    unsold: Sequence[int],
    before: dict[int, int],
    now: datetime,
) -> Candidates:
    run = stock.run
    able = generation.eligible(cards, cards["stored_target"])
    stale = generation.stale_stock(able, unsold, run)
    counted = (
        cards.filter(pl.col("rule_id").is_not_null())
        .group_by("rule_id")
        .agg(
            pl.len().alias("cards"),
            (pl.col("target") < generation.CHEAP).sum().alias("cheap"),
        )
    )
    governed = dict(zip(counted["rule_id"], counted["cards"], strict=True))
    cheap = dict(zip(counted["rule_id"], counted["cheap"], strict=True))
    rows = [_review(row) for row in best]
    rows += [_stale(row) for row in stale.iter_rows(named=True)]
    # A shop without cards gives no evidence about its rules.
    if governed:
        signals = generation.account_signals(run, governed, before, cheap)
        rows += [_advice(signal, now) for signal in signals]
    return Candidates(rows, governed)


def _row(**values: object) -> dict[str, object]:
    return dict.fromkeys(_COLUMNS) | values


def _review(row: dict[str, object]) -> dict[str, object]:
    return _row(
        slot=f"price:{row['id']}",
        family="price",
        kind=row["kind"],
        card_id=row["id"],
        rule_id=row["rule_id"],
        current_price=row["current_price"],
        proposed_price=row["proposed"],
        expected_value=row["expected_value"],
        worth=row["expected_value"],
        confidence=_confidence(row),
        evidence=evidence_of(row),
        evidence_key=key_of(row),
        expires_at=row["expires_at"],
    )


def _confidence(row: NamedRow) -> str:
    """Return the confidence of a review: medium if the market price has stayed above a stable
    median, otherwise the confidence of its kind.
    """
    history = row["history"]
    return "medium" if history is not None and history.verdict.holds else row["confidence"]


def _stale(row: NamedRow) -> dict[str, object]:
    stale_row = {**row, "kind": "stale_stock"}
    return _row(
        slot=f"stock:{row['id']}",
        family="liquidation",
        kind="stale_stock",
        card_id=row["id"],
        rule_id=row["rule_id"],
        current_price=row["current_price"],
        proposed_price=row["proposed"],
        worth=row["current_price"] * row["quantity"],
        confidence="low",
        evidence=evidence_of(stale_row),
        evidence_key=key_of(stale_row),
        expires_at=row["expires_at"],
    )


def _advice(signal: generation.AccountSignal, now: datetime) -> dict[str, object]:
    return _row(
        slot=f"rule:{signal.kind}:{signal.rule_id}",
        family="account",
        kind=signal.kind,
        rule_id=signal.rule_id,
        worth=0,
        confidence="high",
        evidence={"rule": signal.name, "competing_signals": [], **signal.evidence},
        evidence_key=digest([signal.kind, signal.rule_id]),
        expires_at=now + ADVICE_LASTS,
    )

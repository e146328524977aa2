"""Generates recommendations after a sync, and writes those rows of `proposal` that have changed.

Cards and evidence are read in one snapshot, without a lock. One transaction under the lock of the
seller's state row then writes everything and removes the mark in `work_due`: a worker that is
killed before the commit has written nothing, and the sweep starts again. In automatic mode, the
same transaction applies the reviews of high confidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
import polars as pl
from sqlalchemy import BigInteger, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.activity import note_by
from cardsync.access.models import Account
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import lease_is_live, locked
from cardsync.platform import clock
from cardsync.platform.database.columns import Base, KeyPart
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database, run
from cardsync.platform.derived.kept_figures import PRICING_ENDS, Figure, KeptFigure, Refresh
from cardsync.platform.money import to_units
from cardsync.prices import standing
from cardsync.prices.decisions.set_targets import NewTarget, apply_targets, review_waits
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.rule_rows import live_run, run_of
from cardsync.prices.loss.loss_limits import SIDES, SPANS, is_beyond, summed
from cardsync.prices.loss.moves import past_moves, record
from cardsync.prices.proposals.models import Proposal
from cardsync.prices.recommendations.candidates import Candidates, all_found


class RecommendationEvent(Base):
    """An event of a recommendation: shown, accepted, auto_applied or expired. Each kind is recorded
    once per revision.
    """

    __tablename__ = "recommendation_event"
    seller_id: Mapped[KeyPart]
    recommendation_id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
    )
    revision: Mapped[datetime] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str]


class RecommendationScan(Base):
    """The newest generation, with the number of cards that each rule governed at that time."""

    __tablename__ = "recommendation_scan"
    seller_id: Mapped[KeyPart]
    generated_at: Mapped[datetime]
    rule_cards: Mapped[dict[str, int]] = mapped_column(JSONB, server_default="{}")


# Time for which a dismissed recommendation is not made again, whatever the evidence.
DISMISSED_FOR: Final = timedelta(days=30)
# Time for which expired recommendations are kept.
KEPT_FOR: Final = timedelta(days=400)
_FORGOTTEN_AT_ONCE: Final = 20_000
ACTOR: Final = "recommendations"

_TYPES: Final = {
    "slot": "text",
    "family": "text",
    "kind": "text",
    "card_id": "bigint",
    "rule_id": "bigint",
    "current_price": "bigint",
    "proposed_price": "bigint",
    "expected_value": "bigint",
    "worth": "bigint",
    "confidence": "text",
    "evidence": "text",
    "evidence_key": "text",
    "expires_at": "bigint",
}
_CONTENT: Final = (
    "kind",
    "card_id",
    "rule_id",
    "current_price",
    "proposed_price",
    "expected_value",
    "worth",
    "confidence",
    "evidence",
    "evidence_key",
    "expires_at",
)
_AS_STORED: Final = {
    **{
        name: f"f.{name} / 10000.0"
        for name in ("current_price", "proposed_price", "expected_value")
    },
    "evidence": "CAST(f.evidence AS jsonb)",
    "expires_at": "to_timestamp(f.expires_at / 1000000.0)",
}
_SET: Final = ", ".join(f"{name} = {_AS_STORED.get(name, f'f.{name}')}" for name in _CONTENT)
# A card that a person pinned after it was read, or whose review a person accepted, gets no
# recommendation.
_PINNED_SINCE: Final = """
    DELETE FROM found f USING card c, price_decision p
     WHERE c.seller_id = :seller AND c.id = f.card_id
       AND p.seller_id = :seller AND p.kind = 'pin' AND p.marketplace_id = c.marketplace_id
       AND (p.until IS NULL OR p.until > :now)
"""
# If the same evidence was observed again, only its times are updated, and the revision stays.
# Another rule may govern the card now.
_SEEN_AGAIN: Final = f"""
    UPDATE proposal r
       SET rule_id = f.rule_id, evidence = {_AS_STORED["evidence"]},
           expires_at = {_AS_STORED["expires_at"]},
           expected_value = {_AS_STORED["expected_value"]}, worth = f.worth
      FROM found f
     WHERE r.seller_id = :seller AND r.slot = f.slot AND r.state = 'pending'
       AND r.evidence_key = f.evidence_key
       AND (r.expires_at <> {_AS_STORED["expires_at"]} OR r.worth <> f.worth
            OR r.rule_id IS DISTINCT FROM f.rule_id)
"""
_CHANGED: Final = f"""
    UPDATE proposal r
       SET state = 'pending', revision = :now, settled_at = NULL, settled_by = NULL, {_SET}
      FROM found f
     WHERE r.seller_id = :seller AND r.slot = f.slot
       AND (r.state IN ('pending', 'snoozed') AND r.evidence_key <> f.evidence_key
            OR r.state = 'dismissed' AND r.settled_at <= :forgotten)
"""
_NEW: Final = f"""
    INSERT INTO proposal AS r (seller_id, slot, family, state, revision, created_at,
                                     {", ".join(_CONTENT)})
    SELECT :seller, f.slot, f.family, 'pending', :now, :now,
           {", ".join(_AS_STORED.get(name, f"f.{name}") for name in _CONTENT)}
      FROM found f
      LEFT JOIN proposal o ON o.seller_id = :seller AND o.slot = f.slot
                          AND o.state IN ('pending', 'snoozed', 'dismissed')
     WHERE o.id IS NULL
     ORDER BY f.worth DESC, f.slot
    ON CONFLICT DO NOTHING
"""
_OVER: Final = queries_of(__package__)["generation_over"]
# Outcomes compare with the expired reviews of a year, so these are kept. A later generation deletes
# the rows that remain.
_FORGET: Final = """
    WITH old AS (
        DELETE FROM proposal r
         WHERE r.seller_id = :seller AND r.id IN (
               SELECT id FROM proposal
                WHERE seller_id = :seller AND state = 'expired' AND settled_at <= :kept_since
                ORDER BY settled_at LIMIT :most)
     RETURNING r.id)
    DELETE FROM recommendation_event e USING old
     WHERE e.seller_id = :seller AND e.recommendation_id = old.id
"""
_SCAN: Final = """
    INSERT INTO recommendation_scan AS s (seller_id, generated_at, rule_cards)
    VALUES (:seller, :now, CAST(:rules AS jsonb))
    ON CONFLICT (seller_id) DO UPDATE
       SET generated_at = excluded.generated_at, rule_cards = excluded.rule_cards
     WHERE s.generated_at <= excluded.generated_at
"""
_EVENTS: Final = """
    INSERT INTO recommendation_event (seller_id, recommendation_id, revision, kind, at, actor)
    SELECT :seller, r.id, r.revision, :kind, :now, :actor FROM proposal r
     WHERE r.seller_id = :seller AND r.id = ANY (CAST(:ids AS bigint[]))
    ON CONFLICT DO NOTHING
"""


Read = tuple[Run, Candidates]


async def _read(database: Database, seller_id: int, now: datetime) -> Read:
    """Return the run of the live rules, and the recommendations."""
    async with database.tenant(seller_id, snapshot=True) as session:
        account, asked = await live_run(session, seller_id, now)
        found = await all_found(session, account, now, await _rules_before(session, seller_id))
    return asked, found


async def _refresh(session: AsyncSession, asked: Refresh[Read]) -> bool:
    run_asked, found = asked.read
    await write_found(session, asked.seller_id, found, asked.now)
    await _apply_by_itself(session, asked.seller_id, run_asked, asked.now)
    return True


RECOMMENDATIONS = KeptFigure[Read](
    Figure.RECOMMENDATIONS,
    tables=("proposal", "recommendation_scan"),
    source="cards, rules, pins, market evidence and the shop's own sales",
    marked_by=PRICING_ENDS,
    meanwhile="the queue has the last generation and its time; each row has its expiry and revision",
    refresh=_refresh,
    read=_read,
    lock=locked,
)


async def _rules_before(session: AsyncSession, seller_id: int) -> dict[int, int]:
    counts = await session.scalar(
        select(RecommendationScan.rule_cards).where(RecommendationScan.seller_id == seller_id)
    )
    return {int(rule): cards for rule, cards in (counts or {}).items()}


async def write_found(
    session: AsyncSession,
    seller_id: int,
    found: Candidates,
    now: datetime,
) -> None:
    """Write the differences from the open recommendations. An open recommendation that is not
    generated again expires.
    """
    rows = await asyncio.to_thread(_frame, found.rows)
    await new_table(session, "found", rows, _TYPES, analyzed=True)
    values = {
        "seller": seller_id,
        "now": now,
        "forgotten": now - DISMISSED_FOR,
        "kept_since": now - KEPT_FOR,
        "most": _FORGOTTEN_AT_ONCE,
        "actor": ACTOR,
        "rules": orjson.dumps({str(rule): n for rule, n in found.rule_cards.items()}).decode(),
    }
    for statement in (_PINNED_SINCE, _SEEN_AGAIN, _CHANGED, _NEW, _OVER, _FORGET, _SCAN):
        await run(session, statement, values)
    await standing.end(session, seller_id, "pin", now)


def _frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    cells = [[_cell(name, row[name]) for name in _TYPES] for row in rows]
    schema = {name: pl.Int64 if type_ == "bigint" else pl.String for name, type_ in _TYPES.items()}
    return pl.DataFrame(cells, schema=schema, orient="row")


def _cell(name: str, value: Any) -> object:
    if name == "expires_at":
        return clock.microseconds(value)
    return orjson.dumps(value).decode() if name == "evidence" else value


async def note_events(
    session: AsyncSession,
    seller_id: int,
    ids: list[int],
    kind: str,
    actor: str,
    now: datetime,
) -> None:
    """Record an event of the current revisions. Each kind of event is recorded once."""
    await run(
        session,
        _EVENTS,
        {
            "seller": seller_id,
            "ids": ids,
            "kind": kind,
            "actor": actor,
            "now": now,
        },
    )


def _rise_limits(asked: Run) -> dict[int | None, int | None]:
    """Return, by rule, the rise in basis points beyond which a price waits for a person. The key
    None has the seller-wide limit.
    """
    own: dict[int | None, int | None] = {
        rule.id: (rule.review or asked.seller.review).up_bp for rule in asked.rules
    }
    return own | {None: asked.seller.review_up_bp}


def _within(row: Proposal, limits: Mapping[int | None, int | None]) -> bool:
    limit = limits.get(row.rule_id, limits[None])
    if limit is None or row.current_price is None or row.proposed_price is None:
        return True
    current, proposed = to_units(row.current_price), to_units(row.proposed_price)
    return (proposed - current) * WHOLE_BP <= current * limit


async def _may_apply(session: AsyncSession, state: SyncState, asked: Run, now: datetime) -> bool:
    """Return whether the reviews may be applied now: no run holds the lease or waits for the
    seller, and the rules are those of the run `asked`, which priced the reviews. Otherwise a later
    generation applies the reviews.
    """
    account = await session.get_one(Account, state.seller_id, populate_existing=True)
    if account.recommendations != "automatic" or account.entitlements(now).holds:
        return False
    if lease_is_live(state, now) or await review_waits(session, state):
        return False
    return await run_of(session, account, now) == asked


async def _sure_reviews(
    session: AsyncSession, seller_id: int, asked: Run, now: datetime
) -> list[Proposal]:
    """Return the reviews of high confidence whose rise is within the seller's review limits."""
    rows = await session.scalars(
        select(Proposal)
        .where(
            Proposal.seller_id == seller_id,
            Proposal.state == "pending",
            Proposal.family == "price",
            Proposal.confidence == "high",
            Proposal.expires_at > now,
        )
        .order_by(Proposal.id)
    )
    limits = _rise_limits(asked)
    return [row for row in rows if _within(row, limits)]


async def _apply_by_itself(
    session: AsyncSession,
    seller_id: int,
    asked: Run,
    now: datetime,
) -> None:
    """In automatic mode, apply the reviews of high confidence that are within the loss limits. The
    other reviews wait for the seller.
    """
    state = await session.get_one(SyncState, seller_id)
    if not await _may_apply(session, state, asked, now):
        return
    sure = await _sure_reviews(session, seller_id, asked, now)
    moved = await _moves_within_limits(session, seller_id, sure, now)
    able = set(moved["id"])
    sure = [row for row in sure if row.card_id in able]
    if not sure:
        return
    run_id = await apply_targets(
        session,
        state,
        [
            NewTarget(row.card_id, to_units(row.proposed_price), row.rule_id, row.expires_at)
            for row in sure
            if row.card_id is not None and row.proposed_price is not None
        ],
        "recommendation",
        ACTOR,
        now,
    )
    await record(session, seller_id, moved, now)
    for row in sure:
        row.state, row.settled_at, row.settled_by = "auto_applied", now, ACTOR
    await session.flush()
    ids = [row.id for row in sure]
    await note_events(session, seller_id, ids, "auto_applied", ACTOR, now)
    said = f"{len(sure):,} suggested prices applied automatically, pricing run {run_id}"
    note_by(session, seller_id, ACTOR, "recommendations.auto_applied", said, now)


async def _moves_within_limits(
    session: AsyncSession,
    seller_id: int,
    rows: Sequence[Proposal],
    now: datetime,
) -> pl.DataFrame:
    """Return the rises that the loss limits allow, summed with earlier moves."""
    priced = [
        (row.card_id, to_units(row.current_price), to_units(row.proposed_price))
        for row in rows
        if row.current_price is not None and row.proposed_price is not None
    ]
    sides = {
        f"{side}{end}": [price[place] for price in priced]
        for side in SIDES
        for place, end in ((1, ""), (2, "_after"))
    }
    ids = [price[0] for price in priced]
    of_integers = dict.fromkeys(("id", "marketplace_id", "quantity", *sides), pl.Int64)
    columns = {"id": ids, "marketplace_id": ids, "quantity": [0] * len(ids), **sides}
    moved = summed(
        pl.DataFrame(columns, schema=of_integers), await past_moves(session, seller_id, now)
    )
    return moved.filter(~pl.any_horizontal(is_beyond(span, limit) for span, limit in SPANS))

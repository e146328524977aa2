"""Brings `price_review` and `price_holdout` up to date in a run's last transaction: prices that
need review, ways back from sales and drawn cards.

A review ends when no run asks its price any more, or when its card is gone; a price that the seller
accepted before it is still remembered. A dismissed price stays dismissed while the proposed price
stays within a tenth of it, for thirty days.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.pricing.decisions.found import Found
from cardsync.pricing.engine import breaker

# Outcomes look back on the hold-outs of a year.
_PARTS_KEPT: Final = 14
_NEAR: Final = f"""
    abs(excluded.proposed_price - r.proposed_price) * {breaker.WHOLE_BP}
        <= r.proposed_price * {breaker.CONFIRMED_BP}
"""
_SAME: Final = """
    (r.state = 'pending' AND r.reason = excluded.reason
     AND r.proposed_price = excluded.proposed_price AND r.regular_price = excluded.regular_price
     AND r.current_price IS NOT DISTINCT FROM excluded.current_price)
"""
_WAIT: Final = f"""
    INSERT INTO price_review AS r (seller_id, marketplace_id, state, reason, rule_id, current_price,
                                   proposed_price, regular_price, result, worth, revision,
                                   created_at, expires_at)
    SELECT :seller, g.id, 'pending', g.reason, g.rule, g.current / 10000.0, g.proposed / 10000.0,
           g.regular / 10000.0, g.result / 10000.0, g.worth, :now, :now, g.expires
      FROM unnest(CAST(:ids AS bigint[]), CAST(:reasons AS text[]), CAST(:rules AS bigint[]),
                  CAST(:currents AS bigint[]), CAST(:proposed AS bigint[]),
                  CAST(:regulars AS bigint[]), CAST(:results AS bigint[]),
                  CAST(:worths AS bigint[]), CAST(:expires AS timestamptz[]))
           AS g (id, reason, rule, current, proposed, regular, result, worth, expires)
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE
       SET state = 'pending', reason = excluded.reason, rule_id = excluded.rule_id,
           current_price = excluded.current_price, proposed_price = excluded.proposed_price,
           regular_price = excluded.regular_price, result = excluded.result, worth = excluded.worth, expires_at = excluded.expires_at,
           revision = CASE WHEN {_SAME} THEN r.revision ELSE excluded.revision END,
           created_at = CASE WHEN r.state = 'pending' THEN r.created_at
                             ELSE excluded.created_at END,
           decided_at = NULL, decided_by = NULL
     WHERE NOT (r.state = 'dismissed' AND r.decided_at > :forgotten AND {_NEAR})
       AND NOT ({_SAME} AND r.expires_at = excluded.expires_at AND r.worth = excluded.worth
                AND r.rule_id IS NOT DISTINCT FROM excluded.rule_id)
"""
# The second array has those whose card is not on sale any more, so that no run prices it.
_PENDING: Final = """
    SELECT coalesce(array_agg(r.marketplace_id), '{}'),
           coalesce(array_agg(r.marketplace_id) FILTER (WHERE c.id IS NULL), '{}')
      FROM price_review r
      LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
                      AND NOT c.gone AND c.contribution IS NULL
     WHERE r.seller_id = :seller AND r.state = 'pending'
"""
# A review that waits no more gives way to the price that was accepted before it.
_END: Final = """
    UPDATE price_review
       SET state = 'accepted', proposed_price = accepted_price, regular_price = accepted_price,
           worth = 0, decided_at = accepted_at
     WHERE seller_id = :seller AND state = 'pending' AND accepted_at > :forgotten
       AND marketplace_id = ANY (CAST(:ended AS bigint[]))
"""
_DELETE: Final = """
    DELETE FROM price_review
     WHERE seller_id = :seller AND state = 'pending'
       AND marketplace_id = ANY (CAST(:ended AS bigint[]))
"""
_FORGET: Final = """
    DELETE FROM price_review
     WHERE seller_id = :seller AND (accepted_at IS NULL OR accepted_at <= :forgotten)
       AND (decided_at <= :forgotten OR state = 'pending' AND expires_at <= :forgotten)
"""
_BACK: Final = """
    INSERT INTO price_review AS r (seller_id, marketplace_id, state, reason, rule_id,
                                   proposed_price, regular_price, result, worth, revision,
                                   created_at, expires_at, decided_at, decided_by,
                                   accepted_price, accepted_at)
    SELECT :seller, g.id, 'accepted', 'sale', g.rule, g.price / 10000.0, g.price / 10000.0,
           g.result / 10000.0, 0, :now, :now, CAST(:now AS timestamptz) + :remembered, :now,
           'pricing', g.price / 10000.0, :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:rules AS bigint[]), CAST(:prices AS bigint[]),
                  CAST(:results AS bigint[])) AS g (id, rule, price, result)
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE
       SET state = 'accepted', reason = 'sale', rule_id = excluded.rule_id, current_price = NULL,
           proposed_price = excluded.proposed_price, regular_price = excluded.regular_price,
           result = excluded.result, worth = 0, revision = excluded.revision,
           expires_at = excluded.expires_at, decided_at = excluded.decided_at,
           decided_by = excluded.decided_by, accepted_price = excluded.accepted_price,
           accepted_at = excluded.accepted_at
     WHERE r.state <> 'accepted' OR r.proposed_price <> excluded.proposed_price
        OR r.decided_at < CAST(:now AS timestamptz) - interval '1 day'
"""
_DRAW: Final = """
    INSERT INTO price_holdout (seller_id, rule_id, part, marketplace_id, held, price, asked, since)
    SELECT :seller, g.rule, :part, g.id, g.held, g.price / 10000.0, g.asked / 10000.0, :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:rules AS bigint[]), CAST(:held AS boolean[]),
                  CAST(:prices AS bigint[]), CAST(:asked AS bigint[]))
           AS g (id, rule, held, price, asked)
    ON CONFLICT DO NOTHING
"""
_IN_DRAW: Final = """
    SELECT marketplace_id, CASE WHEN held THEN 'held' ELSE 'twin' END FROM price_holdout
     WHERE seller_id = :seller AND part = :part
"""
# A card that is in another part now than it was drawn for says nothing any more about the hold-out.
_LEFT: Final = """
    DELETE FROM price_holdout
     WHERE seller_id = :seller AND part = :part
       AND marketplace_id = ANY (CAST(:left AS bigint[]))
"""
_FORGET_DRAWN: Final = "DELETE FROM price_holdout WHERE seller_id = :seller AND part <= :part"


async def keep_found(
    session: AsyncSession,
    seller_id: int,
    found: Found,
    now: datetime,
) -> None:
    """Bring the rows up to date with what a completed run found."""
    values = {"seller": seller_id, "now": now, "forgotten": now - breaker.REMEMBERED}
    pending, gone = (await session.execute(text(_PENDING), {"seller": seller_id})).one()
    ended = sorted({*_ended(pending, found), *gone})
    known = {name: values[name] for name in ("seller", "forgotten")}
    if ended:
        await session.execute(text(_END), known | {"ended": ended})
        await session.execute(text(_DELETE), {"seller": seller_id, "ended": ended})
    await session.execute(text(_FORGET), known)
    if found.waiting.height:
        await session.execute(text(_WAIT), values | _waiting(found.waiting))
    if found.back.height:
        back = values | {"remembered": breaker.REMEMBERED} | _back(found.back)
        back.pop("forgotten")
        await session.execute(text(_BACK), back)
    drawn: dict[str, Any] = {"seller": seller_id, "part": found.part}
    if left := _left((await session.execute(text(_IN_DRAW), drawn)).all(), found):
        await session.execute(text(_LEFT), drawn | {"left": left})
    if found.drawn.height:
        await session.execute(text(_DRAW), drawn | {"now": now} | _drawn(found.drawn))
        drawn["part"] -= _PARTS_KEPT
        await session.execute(text(_FORGET_DRAWN), drawn)


def _left(in_draw: Sequence[Any], found: Found) -> list[int]:
    if not in_draw:
        return []
    types = {"marketplace_id": pl.Int64, "drawn": pl.String}
    known = pl.DataFrame([tuple(row) for row in in_draw], schema=types, orient="row")
    now = known.join(found.groups, on="marketplace_id")
    other = pl.col("drawn").ne_missing(pl.col("holdout").cast(pl.String))
    return now.filter(other)["marketplace_id"].to_list()


def _ended(pending: list[int], found: Found) -> list[int]:
    if not pending:
        return []
    known = pl.Series(pending, dtype=pl.Int64)
    gone = known.is_in(found.priced.implode())
    gone &= ~known.is_in(found.waiting["marketplace_id"].implode())
    return known.filter(gone).to_list()


def _waiting(rows: pl.DataFrame) -> dict[str, Any]:
    names = {
        "ids": "marketplace_id",
        "reasons": "reason",
        "rules": "rule_id",
        "currents": "current_price",
        "proposed": "proposed_price",
        "regulars": "regular_price",
        "results": "result",
        "worths": "worth",
        "expires": "expires_at",
    }
    return {name: rows[column].to_list() for name, column in names.items()}


def _back(rows: pl.DataFrame) -> dict[str, Any]:
    names = {"ids": "marketplace_id", "rules": "rule_id", "prices": "price", "results": "result"}
    return {name: rows[column].to_list() for name, column in names.items()}


def _drawn(rows: pl.DataFrame) -> dict[str, Any]:
    names = {
        "ids": "marketplace_id",
        "rules": "rule_id",
        "held": "held",
        "prices": "price",
        "asked": "asked",
    }
    return {name: rows[column].to_list() for name, column in names.items()}

"""Updates reviews, accepted prices and hold-outs in a run's last transaction.

A review ends when the run no longer proposes its price, or when its card is gone; a price that the
seller accepted before the review stays accepted. A price stays dismissed for thirty days while the
proposed price is within a tenth of it. A snoozed price waits again when its figures change, or
after thirty days.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run, run_all
from cardsync.platform.value_types import Row, Values
from cardsync.prices import standing
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.engine import breaker
from cardsync.prices.models import DecisionKind

# The number of 30-day windows to keep: Outcomes shows the hold-outs of the last year.
_PARTS_KEPT: Final = 14
# Citus nodes get no bound values after ON CONFLICT, so the time is read from the `excluded` row.
_YOUNG: Final = f"excluded.created_at - r.settled_at < interval '{breaker.REMEMBERED.days} days'"
_NEAR: Final = f"""
    abs(excluded.proposed_price - r.proposed_price) * {breaker.WHOLE_BP}
        <= r.proposed_price * {breaker.CONFIRMED_BP}
"""
_FIGURES: Final = """
    (r.kind = excluded.kind AND r.proposed_price = excluded.proposed_price
     AND r.evidence -> 'regular_price' = excluded.evidence -> 'regular_price'
     AND r.current_price IS NOT DISTINCT FROM excluded.current_price)
"""
_SAME: Final = f"(r.state = 'pending' AND {_FIGURES})"
_WAIT: Final = queries_of(__package__)["wait"].format(
    same=_SAME, young=_YOUNG, near=_NEAR, figures=_FIGURES
)
# The second array has the reviews whose card is not listed any more, so that no run prices it.
_PENDING: Final = """
    SELECT coalesce(array_agg(r.marketplace_id), '{}'),
           coalesce(array_agg(r.marketplace_id) FILTER (WHERE c.id IS NULL), '{}')
      FROM proposal r
      LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
                      AND NOT c.gone AND c.contribution IS NULL
     WHERE r.seller_id = :seller AND r.family = 'review' AND r.state = 'pending'
"""
# Replaces an ended review by the price that the seller accepted before it, if there is one.
_END: Final = """
    UPDATE proposal r
       SET state = 'accepted', proposed_price = d.price, worth = 0, settled_at = d.since
      FROM price_decision d
     WHERE r.seller_id = :seller AND r.family = 'review' AND r.state = 'pending'
       AND r.marketplace_id = ANY (CAST(:ended AS bigint[]))
       AND d.seller_id = :seller AND d.kind = 'accepted' AND d.marketplace_id = r.marketplace_id
       AND d.until > :now
"""
_DELETE: Final = """
    DELETE FROM proposal
     WHERE seller_id = :seller AND family = 'review' AND state = 'pending'
       AND marketplace_id = ANY (CAST(:ended AS bigint[]))
"""
_FORGET: Final = """
    DELETE FROM proposal
     WHERE seller_id = :seller AND family = 'review'
       AND (settled_at <= :forgotten OR state = 'pending' AND expires_at <= :forgotten)
"""
# Replaces the review of a card at a sale's price by the accepted price after the sale.
_GIVE_WAY: Final = """
    UPDATE proposal r
       SET state = 'accepted', kind = 'sale', current_price = NULL, proposed_price = d.price,
           worth = 0, revision = :now, settled_at = :now, settled_by = d.decided_by
      FROM price_decision d
     WHERE r.seller_id = :seller AND r.family = 'review' AND d.seller_id = :seller
       AND d.kind = 'accepted'
       AND d.marketplace_id = r.marketplace_id AND d.since = :now AND d.decided_by = :by
"""
_PRICING: Final = "pricing"
_REVIEWED: Final = """
    EXISTS (SELECT FROM proposal r
             WHERE r.seller_id = :seller AND r.family = 'review'
               AND r.marketplace_id = d.marketplace_id
               AND r.state <> 'accepted')
"""
# The accepted price of a card whose sale ended is written again if the price has changed, or a day
# after the last write.
_OTHER_WAY: Final = "d.price <> excluded.price OR excluded.since - d.since > interval '1 day'"
_IN_DRAW: Final = """
    SELECT marketplace_id, CASE WHEN kind = 'held_out' THEN 'held' ELSE 'twin' END
      FROM price_decision
     WHERE seller_id = :seller AND kind IN ('held_out', 'twin') AND part = :part
"""
# Deletes the cards whose group in the hold-out changed, because they are no evidence about it any
# more.
_LEFT: Final = """
    DELETE FROM price_decision
     WHERE seller_id = :seller AND kind IN ('held_out', 'twin') AND part = :part
       AND marketplace_id = ANY (CAST(:left AS bigint[]))
"""
_FORGET_DRAWN: Final = """
    DELETE FROM price_decision
     WHERE seller_id = :seller AND kind IN ('held_out', 'twin') AND part <= :part
"""


async def keep_found(
    session: AsyncSession,
    seller_id: int,
    found: RunFindings,
    now: datetime,
) -> None:
    """Update the stored reviews, prices and hold-outs by the findings of a completed run."""
    values = {"seller": seller_id, "now": now}
    pending, gone = (await session.execute(text(_PENDING), {"seller": seller_id})).one()
    ended = sorted({*_ended(pending, found), *gone})
    old = {"seller": seller_id, "forgotten": now - breaker.REMEMBERED}
    if ended:
        await session.execute(text(_END), values | {"ended": ended})
        await session.execute(text(_DELETE), {"seller": seller_id, "ended": ended})
    await session.execute(text(_FORGET), old)
    await standing.end(session, seller_id, "accepted", now)
    if found.waiting.height:
        await session.execute(text(_WAIT), values | _waiting(found.waiting))
    if found.back.height:
        ids = found.back["marketplace_id"].to_list()
        restored = standing.put(
            seller_id,
            "accepted",
            ids,
            now,
            prices=found.back["price"].to_list(),
            until=now + breaker.REMEMBERED,
            by=_PRICING,
            replaces=_OTHER_WAY,
        )
        gives_way = {"seller": seller_id, "now": now, "by": _PRICING}
        dropped = standing.drop(seller_id, "accepted", ids, _REVIEWED)
        await run_all(session, [dropped, restored, (_GIVE_WAY, gives_way)])
    drawn: Values = {"seller": seller_id, "part": found.part}
    if left := _left((await session.execute(text(_IN_DRAW), drawn)).all(), found):
        await session.execute(text(_LEFT), drawn | {"left": left})
    if found.drawn.height:
        await _draw(session, seller_id, found, now)
        drawn["part"] -= _PARTS_KEPT
        await session.execute(text(_FORGET_DRAWN), drawn)


async def _draw(session: AsyncSession, seller_id: int, found: RunFindings, now: datetime) -> None:
    kinds: dict[bool, DecisionKind] = {True: "held_out", False: "twin"}
    for (held,), rows in found.drawn.group_by("held"):
        drawn = standing.put(
            seller_id,
            kinds[bool(held)],
            rows["marketplace_id"].to_list(),
            now,
            sources=rows["rule_id"].to_list(),
            part=found.part,
            prices=rows["price"].to_list(),
            asked=rows["asked"].to_list(),
        )
        await run(session, *drawn)


def _left(in_draw: Sequence[Row], found: RunFindings) -> list[int]:
    if not in_draw:
        return []
    types = {"marketplace_id": pl.Int64, "drawn": pl.String}
    known = pl.DataFrame([tuple(row) for row in in_draw], schema=types, orient="row")
    now = known.join(found.groups, on="marketplace_id")
    other = pl.col("drawn").ne_missing(pl.col("holdout").cast(pl.String))
    return now.filter(other)["marketplace_id"].to_list()


def _ended(pending: list[int], found: RunFindings) -> list[int]:
    if not pending:
        return []
    known = pl.Series(pending, dtype=pl.Int64)
    gone = known.is_in(found.priced.implode())
    gone &= ~known.is_in(found.waiting["marketplace_id"].implode())
    return known.filter(gone).to_list()


def _waiting(rows: pl.DataFrame) -> dict[str, object]:
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

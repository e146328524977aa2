"""Counts for how many sellers a repair worked or failed. A repair that worked for enough sellers is
served to all sellers, until it has failed for as many.

A row of `shared_repair` is locked before its votes are counted, so that two simultaneous votes both
count. Until a repair is shared, its row has only hashes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.limits import SELLERS_TO_SHARE
from cardsync.agents.repairs.models import SharedRepair, SharedRepairVote, WorkflowCorrection
from cardsync.platform.database.session import run


@dataclass(frozen=True)
class Shared:
    selector: str
    confidence: float


def lookup_of(workflow: str, step_name: str, selector: str) -> bytes:
    return hashlib.sha256(f"{workflow}\0{step_name}\0{selector}".encode()).digest()


def digest_of(lookup: bytes, selector: str) -> bytes:
    return hashlib.sha256(lookup + selector.encode()).digest()


async def shared_for(session: AsyncSession, lookup: bytes) -> tuple[list[Shared], frozenset[str]]:
    """Return the repairs that are served to all sellers, newest first, and the selectors that are
    disabled for all.
    """
    rows = (
        await session.scalars(
            select(SharedRepair)
            .where(SharedRepair.lookup == lookup, SharedRepair.shared_at.is_not(None))
            .order_by(SharedRepair.shared_at.desc(), SharedRepair.digest)
        )
    ).all()
    served = [
        Shared(row.selector or "", row.confidence or 0.0) for row in rows if not row.disabled_at
    ]
    return served, frozenset(row.selector or "" for row in rows if row.disabled_at)


# The update changes nothing: it locks the row until the transaction ends.
_LOCK: Final = """
    INSERT INTO shared_repair (digest, lookup) VALUES (:digest, :lookup)
    ON CONFLICT (digest) DO UPDATE SET lookup = excluded.lookup
"""
_VOTE: Final = """
    INSERT INTO shared_repair_vote (digest, seller_id, {column}) VALUES (:digest, :seller, :now)
    ON CONFLICT (digest, seller_id) DO UPDATE
       SET {column} = coalesce(shared_repair_vote.{column}, excluded.{column})
"""


async def vote(
    session: AsyncSession,
    correction: WorkflowCorrection,
    verdict: Literal["verified", "failed"],
    now: datetime,
) -> None:
    """Count a seller's verdict on a correction; a repeated verdict counts once."""
    values = {
        "digest": correction.digest, "lookup": correction.lookup, "seller": correction.seller_id, "now": now,
    }  # fmt: skip
    await run(session, _LOCK, values)
    await run(session, _VOTE.format(column=f"{verdict}_at"), values)
    voted = SharedRepairVote.verified_at if verdict == "verified" else SharedRepairVote.failed_at
    count = select(func.count()).where(
        SharedRepairVote.digest == correction.digest, voted.is_not(None)
    )
    if (await session.scalar(count) or 0) < SELLERS_TO_SHARE:
        return
    row = update(SharedRepair).where(SharedRepair.digest == correction.digest)
    if verdict == "verified":
        await session.execute(
            row.where(SharedRepair.shared_at.is_(None)).values(
                selector=correction.selector,
                confidence=correction.confidence,
                shared_at=now,
            )
        )
    else:
        await session.execute(row.where(SharedRepair.disabled_at.is_(None)).values(disabled_at=now))

"""Decides whether an upload is believable: it must not lack too many stored cards, nor move too
many prices far. The verdict is stored before the first row is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.seller_state.state import Lease, hold_lease, own_state
from cardsync.imports import diff
from cardsync.platform import clock
from cardsync.platform.work.jobs import Work
from cardsync.platform.work.models import Upload
from cardsync.prices.decisions.confirmed import must_stop
from cardsync.prices.loss.decide import stops
from cardsync.prices.models import PriceRun


@dataclass(frozen=True)
class Verdict:
    """The decision about an upload, which is made before its first row is written."""

    run_id: int
    short: list[str]
    breaker: bool
    absent: int
    sold_out: int
    new: int
    confirmed: bool

    @property
    def gone(self) -> int:
        """Return the number of cards that this upload removes from stock: sold-out cards and, if
        the upload is believable, absent cards.
        """
        return self.sold_out + (self.absent if self.believable else 0)

    @property
    def review(self) -> list[str]:
        """Return the reasons why no price changes until the seller confirms the upload; empty if
        no review is needed.
        """
        short = [f"short_inventory:{line}" for line in self.short]
        return [
            *(short if stops("short_inventory", confirmed=self.confirmed) else []),
            *(
                ["large_moves"]
                if self.breaker and stops("large_moves", confirmed=self.confirmed)
                else []
            ),
        ]

    @property
    def settles_leaps(self) -> bool:
        """Return whether the seller confirmed large price moves."""
        return self.confirmed and self.breaker

    @property
    def believable(self) -> bool:
        return self.confirmed or not self.short


async def judge(
    work: Work,
    lease: Lease,
    upload: Upload,
    account: Account,
    rows: pl.DataFrame,
    absent: pl.DataFrame,
    stored: pl.DataFrame,
    priced: pl.DataFrame,
) -> Verdict:
    """Decide whether the upload is believable, and store the decision. A restarted import uses the
    stored decision, because the rows that it has written would change a new decision.
    """
    kept = upload.verdict or {}
    review_mode = account.entitlements(upload.received_at).sync_mode != "full"
    short = kept["short"] if kept else diff.short_lines(absent, stored)
    gone = kept.get("absent", int(absent["gone"].sum()))
    sold_out = kept.get(
        "sold_out", rows.select((pl.col("gone") & ~pl.col("gone_old")).sum()).item()
    )
    new = kept.get("new", rows["id"].null_count())
    async with work.database.tenant(upload.seller_id) as session:
        await own_state(session, lease)
        if kept:
            tripped = kept["breaker"]
        else:
            tripped = stops("large_moves", review_mode=review_mode) and await must_stop(
                session, upload.seller_id, priced, clock.now()
            )
        run_id = await _run_of(session, upload)
        verdict = {
            "short": short,
            "breaker": tripped,
            "absent": gone,
            "sold_out": sold_out,
            "new": new,
        }
        await session.execute(
            update(Upload)
            .where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
            .values(verdict=verdict)
        )
        await hold_lease(session, lease, clock.now())
    return Verdict(run_id, short, tripped, gone, sold_out, new, upload.confirmed)


async def _run_of(session: AsyncSession, upload: Upload) -> int:
    known = await session.scalar(
        select(PriceRun.id).where(
            PriceRun.seller_id == upload.seller_id, PriceRun.upload_id == upload.id
        )
    )
    if known is not None:
        return known
    run = PriceRun(
        seller_id=upload.seller_id,
        trigger="sync",
        upload_id=upload.id,
        started_at=clock.now(),
    )
    session.add(run)
    await session.flush()
    return run.id

"""Reads what an owner must decide beside prices: an upload, a pricing run, and the plans of
assistants and keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.prices.plans import reads as plans
from cardsync.prices.plans.schemas import PlanShown, plan_body
from cardsync.shop.today.shop_facts import Waiting

PLANS_MOST: Final = 50
UPLOAD: Final = """
    SELECT id, finished_at FROM upload
     WHERE seller_id = :seller AND id = :upload AND state = 'awaiting_review'
"""
RUN: Final = """
    SELECT id, state, finished_at, upload_id FROM price_run
     WHERE seller_id = :seller AND state IN ('completed', 'awaiting_review')
     ORDER BY finished_at DESC, id DESC LIMIT 1
"""


class ToDecide(NamedTuple):
    upload: Waiting | None = None
    run: Waiting | None = None
    plans: Sequence[PlanShown] = ()

    @property
    def number(self) -> int:
        return len(self.plans) + (self.upload is not None) + (self.run is not None)


async def read_to_decide(
    session: AsyncSession, caller: Caller, reading: Reading, now: datetime
) -> ToDecide:
    """Return the decisions that wait for the owner; none for staff."""
    if caller.role != "owner":
        return ToDecide()
    values = {"seller": caller.seller_id, "upload": caller.state.review_upload_id}
    upload, run = await reading.together([UPLOAD, RUN], values)
    waiting = await plans.waiting(session, caller, PLANS_MOST, now)
    return ToDecide(
        Waiting(*upload[0]) if upload else None,
        run_in_review(caller, run, now),
        [plan_body(plan, "", now) for plan in waiting],
    )


def run_in_review(caller: Caller, rows: Sequence[Sequence[Any]], now: datetime) -> Waiting | None:
    """Return the run that ended last, if it waits and has no upload of its own; in Review Mode none
    waits.
    """
    if not rows or caller.entitlements(now).sync_mode != "full":
        return None
    [(id, state, finished_at, upload_id)] = rows
    return Waiting(id, finished_at) if state == "awaiting_review" and upload_id is None else None

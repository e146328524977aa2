"""Reads one plan by its id, or a page of plans, newest first. A plan whose time has passed has the
status `expired`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import get_args

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import numbered
from cardsync.platform.kit.row_pages import Numbered, Paging
from cardsync.prices.plans.decide_plan import WAITING, plan_of
from cardsync.prices.plans.models import AgentPlan, Outcome
from cardsync.prices.plans.schemas import PlanShown, plan_body
from cardsync.prices.rollback import words
from cardsync.prices.rollback.rollbacks import rollback_of


async def read(session: AsyncSession, caller: Caller, plan_id: int) -> AgentPlan:
    """Return the plan with this id for an owner. Raise NotFound."""
    caller.must_be_owner()
    return await plan_of(session, caller.seller_id, plan_id)


async def shown(session: AsyncSession, plan: AgentPlan, origin: str, now: datetime) -> PlanShown:
    """Return the plan with its outcome. An approved rollback continues after the plan is applied,
    so its state is read here.
    """
    body = plan_body(plan, origin, now)
    for result in body.results:
        if result.type == "pricing.rollback" and result.id is not None:
            # A rollback that was deleted as old data has only its request's sentence.
            with suppress(errors.NotFound):
                result.summary = words.describe_rollback(
                    await rollback_of(session, plan.seller_id, result.id)
                )
    return body


async def page_of(
    session: AsyncSession,
    caller: Caller,
    status: str | None,
    paging: Paging,
    now: datetime,
) -> Numbered[AgentPlan]:
    """Return a page of plans, newest first. Raise InvalidPayload for an unknown status."""
    caller.must_be_owner()
    where = "" if status is None else _of_status(status)
    values = {"status": status, "waiting": list(WAITING), "now": now}
    return await numbered(session, AgentPlan, caller.seller_id, paging, where, **values)


def _of_status(status: str) -> str:
    if status not in get_args(Outcome):
        raise errors.InvalidPayload(f"status: must be one of {', '.join(get_args(Outcome))}")
    over = "(status = ANY(:waiting) AND expires_at <= :now)"
    if status == "expired":
        return f"AND (status = :status OR {over})"
    return f"AND status = :status AND NOT {over}"

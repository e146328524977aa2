"""A plan proposed: the body of POST /api/v1/agent/plans goes in; the plan with its outcome comes
out. It is judged first, and applied at once only where the permission modes and the limits allow
it.

Plans of a seller go one at a time, under the lock of the seller's state row, so that a plan_key is
used once and the falls of an hour add up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.access.caller import Caller
from cardsync.plans.actions import Actions, read_actions
from cardsync.plans.carry_out import Done, carry_out
from cardsync.plans.judge import Judged, judge
from cardsync.plans.models import AgentPlan
from cardsync.plans.modes import Answer, answer_of_all, credential_of
from cardsync.plans.noted import note_plan
from cardsync.plans.permissions import permissions_of
from cardsync.plans.risk import Hour, broken_limit
from cardsync.seller_state import state as sync_state
from cardsync.settings import Settings

_HOUR = timedelta(hours=1)
_FALLS = """
    SELECT coalesce(sum(lowered), 0), (array_agg(shop_value ORDER BY applied_at, id))[1]
      FROM agent_plan
     WHERE seller_id = :seller AND applied_at > :since AND NOT clicked AND status = 'applied'
       AND lowered > 0
"""


class Asked(NamedTuple):
    plan_key: str | None
    dry_run: bool
    actions: Actions
    given: list[Any]
    sha256: str


def read_plan(body: Mapping[str, Any]) -> Asked:
    """Raises InvalidPayload or TransitionMatrixTooLarge."""
    key, dry_run = body.get("plan_key"), body.get("dry_run")
    if key is not None and (
        not isinstance(key, str) or not key.strip() or len(key) > limits.PLAN_KEY_CHARACTERS
    ):
        raise errors.InvalidPayload(
            f"plan_key: must be a text of 1 to {limits.PLAN_KEY_CHARACTERS} characters"
        )
    if dry_run is not None and not isinstance(dry_run, bool):
        raise errors.InvalidPayload("dry_run: must be true or false")
    given = body.get("actions")
    actions = read_actions(given)
    assert isinstance(given, list)
    digest = hashlib.sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()
    return Asked(key, bool(dry_run), actions, given, digest)


async def propose(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    body: Mapping[str, Any],
    now: datetime,
) -> AgentPlan:
    """Raises InvalidPayload, TransitionMatrixTooLarge, OverlappingRuleTransitions, and what the
    operations raise; then nothing is kept, the plan neither.
    """
    caller.must_be_owner()
    asked = read_plan(body)
    await sync_state.locked(session, caller.seller_id)
    if asked.plan_key is not None and not asked.dry_run:
        earlier = await _of_key(session, caller.seller_id, asked)
        if earlier is not None:
            return earlier
    plan = AgentPlan(
        seller_id=caller.seller_id,
        plan_key=None if asked.dry_run else asked.plan_key,
        body_sha256=asked.sha256,
        actor=caller.actor,
        status="refused_by_grant",
        actions=asked.given,
        basis={},
        size={},
        results=[],
        drift=[],
        created_at=now,
        expires_at=now + timedelta(seconds=settings.plan_seconds),
    )
    credential = credential_of(caller)
    modes = []
    if credential is not None:
        of_type = (await permissions_of(session, caller.seller_id))[credential]
        modes = [of_type[type] for type in sorted(asked.actions.types)]
    if "deny" in modes:
        denied = [type for type in sorted(asked.actions.types) if of_type[type] == "deny"]
        plan.limit_name = f"{credential}.{denied[0]}"
        plan.error = (
            f"the owner does not let a {credential} do {', '.join(denied)}: ask the owner to change"
            " that in the permissions of plans, or to do it themselves"
        )
    else:
        judged = await judge(session, caller, asked.actions, now, settings.read_seconds)
        permitted: Answer = (
            answer_of_all(modes, judged.risk, changes=judged.size.changes) if modes else "apply"
        )
        _take_over(plan, judged)
        await _decide(session, plan, judged, permitted, by_member=credential is None, now=now)
        if asked.dry_run:
            plan.expected_status, plan.status = plan.status, "previewed"
        elif plan.status == "applied":
            plan.clicked = credential is None
            done = await carry_out(session, caller, asked.actions, now, settings.read_seconds)
            plan.applied_at, plan.results = now, results_of(done)
    session.add(plan)
    await session.flush()
    note_plan(session, caller, plan, now)
    return plan


async def _of_key(session: AsyncSession, seller_id: int, asked: Asked) -> AgentPlan | None:
    """Return the plan that the key already made. Raises InvalidPayload for another body."""
    statement = select(AgentPlan).where(
        AgentPlan.seller_id == seller_id, AgentPlan.plan_key == asked.plan_key
    )
    earlier = (
        await session.scalars(statement.execution_options(populate_existing=True))
    ).one_or_none()
    if earlier is not None and earlier.body_sha256 != asked.sha256:
        raise errors.InvalidPayload(
            f"plan_key: it belongs to plan {earlier.id}, which has other actions: send a new key"
        )
    return earlier


def _take_over(plan: AgentPlan, judged: Judged) -> None:
    plan.risk, plan.basis = judged.risk, judged.basis
    plan.size = msgspec.to_builtins(judged.size)
    plan.results = results_of(judged.results)
    plan.lowered, plan.shop_value = judged.size.lowered, judged.size.shop_value


def results_of(done: list[Done]) -> list[dict[str, Any]]:
    return [one._asdict() for one in done]


async def _decide(
    session: AsyncSession,
    plan: AgentPlan,
    judged: Judged,
    permitted: Answer,
    *,
    by_member: bool,
    now: datetime,
) -> None:
    """Set the plan's status. What a member sends is a member's click already."""
    broken = broken_limit(judged.size, await falls_of(session, plan.seller_id, now))
    if by_member:
        plan.status = "applied"
        return
    if broken is not None:
        plan.limit_name, plan.error = broken
    if permitted == "ask":
        plan.status = "pending_review"
    else:
        plan.status = "refused_by_limit" if broken is not None else "applied"


async def falls_of(session: AsyncSession, seller_id: int, now: datetime) -> Hour:
    """Return by how much the plans of the last hour lowered the listed value without a click."""
    values = {"seller": seller_id, "since": now - _HOUR}
    lowered, value = (await session.execute(text(_FALLS), values)).one()
    return Hour(int(lowered), None if value is None else int(value))


async def apply_clicked(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    plan: AgentPlan,
    now: datetime,
) -> None:
    """Apply a plan that a member has confirmed."""
    actions = read_actions(plan.actions)
    await session.flush()
    done = await carry_out(session, caller, actions, now, settings.read_seconds)
    # An operation may have made the session forget what it read.
    await session.refresh(plan)
    plan.clicked, plan.status, plan.applied_at = True, "applied", now
    plan.results = results_of(done)

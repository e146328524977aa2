"""Judges and stores a proposed plan, for POST /api/v1/agent/plans. The plan is applied immediately
only if the permission modes and the limits allow it.

Plans of a seller are handled one at a time, under the lock of the seller's state row, so that a
plan_key is used once and the price cuts of an hour add up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final, NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.described import Like
from cardsync.platform.read_json import read
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.prices.limits import PLAN_KEY_CHARACTERS
from cardsync.prices.loss.decide import (
    Answer,
    broken_limit,
    confirmation_of,
    decide,
    denied,
)
from cardsync.prices.loss.risk import Size, risk_of
from cardsync.prices.plans.actions import Actions, PlanActions, kept_actions, read_actions
from cardsync.prices.plans.attempt import count
from cardsync.prices.plans.basis import Basis, basis_of
from cardsync.prices.plans.carry_out import ChangeDone
from cardsync.prices.plans.feed_entries import note_plan
from cardsync.prices.plans.models import AgentPlan, Outcome
from cardsync.prices.plans.permissions import who_plans
from cardsync.prices.plans.try_plan import Judged, judged, not_made, tried

# A plan that a limit refuses also needs a click.
_OUTCOME: Final[Mapping[Answer, Outcome]] = {
    "apply": "applied",
    "ask": "pending_review",
    "refuse": "refused_by_limit",
}


class PlanRequest(NamedTuple):
    plan_key: str | None
    dry_run: bool
    actions: Actions
    given: list[Json]
    sha256: str


class PlanFields(msgspec.Struct):
    plan_key: Annotated[str, msgspec.Meta(max_length=PLAN_KEY_CHARACTERS)] | None = None
    dry_run: bool | None = None
    # The actions are read separately, because their refusals name each change.
    actions: Annotated[Json, Like(PlanActions, needed=True)] = None


def read_plan(body: Mapping[str, object]) -> PlanRequest:
    """Read the request of a plan. Raise InvalidPayload or TransitionMatrixTooLarge."""
    given = read(body, PlanFields)
    if given.plan_key is not None and not given.plan_key.strip():
        raise errors.InvalidPayload("plan_key: must not be blank")
    found = read_actions(given.actions)
    return PlanRequest(
        given.plan_key, bool(given.dry_run), found, given.actions, _digest(given.actions)
    )


def _digest(given: list[object]) -> str:
    return hashlib.sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()


def _new_plan(caller: Caller, settings: Settings, given: list[object], now: datetime) -> AgentPlan:
    return AgentPlan(
        seller_id=caller.seller_id,
        body_sha256=_digest(given),
        actor=caller.actor,
        status="refused_by_grant",
        actions=given,
        basis={},
        size={},
        results=[],
        drift=[],
        created_at=now,
        expires_at=now + timedelta(seconds=settings.plan_seconds),
    )


async def propose_write(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    given: list[object],
    size: Size,
    cards: list[dict[str, object]],
    now: datetime,
) -> AgentPlan:
    """Store a write outside plans that exceeds a limit as a plan that waits for a member. A
    repeated write waits as the same plan. The caller has measured the write and rolled it back.
    """
    plan = _new_plan(caller, settings, given, now)
    earlier = await session.scalar(
        select(AgentPlan).where(
            AgentPlan.seller_id == caller.seller_id,
            AgentPlan.status == "pending_review",
            AgentPlan.actor == plan.actor,
            AgentPlan.body_sha256 == plan.body_sha256,
            AgentPlan.expires_at > now,
        )
    )
    if earlier is not None:
        return earlier
    actions = kept_actions(given)
    basis = await basis_of(session, caller.seller_id, actions, now)
    results = await tried(session, caller, actions, now, settings)
    take_over(plan, size, basis, results, cards)
    plan.status = "pending_review"
    if broken := broken_limit(size):
        _, plan.limit_name, plan.error = broken
    session.add(plan)
    await session.flush()
    note_plan(session, caller, plan, now)
    return plan


async def propose(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    body: Mapping[str, object],
    now: datetime,
) -> AgentPlan:
    """Judge and store a proposed plan, and apply it if the verdict allows it. Raise InvalidPayload,
    TransitionMatrixTooLarge, OverlappingRuleTransitions, ConfirmationNeeded (a member's large plan
    without `confirm`), and the errors of the operations. After an error nothing is stored, not even
    the plan.
    """
    caller.must_be_owner()
    asked = read_plan(body)
    await sync_state.locked(session, caller.seller_id)
    if asked.plan_key is not None and not asked.dry_run:
        earlier = await _of_key(session, caller.seller_id, asked)
        if earlier is not None:
            return earlier
    plan = _new_plan(caller, settings, asked.given, now)
    plan.plan_key = None if asked.dry_run else asked.plan_key
    by = await who_plans(session, caller, asked.actions.types)
    if by.credential is None:
        confirmed = asked.dry_run or body.get("confirm") is True
        by = by._replace(limited=settings.price_write_limits and not confirmed)
    if refused := denied(by):
        _, plan.limit_name, plan.error = refused
    else:
        async with judged(session, caller, asked.actions, now, settings) as found:
            verdict = decide(found.effect.size, by)
            if by.credential is None and verdict.answer == "ask":
                raise confirmation_of(found.effect.size)
            if verdict.answer == "apply" and not asked.dry_run:
                found.attempt.keep()
        take_over(plan, found.effect.size, found.basis, found.results, found.cards)
        plan.status = _OUTCOME[verdict.answer]
        _, plan.limit_name, plan.error = verdict
        if asked.dry_run:
            plan.expected_status, plan.status = plan.status, "previewed"
        elif found.attempt.kept:
            await note_applied(session, caller, plan, found, now)
            plan.clicked = by.credential is None
    session.add(plan)
    await session.flush()
    note_plan(session, caller, plan, now)
    return plan


async def _of_key(session: AsyncSession, seller_id: int, asked: PlanRequest) -> AgentPlan | None:
    """Return the plan that a request with this key has made. Raises InvalidPayload if its body
    differed.
    """
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


def take_over(
    plan: AgentPlan,
    size: Size,
    basis: Basis,
    results: list[ChangeDone],
    cards: list[dict[str, object]],
) -> None:
    """Store the judgment in the plan, without the ids of new objects, which would differ when the
    plan is applied.
    """
    plan.risk, plan.basis, plan.cards = risk_of(size), basis, cards
    plan.size = msgspec.to_builtins(size)
    plan.results = _as_json(not_made(results))


async def note_applied(
    session: AsyncSession, caller: Caller, plan: AgentPlan, judged: Judged, now: datetime
) -> None:
    """Store that a plan is applied, and count it against the loss limits."""
    plan.status, plan.applied_at, plan.results = "applied", now, _as_json(judged.results)
    await count(session, caller, judged.effect, now)


def _as_json(done: list[ChangeDone]) -> list[dict[str, object]]:
    return [one._asdict() for one in done]

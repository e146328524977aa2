"""The JSON structs of plans and permission modes, and the functions that fill them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column, Reads, struct_of
from cardsync.platform.money import dollars
from cardsync.platform.value_types import Json
from cardsync.prices.limits import PLAN_CARDS_LISTED
from cardsync.prices.loss.decide import Mode
from cardsync.prices.loss.risk import Risk, Size
from cardsync.prices.plans.actions import ActionType, OwnType
from cardsync.prices.plans.models import AgentPlan, Outcome

_MADE = ("applied", "previewed", "pending_review")
_TAKES_A_CLICK = ("pending_review", "drifted", "refused_by_limit")


class PlanResult(msgspec.Struct):
    """`place` is the change's place in the plan; `id` is null if the change has not created its
    object yet.
    """

    place: str
    """The place of the change in the plan"""
    type: ActionType | OwnType
    """The type of the action"""
    op: str
    id: int | None
    summary: str


class CardMove(msgspec.Struct):
    """A card that the plan moves. `price_in_the_end` is the price after caps and stale cuts have
    moved it fully; `reason` is the step that decides the price, or null if no rule does.
    """

    marketplace_id: int
    product_name: str
    set_name: str
    condition: str
    quantity: int
    price_before: str | None
    price_after: str | None
    price_in_the_end: str | None
    """The price after caps and stale cuts have moved it fully, in USD"""
    reason: str | None
    """The step that decides the price; null if no rule does"""


class PlanShown(msgspec.Struct):
    """`limit` and `error` are the reason why a plan was refused or waits, and the remedy.
    `confirm_url` is the page where a member decides, as long as a member can. `expected_status` is
    the outcome that the plan of a dry run would have. `cards` are the cards that the plan moves
    furthest, by the latest judgment.
    """

    plan_id: Annotated[int, Column("id")]
    plan_key: str | None
    status: Outcome
    """The outcome of the plan"""
    expected_status: Outcome | None
    risk: Annotated[Risk | None, Reads(lambda risk: risk or None)]
    cards_affected: int
    listed_value_before: str
    listed_value_after: str
    listed_value_change: str
    results: list[PlanResult]
    """The outcome of each change"""
    cards: list[CardMove]
    """The cards that the plan moves furthest"""
    drift: list[str]
    revision: Annotated[int, Reads(lambda revision: revision or 1)]
    limit: Annotated[str | None, Column("limit_name")]
    error: str | None
    confirm_url: str | None
    actor: str
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    applied_at: datetime | None
    actions: list[Json]


class Plans(msgspec.Struct):
    plans: list[PlanShown]
    total: int
    page: int
    per_page: int
    total_pages: int


class ModesOfOne(msgspec.Struct, rename={
    "pricing_change_set": "pricing.change_set",
    "pricing_pins": "pricing.pins",
    "lists_change_set": "lists.change_set",
}):  # fmt: skip
    pricing_change_set: Mode
    """The mode for changes of rules"""
    pricing_pins: Mode
    """The mode for pins"""
    lists_change_set: Mode
    """The mode for changes of lists"""


class PlanPermissions(msgspec.Struct):
    """The modes of API keys and of OAuth tokens: how much they may do without a member's click."""

    key: ModesOfOne
    """The actions that API keys may take"""
    token: ModesOfOne
    """The actions that OAuth tokens may take"""


def status_of(plan: AgentPlan, now: datetime) -> Outcome:
    """Return the plan's present outcome: a plan that waited too long is expired."""
    if plan.status in _TAKES_A_CLICK and plan.expires_at <= now:
        return "expired"
    return plan.status


def http_status(plan: AgentPlan, now: datetime) -> int:
    """Return 201 for a created or applied plan, and 200 for refusals."""
    return 201 if status_of(plan, now) in _MADE else 200


def listed_body(plan: AgentPlan, origin: str, now: datetime) -> PlanShown:
    """Return a plan as a list shows it, with a few of its cards."""
    body = plan_body(plan, origin, now)
    body.cards = body.cards[:PLAN_CARDS_LISTED]
    return body


def plan_body(plan: AgentPlan, origin: str, now: datetime) -> PlanShown:
    size = msgspec.convert(plan.size, Size)
    status = status_of(plan, now)
    error = plan.error
    if status == "pending_review" and error is None:
        error = "a member has to confirm this plan at confirm_url"
    return struct_of(
        PlanShown,
        plan,
        status=status,
        cards_affected=size.cards,
        listed_value_before=dollars(size.before),
        listed_value_after=dollars(size.after),
        listed_value_change=dollars(size.after - size.before),
        error=error,
        confirm_url=f"{origin}/plans/{plan.id}" if status in _TAKES_A_CLICK else None,
    )

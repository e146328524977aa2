"""The JSON structs of Today, and the function that fills a condition. Pure."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.clock import rfc3339_or_none
from cardsync.described import Like
from cardsync.money import dollars, to_units
from cardsync.orders.order_filter import ShippingType
from cardsync.seller_state.sync_kinds import Kind as SyncKind
from cardsync.seller_state.sync_kinds import Phase, SyncMode
from cardsync.sync.cooldown import Meets
from cardsync.sync.shown import PhaseProgress
from cardsync.today.shop_facts import Condition, Severity
from cardsync.today.shop_facts import Kind as ConditionKind


class NextStep(msgspec.Struct):
    """`path` is the page that does it."""

    label: str
    path: str


class ConditionBody(msgspec.Struct):
    """`since` is null where the beginning is not known, `money` where nothing is at stake and for
    staff who may not see revenue, `deadline` where there is none. `subject` is the id of the one
    upload, run or plan that it is about. `sentence` is the title with its detail.
    """

    kind: Annotated[str, Like(ConditionKind)]
    severity: Severity
    since: str | None
    money: str | None
    deadline: str | None
    count: int
    subject: int | None
    title: str
    detail: str
    sentence: str
    next_step: NextStep


class SyncBody(msgspec.Struct):
    """`next_sync_at` is null while the automatic sync is paused, and is in the past when the
    agent's next poll begins it. `cooldown` says what a request meets now: nothing, a wait (free),
    or a wait that a credit skips (metered). `credits` is null without metering.
    """

    in_progress: bool
    phase: Annotated[str, Like(Phase)]
    phase_progress: PhaseProgress | None
    sync_mode: Annotated[str, Like(SyncMode)]
    requested_kind: Annotated[str, Like(SyncKind)] | None
    last_sync_at: str | None
    next_sync_at: str | None
    agent_last_seen_at: str | None
    cooldown: Meets
    cooldown_seconds: int
    credits: int | None


class SoldBody(msgspec.Struct):
    orders: int
    gross: str


class SoldDay(msgspec.Struct):
    day: date
    orders: int
    gross: str


class SalesBody(msgspec.Struct):
    """Orders that are not cancelled, by the marketplace's days, before refunds and fees.
    `month_before` is of the same days of the month before, `before_from` to `before_to`. `days` are
    the last thirty, from the first one with an order.
    """

    day: date
    today: SoldBody
    month: SoldBody
    before_from: date
    before_to: date
    month_before: SoldBody
    days: list[SoldDay]


class ListedNow(msgspec.Struct):
    """`market_value` is the same copies at the market's price."""

    cards: int
    copies: int
    value: str
    market_value: str
    seen_at: str


class RunMoves(msgspec.Struct):
    run_id: int
    rises: int
    rises_value: str
    falls: int
    falls_value: str


class ToShip(msgspec.Struct):
    """Orders that are still to be shipped: those that wait to be pulled, and those of the open pull.
    `money` is null for staff who may not see revenue.
    """

    orders: int
    to_pull: int
    in_pull: int
    pull_id: int | None
    money: str | None


class ShippingCount(msgspec.Struct):
    shipping_type: Annotated[str, Like(ShippingType)]
    orders: int


class RatingCount(msgspec.Struct):
    rating: int
    count: int


class FeedbackBody(msgspec.Struct):
    """The newest feedback, at most 100; `average` is null without any."""

    count: int
    average: float | None
    ratings: list[RatingCount]


class TodayBody(msgspec.Struct, kw_only=True):
    """`listed` and `last_run` are null before the first import or run. `sales` and `listed` are
    absent for staff who may not see revenue.
    """

    conditions: list[ConditionBody]
    sync: SyncBody
    sales: SalesBody | UnsetType = UNSET
    listed: ListedNow | UnsetType | None = UNSET
    last_run: RunMoves | None
    to_ship: ToShip
    shipping: list[ShippingCount]
    feedback: FeedbackBody


class LineValue(msgspec.Struct):
    product_line: str
    value: str


class ListedDay(msgspec.Struct):
    day: date
    cards: int
    copies: int
    value: str
    market_value: str
    lines: list[LineValue]


class ListedValueBody(msgspec.Struct):
    days: list[ListedDay]


class MoverBody(msgspec.Struct):
    id: int
    marketplace_id: int
    product_name: str
    set_name: str
    condition_label: str
    printing: str
    language: str
    quantity: int
    price_before: str
    price_after: str


class MoversBody(msgspec.Struct):
    """`found_at` is null before the first import; movers are found again once an hour at most."""

    days: Literal[7, 30]
    found_at: str | None
    rises: list[MoverBody]
    falls: list[MoverBody]


def amount(value: Decimal) -> str:
    return dollars(to_units(value))


def condition_body(one: Condition, money: Decimal | None) -> ConditionBody:
    return ConditionBody(
        one.kind,
        one.severity,
        rfc3339_or_none(one.since),
        None if money is None else amount(money),
        rfc3339_or_none(one.deadline),
        one.count,
        one.subject,
        one.title,
        one.detail,
        one.sentence,
        NextStep(one.label, one.path),
    )

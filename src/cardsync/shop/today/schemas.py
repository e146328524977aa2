"""The JSON structs of Today."""

from __future__ import annotations

from datetime import date, datetime
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.agents.seller_state.sync_kinds import Kind as SyncKind
from cardsync.agents.seller_state.sync_kinds import Phase, SyncMode
from cardsync.agents.sync.cooldown import Meets
from cardsync.agents.sync.schemas import PhaseProgress
from cardsync.platform.clock import rfc3339_or_none
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import OfRow, Reads, struct_of
from cardsync.platform.money import dollars
from cardsync.sales.orders.order_filter import ShippingType
from cardsync.shop.today.shop_facts import Kind as ConditionKind
from cardsync.shop.today.shop_facts import Severity


class NextStep(msgspec.Struct):
    """`path` is the page that does it."""

    label: str
    """The text of the button"""
    path: str


class ConditionBody(msgspec.Struct):
    """`since` is null where the beginning is not known, `money` where nothing is at stake and for
    staff who may not see revenue, `deadline` where there is none. `subject` is the id of the one
    upload, run or plan that it is about. `sentence` is the title with its detail.
    """

    kind: Annotated[str, Like(ConditionKind)]
    """The kind of the condition"""
    severity: Severity
    """How much it matters"""
    since: Annotated[str | None, Reads(rfc3339_or_none)]
    money: str | None
    """The amount at stake, in USD; null: nothing, or staff who may not see it"""
    deadline: Annotated[str | None, Reads(rfc3339_or_none)]
    """When it is too late; null: never"""
    count: int
    subject: int | None
    """The one upload, run or plan that it is about"""
    title: str
    detail: str
    """The description of the matter"""
    sentence: str
    """The title with its detail"""
    next_step: Annotated[NextStep, OfRow(partial(struct_of, NextStep))]
    """The action that a person takes next"""


class SyncBody(msgspec.Struct):
    """`next_sync_at` is null while the automatic sync is paused, and is in the past when the
    agent's next poll begins it. `cooldown` says what a request meets now: nothing, a wait (free),
    or a wait that a credit skips (metered). `credits` is null without metering.
    """

    in_progress: bool
    """A sync is running"""
    phase: Annotated[str, Like(Phase)]
    phase_progress: PhaseProgress | None
    sync_mode: Annotated[str, Like(SyncMode)]
    requested_kind: Annotated[str, Like(SyncKind)] | None
    """The data that somebody asked to fetch; null: nobody did"""
    last_sync_at: str | None
    next_sync_at: str | None
    """When the next sync begins; null while it is paused"""
    agent_last_seen_at: str | None
    cooldown: Meets
    """The obstacle that a request meets now: nothing, a wait, or a wait that a credit skips"""
    cooldown_seconds: int
    """How long the cooldown still lasts"""
    credits: int | None
    """The credits that are left; null without metering"""


class SoldBody(msgspec.Struct):
    orders: int
    gross: str


class SoldDay(msgspec.Struct):
    day: date
    orders: int
    gross: str


class SalesBody(msgspec.Struct):
    """Orders that are not cancelled, by days of the account's zone, before refunds and fees.
    `month_before` is of the same days of the month before, `before_from` to `before_to`. `days` are
    the last thirty, from the first one with an order.
    """

    day: date
    today: SoldBody
    """The sales of the day"""
    month: SoldBody
    """The sales of the month so far"""
    before_from: date
    """The first of those days"""
    before_to: date
    """The last of those days"""
    month_before: SoldBody
    """The sales of the same days of the month before"""
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
    """How many prices rise"""
    rises_value: str
    """The amount that the rises add to the listed value, in USD"""
    falls: int
    """How many prices fall"""
    falls_value: str
    """The amount that the falls take from the listed value, in USD"""


class ToShip(msgspec.Struct):
    """Orders that are still to be shipped: some wait to be pulled, some are in the open pull, some
    are pulled, and some were taken off the pulls. `money` is null for staff who may not see
    revenue.
    """

    orders: int
    to_pull: int
    """Those that wait to be pulled"""
    in_pull: int
    """Those of the open pull session"""
    pulled: int
    """Those whose copies are in hand"""
    missing: int
    """The cards that were not found, and about which nothing was decided"""
    pull_id: int | None
    """The open pull session; null: none"""
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
    """The mean of the ratings; null without any"""
    ratings: list[RatingCount]
    """How often each rating was given"""


class SyncBrought(msgspec.Struct):
    """The prices that the last sync sent; GET /sync_result has all of it."""

    id: int
    raised: int
    """How many prices were raised"""
    raised_value: str
    """The amount that they add to the listed value, in USD"""
    lowered: int
    """How many prices were lowered"""
    lowered_value: str
    """The amount that they take from the listed value, in USD"""


class TodayBody(msgspec.Struct, kw_only=True):
    """`listed` and `last_run` are null before the first import or run. `sales` and `listed` are
    absent for staff who may not see revenue.
    """

    conditions: list[ConditionBody]
    """The matters that wait for a person"""
    sync: SyncBody
    """Where the sync is"""
    sales: SalesBody | UnsetType = UNSET
    """The sales; left out for staff who may not see revenue"""
    listed: ListedNow | UnsetType | None = UNSET
    """The listed value of the stock; left out for staff who may not see revenue"""
    last_run: RunMoves | None
    """The moves of the newest pricing run; null before the first"""
    last_sync: SyncBrought | None
    """The prices of the last sync; null before the first, and for staff who may not see revenue"""
    to_ship: ToShip
    """Orders that are still to be shipped"""
    shipping: list[ShippingCount]
    """The orders by how they are shipped"""
    feedback: FeedbackBody
    """The newest feedback"""


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
    """The values by product line"""


class ListedValueBody(msgspec.Struct):
    days: list[ListedDay]


class MoverBody(msgspec.Struct):
    id: int
    """The id of the inventory row"""
    marketplace_id: int
    product_name: str
    set_name: str
    condition_label: str
    printing: str
    language: str
    quantity: int
    price_before: Annotated[str, Reads(dollars)]
    price_after: Annotated[str, Reads(dollars)]


class MoversBody(msgspec.Struct):
    """`found_at` is null before the first import; movers are found again once an hour at most."""

    days: Literal[7, 30]
    """Over how many days: 7 or 30"""
    found_at: datetime | None
    """When they were found; null before the first import"""
    rises: list[MoverBody]
    """Cards whose price rose"""
    falls: list[MoverBody]
    """Cards whose price fell"""


class RuleBrought(msgspec.Struct):
    """`rule_id` is null for prices that no rule asked for, such as pins; `name` is null for a rule
    that is no longer there.
    """

    rule_id: int | None
    name: str | None
    raised: int
    """How many prices were raised"""
    raised_value: str
    """The amount that they add to the listed value, in USD"""
    lowered: int
    """How many prices were lowered"""
    lowered_value: str
    """The amount that they take from the listed value, in USD"""


class LargestOfSync(msgspec.Struct):
    card_id: int
    product_name: str
    set_name: str | None
    condition: str | None
    copies: int
    price_before: str | None
    price_after: str


class RefusedPrice(msgspec.Struct):
    """A price or a new listing that the marketplace refused; a listing has no card yet."""

    marketplace_id: int | None
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition: str | None
    reason: str
    """The marketplace's reason"""


class Captured(msgspec.Struct):
    """Copies that sold this month after a raise of their price."""

    copies: int
    value: str
    """The amount above their prices before the raise, in USD"""


class SyncResult(msgspec.Struct, kw_only=True):
    """The prices that a sync sent: `listed_before` and the raised value, less the lowered value,
    are `listed_now`, which is the listed value of Today. `in_review` and `limited` are prices that
    were not sent.
    """

    id: int
    status: str
    """success, partial, failed or cancelled"""
    started_at: str
    ended_at: str
    duration_ms: int | None
    sent: int
    """How many prices the marketplace took"""
    raised: int
    """How many prices were raised"""
    raised_value: str
    """The amount that they add to the listed value, in USD"""
    lowered: int
    """How many prices were lowered"""
    lowered_value: str
    """The amount that they take from the listed value, in USD"""
    listed_before: str | None
    """The listed value without these moves, in USD; null before the first import"""
    listed_now: str | None
    """The listed value, in USD; null before the first import"""
    listed_cards: int | None
    rules: list[RuleBrought]
    """The moves by the rule that asked for them"""
    largest: list[LargestOfSync]
    """The moves that change the listed value most"""
    in_review: int
    """How many prices need review"""
    limited: int
    """How many prices are limited by a daily cap"""
    refused: list[RefusedPrice]
    """The prices that the marketplace refused"""
    captured: Captured
    """The gain of this month from prices that were raised before the sale"""
    orders: int
    """The orders that came during the sync"""
    orders_value: str
    """The amount that their buyers paid, in USD"""
    sold_out: int
    """Cards that its inventory no longer had in stock"""


class SyncResultBody(msgspec.Struct):
    result: SyncResult | None
    """The sync; null before the first"""

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
    """The next step of a condition. `path` is the page for it."""

    label: str
    """The text of the button"""
    path: str


class ConditionBody(msgspec.Struct):
    """A condition: work that waits for people. `since` is null if its beginning is unknown. `money`
    is null if no money is at stake, and for staff who may not see revenue. `deadline` is null if
    there is none. `subject` is the id of the upload, run or plan of the condition. `sentence` is
    the title with the detail.
    """

    kind: Annotated[str, Like(ConditionKind)]
    """The kind of the condition"""
    severity: Severity
    """The severity: bad, warn or info"""
    since: Annotated[str | None, Reads(rfc3339_or_none)]
    money: str | None
    """The amount at stake, in USD; null if none, or for staff who may not see revenue"""
    deadline: Annotated[str | None, Reads(rfc3339_or_none)]
    """The time until which the work has to be done, or null"""
    count: int
    subject: int | None
    """The id of the upload, run or plan, or null"""
    title: str
    detail: str
    """The reason or further details"""
    sentence: str
    """The title with the detail"""
    next_step: Annotated[NextStep, OfRow(partial(struct_of, NextStep))]
    """The next step of a person"""


class SyncBody(msgspec.Struct):
    """The state of the sync. `next_sync_at` is null while the automatic sync is paused; a time in
    the past means that the agent's next poll begins the sync. `cooldown` is nothing if a request
    begins a sync now, free if it has to wait, and metered if a credit skips the wait. `credits` is
    null without metering.
    """

    in_progress: bool
    """Whether a sync is running"""
    phase: Annotated[str, Like(Phase)]
    phase_progress: PhaseProgress | None
    sync_mode: Annotated[str, Like(SyncMode)]
    requested_kind: Annotated[str, Like(SyncKind)] | None
    """The kind of the requested sync; null if none is requested"""
    last_sync_at: str | None
    next_sync_at: str | None
    """When the next sync begins; null while the automatic sync is paused"""
    agent_last_seen_at: str | None
    cooldown: Meets
    """Whether a request has to wait now, and whether a credit skips the wait"""
    cooldown_seconds: int
    """The remaining seconds of the cooldown"""
    credits: int | None
    """The balance of credits; null without metering"""


class SoldBody(msgspec.Struct):
    orders: int
    gross: str


class SoldDay(msgspec.Struct):
    day: date
    orders: int
    gross: str


class SalesBody(msgspec.Struct):
    """Sales: orders that are not cancelled, by days in the account's time zone, before refunds and
    fees. `month_before` are the sales of the same days of the previous month, `before_from` to
    `before_to`. `days` are the last thirty days, but not before the first order.
    """

    day: date
    today: SoldBody
    """The sales of the day"""
    month: SoldBody
    """The sales of the month so far"""
    before_from: date
    """The first day of the previous month"""
    before_to: date
    """The last of the compared days of the previous month"""
    month_before: SoldBody
    """The sales of the same days of the previous month"""
    days: list[SoldDay]


class ListedNow(msgspec.Struct):
    """The listed value of the stock. `market_value` is the value of the same copies at market
    prices.
    """

    cards: int
    copies: int
    value: str
    market_value: str
    seen_at: str


class RunMoves(msgspec.Struct):
    run_id: int
    rises: int
    """The number of prices that rise"""
    rises_value: str
    """The amount by which the rises increase the listed value, in USD"""
    falls: int
    """The number of prices that fall"""
    falls_value: str
    """The amount by which the falls reduce the listed value, in USD"""


class ToShip(msgspec.Struct):
    """Orders that are not shipped yet. They wait to be pulled, are in the open pull, are pulled, or
    were removed from pulls. `money` is null for staff who may not see revenue.
    """

    orders: int
    to_pull: int
    """The number of orders that wait to be pulled"""
    in_pull: int
    """The number of orders in the open pull session"""
    pulled: int
    """The number of pulled orders"""
    missing: int
    """The number of cards that were not found in a pull and still need a decision"""
    pull_id: int | None
    """The id of the open pull session, or null"""
    money: str | None


class ShippingCount(msgspec.Struct):
    shipping_type: Annotated[str, Like(ShippingType)]
    orders: int


class RatingCount(msgspec.Struct):
    rating: int
    count: int


class FeedbackBody(msgspec.Struct):
    """The newest ratings by buyers, at most 100. `average` is null if there are none."""

    count: int
    average: float | None
    """The mean of the ratings; null if there are none"""
    ratings: list[RatingCount]
    """The number of each rating"""


class SyncBrought(msgspec.Struct):
    """A summary of the prices that the last sync sent. GET /sync_result has the whole result."""

    id: int
    raised: int
    """The number of raised prices"""
    raised_value: str
    """The amount by which they increase the listed value, in USD"""
    lowered: int
    """The number of lowered prices"""
    lowered_value: str
    """The amount by which they reduce the listed value, in USD"""


class TodayBody(msgspec.Struct, kw_only=True):
    """The answer of Today. `listed` is null before the first import, `last_run` before the first
    pricing run. `sales` and `listed` are absent for staff who may not see revenue.
    """

    conditions: list[ConditionBody]
    """The work that waits for people"""
    sync: SyncBody
    """The state of the sync"""
    sales: SalesBody | UnsetType = UNSET
    """The sales; absent for staff who may not see revenue"""
    listed: ListedNow | UnsetType | None = UNSET
    """The listed value of the stock; absent for staff who may not see revenue"""
    last_run: RunMoves | None
    """The changed prices of the newest pricing run; null before the first run"""
    last_sync: SyncBrought | None
    """The prices of the last sync; null before the first, and for staff who may not see revenue"""
    to_ship: ToShip
    """The orders that are not shipped yet"""
    shipping: list[ShippingCount]
    """The orders to pull by shipping method"""
    feedback: FeedbackBody
    """The newest ratings by buyers"""


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
    """The card's id"""
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
    """The cards whose price moved most. They are computed at most once an hour."""

    days: Literal[7, 30]
    """The number of days: 7 or 30"""
    found_at: datetime | None
    """When the cards were computed; null before the first import"""
    rises: list[MoverBody]
    """Cards whose price rose"""
    falls: list[MoverBody]
    """Cards whose price fell"""


class RuleBrought(msgspec.Struct):
    """The price changes of a sync by one rule. `rule_id` is null for prices without a rule, such as
    pins; `name` is null for a deleted rule.
    """

    rule_id: int | None
    name: str | None
    raised: int
    """The number of raised prices"""
    raised_value: str
    """The amount by which they increase the listed value, in USD"""
    lowered: int
    """The number of lowered prices"""
    lowered_value: str
    """The amount by which they reduce the listed value, in USD"""


class LargestOfSync(msgspec.Struct):
    card_id: int
    product_name: str
    set_name: str | None
    condition: str | None
    copies: int
    price_before: str | None
    price_after: str


class RefusedPrice(msgspec.Struct):
    """A price or a new listing that the marketplace refused. A new listing has no card yet."""

    marketplace_id: int | None
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition: str | None
    reason: str
    """The marketplace's reason"""


class Captured(msgspec.Struct):
    """The copies that were sold this month after their price was raised."""

    copies: int
    value: str
    """The amount above their prices before the raise, in USD"""


class SyncResult(msgspec.Struct, kw_only=True):
    """The result of a sync. `listed_now` is the current listed value, and `listed_before` is that
    value without the raised and lowered prices of the sync. `in_review` and `limited` prices were
    not sent.
    """

    id: int
    status: str
    """success, partial, failed or cancelled"""
    started_at: str
    ended_at: str
    duration_ms: int | None
    sent: int
    """The number of prices that the marketplace accepted"""
    raised: int
    """The number of raised prices"""
    raised_value: str
    """The amount by which they increase the listed value, in USD"""
    lowered: int
    """The number of lowered prices"""
    lowered_value: str
    """The amount by which they reduce the listed value, in USD"""
    listed_before: str | None
    """The listed value without these price changes, in USD; null before the first import"""
    listed_now: str | None
    """The listed value, in USD; null before the first import"""
    listed_cards: int | None
    rules: list[RuleBrought]
    """The price changes by rule"""
    largest: list[LargestOfSync]
    """The price changes that change the listed value most"""
    in_review: int
    """The number of prices that need review"""
    limited: int
    """The number of prices that a daily cap limits"""
    refused: list[RefusedPrice]
    """The prices that the marketplace refused"""
    captured: Captured
    """The gain of this month from prices that were raised before the sale"""
    orders: int
    """The number of new orders in the sync"""
    orders_value: str
    """The total of these orders, in USD"""
    sold_out: int
    """The number of cards that are out of stock in the sync's inventory"""


class SyncResultBody(msgspec.Struct):
    result: SyncResult | None
    """The result; null before the first sync"""

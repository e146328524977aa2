"""The JSON structs of Today, and the functions that fill them. Pure."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from cardsync import clock
from cardsync.money import dollars, to_units
from cardsync.sync.cooldown import Meets
from cardsync.sync.shown import PhaseProgress
from cardsync.today.conditions import Condition, Severity
from cardsync.today.listed_value import Day
from cardsync.today.queries import Listed, Mover, Moves, Sales, Sold


class NextStep(msgspec.Struct):
    """`path` is the page that does it."""

    label: str
    path: str


class ConditionBody(msgspec.Struct):
    """`since` is null where the beginning is not known, `money` where nothing is at stake and for
    staff who may not see revenue, `deadline` where there is none. `subject` is the id of the one
    upload, run or plan that it is about.
    """

    kind: str
    severity: Severity
    since: str | None
    money: str | None
    deadline: str | None
    count: int
    subject: int | None
    sentence: str
    next_step: NextStep


class SyncBody(msgspec.Struct):
    """`next_sync_at` is null while the automatic sync is paused, and is in the past when the
    agent's next poll begins it. `cooldown` says what a request meets now: nothing, a wait (free),
    or a wait that a credit skips (metered). `credits` is null without metering.
    """

    in_progress: bool
    phase: str
    phase_progress: PhaseProgress | None
    sync_mode: str
    requested_kind: str | None
    last_sync_at: str | None
    next_sync_at: str | None
    agent_last_seen_at: str | None
    cooldown: Meets
    cooldown_seconds: int
    credits: int | None


class SoldBody(msgspec.Struct):
    orders: int
    gross: str


class SalesBody(msgspec.Struct):
    """Orders that are not cancelled, by the marketplace's days, before refunds and fees.
    `month_before` is of the same days of the month before, `before_from` to `before_to`.
    """

    day: date
    today: SoldBody
    month: SoldBody
    before_from: date
    before_to: date
    month_before: SoldBody


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


class ShippingCount(msgspec.Struct):
    shipping_type: str
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


def moment(at: datetime | None) -> str | None:
    return clock.rfc3339(at) if at else None


def amount(value: Decimal) -> str:
    return dollars(to_units(value))


def condition_body(one: Condition, money: Decimal | None) -> ConditionBody:
    return ConditionBody(
        one.kind,
        one.severity,
        moment(one.since),
        None if money is None else amount(money),
        moment(one.deadline),
        one.count,
        one.subject,
        one.sentence,
        NextStep(one.label, one.path),
    )


def _sold(sold: Sold) -> SoldBody:
    return SoldBody(sold.orders, amount(sold.gross))


def sales_body(sales: Sales) -> SalesBody:
    return SalesBody(
        sales.day,
        _sold(sales.today),
        _sold(sales.month),
        sales.before_from,
        sales.before_to,
        _sold(sales.before),
    )


def listed_body(listed: Listed) -> ListedNow:
    return ListedNow(
        listed.cards,
        listed.copies,
        amount(listed.listed),
        amount(listed.market),
        clock.rfc3339(listed.seen_at),
    )


def moves_body(moves: Moves) -> RunMoves:
    return RunMoves(
        moves.run_id,
        moves.rises,
        amount(moves.rises_value),
        moves.falls,
        amount(moves.falls_value),
    )


def feedback_body(ratings: list[tuple[int, int]]) -> FeedbackBody:
    count = sum(number for _, number in ratings)
    total = sum(rating * number for rating, number in ratings)
    return FeedbackBody(
        count,
        round(total / count, 2) if count else None,
        [RatingCount(rating, number) for rating, number in ratings],
    )


def listed_days(days: list[Day]) -> ListedValueBody:
    return ListedValueBody(
        [
            ListedDay(
                one.day,
                one.cards,
                one.copies,
                amount(one.listed),
                amount(one.market),
                [LineValue(line, amount(value)) for line, value in one.lines.items()],
            )
            for one in days
        ]
    )


def movers_body(days: Literal[7, 30], found_at: datetime | None, cards: list[Mover]) -> MoversBody:
    return MoversBody(
        days,
        moment(found_at),
        [_mover(card) for card in cards if card.after > card.before],
        [_mover(card) for card in cards if card.after < card.before],
    )


def _mover(card: Mover) -> MoverBody:
    return MoverBody(*card[:8], dollars(card.before), dollars(card.after))

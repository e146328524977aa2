"""Puts together Today's one answer: the work list, the state of the sync, and the shop's
figures.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import UNSET
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.access.caller import Caller
from cardsync.database.snapshot_reads import Reading
from cardsync.pricing.files.price_updates import run_waits
from cardsync.settings import Settings
from cardsync.sync.cooldown import meets, remaining_seconds
from cardsync.sync.last_seen import LastSeen
from cardsync.sync.poll import facts_of
from cardsync.sync.shown import PhaseProgress
from cardsync.sync.status import SyncStatus, status_of
from cardsync.today.conditions import conditions
from cardsync.today.listed_value import by_day
from cardsync.today.queries import read_listed, read_movers, read_shop
from cardsync.today.shown import (
    ListedValueBody,
    MoversBody,
    ShippingCount,
    SyncBody,
    TodayBody,
    condition_body,
    feedback_body,
    listed_body,
    listed_days,
    moment,
    movers_body,
    moves_body,
    sales_body,
)

DAYS_MOST = 1_100


async def today_of(
    session: AsyncSession,
    caller: Caller,
    reading: Reading,
    seen: LastSeen,
    now: datetime,
    settings: Settings,
) -> TodayBody:
    seen_at = await seen.at(session, caller)
    status = await status_of(session, caller, run_waits, now, settings)
    shop = await read_shop(session, caller, reading, seen_at, now)
    found = conditions(shop.facts, owner=caller.role == "owner")
    listed = listed_body(shop.listed) if shop.listed else None
    return TodayBody(
        # What waits for somebody is worth a part of what was sold or is listed.
        conditions=[condition_body(one, caller.revenue(one.money)) for one in found],
        sync=_sync(caller, status, seen_at, now, settings),
        sales=sales_body(shop.sales) if caller.sees_revenue else UNSET,
        listed=listed if caller.sees_revenue else UNSET,
        last_run=moves_body(shop.moves) if shop.moves else None,
        shipping=[ShippingCount(kind, number) for kind, number in shop.shipping],
        feedback=feedback_body(shop.feedback),
    )


def _sync(
    caller: Caller,
    status: SyncStatus,
    seen_at: datetime | None,
    now: datetime,
    settings: Settings,
) -> SyncBody:
    account, state = caller.account, caller.state
    cooldown = timedelta(seconds=settings.sync_cooldown_seconds)
    remaining = remaining_seconds(state.last_pricing_at, cooldown, now)
    metering = account.credits_metering_enabled
    return SyncBody(
        status.in_progress,
        status.phase,
        PhaseProgress(*status.progress) if status.progress else None,
        status.sync_mode,
        state.requested_kind,
        moment(state.last_sync_at),
        moment(_next(caller, now, settings)),
        moment(seen_at),
        meets(remaining, metering=metering, paid=caller.entitlements(now).paid),
        remaining,
        account.credit_balance if metering else None,
    )


def _next(caller: Caller, now: datetime, settings: Settings) -> datetime | None:
    facts = facts_of(caller, caller.state, None, now, settings)
    if facts.requested_kind is not None:
        return now
    return None if facts.auto_sync_paused else facts.next_due_at or now


async def listed_value(
    reading: Reading,
    caller: Caller,
    days: int,
    now: datetime,
) -> ListedValueBody:
    """Raises OwnerRequired, InvalidPayload."""
    caller.must_see_revenue()
    if not 1 <= days <= DAYS_MOST:
        raise errors.InvalidPayload(f"days: must be a number from 1 to {DAYS_MOST}")
    since, rows = await read_listed(reading, caller, days, now)
    return listed_days(by_day(since, rows))


async def movers(reading: Reading, caller: Caller, days: int) -> MoversBody:
    """Raises InvalidPayload."""
    period = _period(days)
    found_at, cards = await read_movers(reading, caller, period)
    return movers_body(period, found_at, cards)


def _period(days: int) -> Literal[7, 30]:
    if days == 7:
        return 7
    if days == 30:
        return 30
    raise errors.InvalidPayload("days: must be 7 or 30")

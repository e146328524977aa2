"""Builds the answer of Today: the work list, the state of the sync, and the shop's figures."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import UNSET

from cardsync.access.caller import Caller
from cardsync.agents.sync.cooldown import meets, remaining_seconds
from cardsync.agents.sync.last_seen import LastSeen
from cardsync.agents.sync.poll import next_sync_at
from cardsync.agents.sync.schemas import PhaseProgress
from cardsync.agents.sync.status import SyncStatus, status_of
from cardsync.platform.clock import rfc3339_or_none
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import usd
from cardsync.platform.settings import Settings
from cardsync.prices.files.price_updates import run_waits
from cardsync.shop.today.conditions import conditions
from cardsync.shop.today.queries import read_shop
from cardsync.shop.today.schemas import ConditionBody, SyncBody, TodayBody
from cardsync.shop.today.sync_result import last_brought


async def today_of(
    reading: Reading,
    caller: Caller,
    seen: LastSeen,
    now: datetime,
    settings: Settings,
) -> TodayBody:
    status, (shop, agent), brought = await at_once(
        status_of(reading, caller, run_waits, now, settings),
        read_shop(caller, reading, seen, now, settings.catalog_renewal_days),
        last_brought(reading, caller),
    )
    found = conditions(shop.facts, owner=caller.role == "owner")
    return TodayBody(
        # The money of a condition is part of the sales or the listed value, so it is hidden from
        # callers who may not see revenue.
        conditions=[
            struct_of(ConditionBody, one, money=usd(caller.revenue(one.money))) for one in found
        ],
        sync=_sync(caller, status, agent.last_seen_at if agent else None, now, settings),
        sales=shop.sales if caller.sees_revenue else UNSET,
        listed=shop.listed if caller.sees_revenue else UNSET,
        last_run=shop.moves,
        last_sync=brought,
        to_ship=shop.to_ship,
        shipping=shop.shipping,
        feedback=shop.feedback,
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
        rfc3339_or_none(state.last_sync_at),
        rfc3339_or_none(next_sync_at(caller, now, settings)),
        rfc3339_or_none(seen_at),
        meets(remaining, metering=metering, paid=caller.entitlements(now).paid),
        remaining,
        account.credit_balance if metering else None,
    )

"""Rules, sales, pins and settings of pricing over HTTP.

Bodies are read field by field (`wire`), so that an error names its field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from litestar import Router, delete, get, patch, post, put
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.access.rate_limits.groups import WRITES
from cardsync.money import dollars
from cardsync.pricing.engine.rules import (
    CapMode,
    CapPeriod,
    FeeLevel,
    PriceSource,
    Rounding,
    Rule,
    RuleState,
    Sale,
)
from cardsync.pricing.models import PricingRule, PricingSale
from cardsync.pricing.preview.evidence import in_vain
from cardsync.pricing.rules import json, rule_sets, sale_sets
from cardsync.pricing.rules.queries import selections
from cardsync.pricing.rules.rows import all_rows, one_row, rule_of, sale_of, seller_pricing
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
)

Body = dict[str, Any]


class StaleCuts(msgspec.Struct):
    after_days: int
    step_bp: int
    every_days: int
    limit_bp: int


class SmallLimits(msgspec.Struct):
    below: str
    up_bp: int | None
    down_bp: int | None


class CapLimits(msgspec.Struct):
    up_bp: int | None
    down_bp: int | None
    period: CapPeriod
    mode: CapMode
    small: SmallLimits | None


class Gate(msgspec.Struct):
    min_listings: int
    min_sales_30d: int
    max_age_hours: int
    undercut_bp: int


class PricingRuleShown(msgspec.Struct):
    """Money is in dollars, percentages are whole basis points."""

    id: int
    name: str
    priority: int
    enabled: bool
    state: RuleState
    query: str
    price_source: PriceSource
    fallback_sources: list[PriceSource]
    adjust_bp: int
    adjust_amount: str
    floor: str | None
    ceiling: str | None
    never_lower: bool
    stale: StaleCuts | None
    velocity_boost_enabled: bool
    cap: CapLimits | None
    market_gate: Gate | None
    fee_gap_adjustment: bool
    rounding: Rounding
    created_at: str
    updated_at: str
    warnings: list[str]


class RuleList(msgspec.Struct):
    rules: list[PricingRuleShown]


class SaleShown(msgspec.Struct):
    id: int
    name: str
    priority: int
    enabled: bool
    query: str
    adjust_bp: int
    starts_at: str
    ends_at: str
    floor: str | None
    created_at: str
    updated_at: str
    warnings: list[str]


class SaleList(msgspec.Struct):
    sales: list[SaleShown]


class RuleOrder(msgspec.Struct):
    """Every rule's id, first wins; the default rule keeps its priority."""

    ids: list[int]


class PricingSettings(msgspec.Struct):
    direct_minimum: str
    direct_program: bool
    default_rule_enabled: bool
    minimum_move: str
    attribution_logging: bool
    max_age_hours: int
    fee_level: FeeLevel


class PinnedCard(msgspec.Struct):
    marketplace_id: int
    price: str


def _times(row: PricingRule | PricingSale) -> dict[str, str]:
    return {name: clock.rfc3339(getattr(row, name)) for name in ("created_at", "updated_at")}


async def _told(
    session: AsyncSession,
    rows: Sequence[PricingRule | PricingSale],
    read: Callable[[Any], Rule | Sale],
) -> list[dict[str, Any]]:
    """Each as it goes over the wire, with what its query can't find any more and what it asks in
    vain.
    """
    found = (
        await selections(session, rows[0].seller_id, [row.query for row in rows]) if rows else []
    )
    return [
        json.told(thing)
        | _times(row)
        | {"warnings": selection.warnings + (in_vain(thing) if isinstance(thing, Rule) else [])}
        for row, thing, selection in zip(rows, map(read, rows), found, strict=True)
    ]


async def _rules(session: AsyncSession, rows: Sequence[PricingRule]) -> list[PricingRuleShown]:
    return msgspec.convert(await _told(session, rows, rule_of), list[PricingRuleShown])


async def _rule(session: AsyncSession, row: PricingRule) -> PricingRuleShown:
    return (await _rules(session, [row]))[0]


async def _sales(session: AsyncSession, rows: Sequence[PricingSale]) -> list[SaleShown]:
    return msgspec.convert(await _told(session, rows, sale_of), list[SaleShown])


async def _sale(session: AsyncSession, row: PricingSale) -> SaleShown:
    return (await _sales(session, [row]))[0]


READING = problems(*BEHIND_A_KEY)
READING_ONE = problems(*BEHIND_A_KEY, errors.NotFound)
READ_BY_OWNER = problems(*READ_BY_OWNERS)
WRITING = problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery)
WRITING_ONE = problems(
    *FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.InvalidRule, errors.InvalidQuery
)
ON_ONE = problems(*FOR_OWNERS, errors.NotFound)
WITHOUT_QUERY = problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule)


@get("/rules", responses=READ_BY_OWNER)
async def list_rules(caller: Caller, session: AsyncSession) -> RuleList:
    """The base rules, by priority; the first that is published and enabled and selects a card
    governs it.
    """
    return RuleList(await _rules(session, await rule_sets.read_all(session, caller)))


@post("/rules", opt=WRITES, responses=WRITING)
async def create_rule(caller: Caller, session: AsyncSession, data: Body) -> PricingRuleShown:
    """A new rule: a draft, directly before the default rule, if the body does not say otherwise."""
    return await _rule(session, await rule_sets.create(session, caller, data, clock.now()))


@get("/rules/{rule_id:int}", responses=problems(*READ_BY_OWNERS, errors.NotFound))
async def read_rule(caller: Caller, session: AsyncSession, rule_id: int) -> PricingRuleShown:
    """One rule."""
    return await _rule(session, await rule_sets.read_one(session, caller, rule_id))


@patch("/rules/{rule_id:int}", opt=WRITES, responses=WRITING_ONE)
async def change_rule(
    caller: Caller, session: AsyncSession, rule_id: int, data: Body
) -> PricingRuleShown:
    """Set the fields that the body names."""
    return await _rule(session, await rule_sets.change(session, caller, rule_id, data, clock.now()))


@delete("/rules/{rule_id:int}", status_code=200, opt=WRITES, responses=ON_ONE)
async def delete_rule(caller: Caller, session: AsyncSession, rule_id: int) -> Deleted:
    """The rule is gone; what it priced keeps its receipts."""
    await rule_sets.remove(session, caller, rule_id, clock.now())
    return Deleted(True)


@post(
    "/rules/{rule_id:int}/publish",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.InvalidQuery),
)
async def publish_rule(caller: Caller, session: AsyncSession, rule_id: int) -> PricingRuleShown:
    """A draft becomes a live rule from the next run on."""
    return await _rule(
        session,
        await rule_sets.change(session, caller, rule_id, {"state": "published"}, clock.now()),
    )


@post("/rules/{rule_id:int}/enable", status_code=200, opt=WRITES, responses=ON_ONE)
async def enable_rule(caller: Caller, session: AsyncSession, rule_id: int) -> PricingRuleShown:
    """The rule governs again, if it is published."""
    return await _rule(
        session, await rule_sets.change(session, caller, rule_id, {"enabled": True}, clock.now())
    )


@post("/rules/{rule_id:int}/disable", status_code=200, opt=WRITES, responses=ON_ONE)
async def disable_rule(caller: Caller, session: AsyncSession, rule_id: int) -> PricingRuleShown:
    """The rule governs no card until it is enabled."""
    return await _rule(
        session, await rule_sets.change(session, caller, rule_id, {"enabled": False}, clock.now())
    )


@post("/rules/reorder", status_code=200, opt=WRITES, responses=WITHOUT_QUERY)
async def reorder_rules(caller: Caller, session: AsyncSession, data: RuleOrder) -> RuleList:
    """Rules in another order of priority; the body names every one of them."""
    return RuleList(
        await _rules(session, await rule_sets.reorder(session, caller, data.ids, clock.now()))
    )


@post("/presets/{preset:str}", status_code=200, opt=WRITES, responses=ON_ONE)
async def apply_preset(caller: Caller, session: AsyncSession, preset: str) -> PricingRuleShown:
    """premium, competitive, move or buy-box: one ordinary rule, in place of the earlier
    preset's.
    """
    return await _rule(session, await rule_sets.apply_preset(session, caller, preset, clock.now()))


@get("/sales", responses=READING)
async def list_sales(caller: Caller, session: AsyncSession) -> SaleList:
    """Temporary sales, by priority; the first that is active and selects a card applies to it."""
    return SaleList(await _sales(session, await all_rows(session, PricingSale, caller.seller_id)))


@post("/sales", opt=WRITES, responses=WRITING)
async def create_sale(caller: Caller, session: AsyncSession, data: Body) -> SaleShown:
    """A new sale: name, adjust_bp (below zero), starts_at and ends_at are needed."""
    return await _sale(session, await sale_sets.create_sale(session, caller, data, clock.now()))


@get("/sales/{sale_id:int}", responses=READING_ONE)
async def read_sale(caller: Caller, session: AsyncSession, sale_id: int) -> SaleShown:
    """One sale."""
    return await _sale(session, await one_row(session, PricingSale, caller.seller_id, sale_id))


@patch("/sales/{sale_id:int}", opt=WRITES, responses=WRITING_ONE)
async def change_sale(caller: Caller, session: AsyncSession, sale_id: int, data: Body) -> SaleShown:
    """Set the fields that the body names."""
    return await _sale(
        session, await sale_sets.change_sale(session, caller, sale_id, data, clock.now())
    )


@delete("/sales/{sale_id:int}", status_code=200, opt=WRITES, responses=ON_ONE)
async def delete_sale(caller: Caller, session: AsyncSession, sale_id: int) -> Deleted:
    """The sale is gone, from the next run on also from the prices."""
    await sale_sets.remove_sale(session, caller, sale_id, clock.now())
    return Deleted(True)


def _settings(account: Account) -> PricingSettings:
    pricing = seller_pricing(account)
    return PricingSettings(
        dollars(pricing.direct_minimum),
        account.direct_program,
        account.default_rule_enabled,
        dollars(pricing.minimum_move),
        account.attribution_logging,
        account.max_age_hours,
        pricing.fee_level,
    )


@get("/settings", responses=READ_BY_OWNER)
async def read_pricing_settings(caller: Caller, session: AsyncSession) -> PricingSettings:
    """What holds for all rules."""
    return _settings(await sale_sets.settings_of(session, caller))


@patch("/settings", opt=WRITES, responses=WITHOUT_QUERY)
async def change_pricing_settings(
    caller: Caller, session: AsyncSession, data: Body
) -> PricingSettings:
    """Set the fields that the body names."""
    return _settings(await sale_sets.change_settings(session, caller, data, clock.now()))


@put(
    "/pins/{marketplace_id:int}",
    opt=WRITES,
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.InvalidRule),
)
async def pin_card(
    caller: Caller, session: AsyncSession, marketplace_id: int, data: Body
) -> PinnedCard:
    """Fix a card's price: no rule touches it until it is unpinned."""
    price = await sale_sets.pin(session, caller, marketplace_id, data, clock.now())
    return PinnedCard(marketplace_id, dollars(price))


@delete("/pins/{marketplace_id:int}", status_code=200, opt=WRITES, responses=ON_ONE)
async def unpin_card(caller: Caller, session: AsyncSession, marketplace_id: int) -> Deleted:
    """The rules price the card again."""
    await sale_sets.unpin(session, caller, marketplace_id, clock.now())
    return Deleted(True)


router = Router(
    path="/pricing",
    route_handlers=[
        list_rules,
        create_rule,
        read_rule,
        change_rule,
        delete_rule,
        publish_rule,
        enable_rule,
        disable_rule,
        reorder_rules,
        apply_preset,
        list_sales,
        create_sale,
        read_sale,
        change_sale,
        delete_sale,
        read_pricing_settings,
        change_pricing_settings,
        pin_card,
        unpin_card,
    ],
    tags=["pricing"],
)

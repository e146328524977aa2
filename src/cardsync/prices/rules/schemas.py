"""The JSON structs of pricing's rules, sales and settings, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform import clock
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.kit.struct_rows import Reads, ReadsFor, struct_of
from cardsync.platform.money import dollars, dollars_or_none, usd
from cardsync.prices.decisions.sold_on_sale import SoldOnSale
from cardsync.prices.engine.rules import (
    CapMode,
    CapPeriod,
    FeeLevel,
    PriceSource,
    RepricingScope,
    Rounding,
    RuleState,
)
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_file import RecommendationMode
from cardsync.prices.inputs.rule_rows import rule_of, sale_of, seller_pricing
from cardsync.prices.models import PricingRule, PricingSale
from cardsync.prices.rule_tests.schemas import RuleTestVerdict
from cardsync.prices.rules.rule_warnings import Warnings


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


class Review(msgspec.Struct):
    up_bp: int | None
    down_bp: int | None
    first_price: bool


class PricingRuleShown(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Money is in dollars, percentages are whole basis points. Only a guard has `guard`."""

    id: int
    name: str
    priority: int
    enabled: bool
    state: RuleState
    """draft or published"""
    query: str
    price_source: PriceSource
    fallback_sources: list[PriceSource]
    adjust_bp: int
    adjust_amount: str
    floor: str | None
    floor_cost_bp: int | None
    ceiling: str | None
    never_lower: bool
    stale: StaleCuts | None
    velocity_boost_enabled: bool
    cap: CapLimits | None
    market_gate: Gate | None
    undercut_up_bp: int | None
    fee_gap_adjustment: bool
    rounding: Rounding
    review: Review | None
    holdout_bp: int | None
    created_at: str
    updated_at: str
    warnings: list[str]
    guard: bool = False
    """It prices no card: its floors and ceiling hold beside the rule that does"""


class SavedRule(PricingRuleShown, omit_defaults=True, kw_only=True):
    """One rule, and what the rule tests say of the rules with it: a draft is judged as if it were
    live.
    """

    rule_tests: list[RuleTestVerdict]


class RuleList(msgspec.Struct):
    rules: list[PricingRuleShown]


_Revenue = Annotated[
    str | UnsetType | None,
    ReadsFor(lambda caller, value: usd(value) if caller.sees_revenue else UNSET),
]


class SoldInSale(msgspec.Struct):
    """The copies of the sale's cards that were sold while they had its price. `value` is what
    buyers paid for them, before refunds, null where no price is known; it is absent for staff who
    may not see revenue.
    """

    copies: int
    """The copies sold in it"""
    unpriced: int
    """Those of them whose price is unknown; value leaves them out"""
    undated: int
    """Further copies of orders without a time, on a day that the sale began or ended"""
    since: Annotated[str, Reads(rfc3339)]
    """When the first card had its price"""
    until: Annotated[str | None, Reads(rfc3339_or_none)]
    """When the last card had it; null: cards have it now"""
    value: _Revenue = UNSET


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
    floor_cost_bp: int | None
    keep_never_lower: bool
    created_at: str
    updated_at: str
    warnings: list[str]
    sold: SoldInSale | None
    """The copies sold in it; null: no card has had its price yet"""


class SaleList(msgspec.Struct):
    sales: list[SaleShown]


class PricingSettings(msgspec.Struct):
    direct_minimum: str
    direct_program: bool
    default_rule_enabled: bool
    minimum_move: str
    minimum_cap_step: str
    attribution_logging: bool
    max_age_hours: int
    fee_level: FeeLevel
    hard_floor: str | None
    repricing_scope: RepricingScope
    shipping_adder: str | None
    review_up_bp: int | None
    review_down_bp: int | None
    review_first_price: bool
    recommendations: RecommendationMode


class PinnedCard(msgspec.Struct):
    marketplace_id: int
    price: str


def _times(row: PricingRule | PricingSale) -> dict[str, str]:
    return {name: clock.rfc3339(getattr(row, name)) for name in ("created_at", "updated_at")}


def rule_bodies(rows: Sequence[PricingRule], warnings: Warnings) -> list[PricingRuleShown]:
    bodies = [
        rule_json.to_json(rule_of(row)) | _times(row) | {"warnings": warned}
        for row, warned in zip(rows, warnings, strict=True)
    ]
    return msgspec.convert(bodies, list[PricingRuleShown])


def saved_rule(row: PricingRule, warnings: Warnings, verdicts: list[RuleTestVerdict]) -> SavedRule:
    [saved] = rule_bodies([row], warnings)
    return SavedRule(**msgspec.structs.asdict(saved), rule_tests=verdicts)


def sale_bodies(
    rows: Sequence[PricingSale],
    warnings: Warnings,
    sold: Mapping[int, SoldOnSale],
    caller: Caller,
) -> list[SaleShown]:
    bodies = [
        rule_json.to_json(sale_of(row))
        | _times(row)
        | {"warnings": warned, "sold": one and struct_of(SoldInSale, one, caller)}
        for row, warned in zip(rows, warnings, strict=True)
        for one in [sold.get(row.id)]
    ]
    return msgspec.convert(bodies, list[SaleShown])


def settings_body(account: Account) -> PricingSettings:
    pricing = seller_pricing(account)
    return PricingSettings(
        dollars(pricing.direct_minimum),
        account.direct_program,
        account.default_rule_enabled,
        dollars(pricing.minimum_move),
        dollars(pricing.minimum_cap_step),
        account.attribution_logging,
        account.max_age_hours,
        pricing.fee_level,
        dollars_or_none(pricing.hard_floor),
        pricing.repricing_scope,
        dollars_or_none(pricing.shipping_adder),
        pricing.review_up_bp,
        pricing.review_down_bp,
        pricing.review_first_price,
        account.recommendations,  # type: ignore[arg-type]
    )

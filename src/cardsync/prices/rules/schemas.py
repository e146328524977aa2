"""The JSON structs of pricing's rules, sales and settings, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform import clock, declared_fields
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.kit.struct_rows import Reads, ReadsFor, struct_of
from cardsync.platform.money import usd
from cardsync.prices.decisions.sold_on_sale import SoldOnSale
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_file import SET_APART, SETTING_NAMES, RecommendationMode
from cardsync.prices.inputs.rule_rows import rule_of, sale_of, seller_pricing
from cardsync.prices.models import PricingRule, PricingSale
from cardsync.prices.rule_tests.schemas import RuleTestVerdict
from cardsync.prices.rules.rule_warnings import Warnings

if TYPE_CHECKING:

    class _Rule(msgspec.Struct):
        id: int
        name: str

    _Settings: TypeAlias = msgspec.Struct
else:
    _Rule = declared_fields.answer_struct("_Rule", Rule, "guard", "broken")
    _Settings = declared_fields.answer_struct("_Settings", SellerPricing, *SET_APART)


class PricingRuleShown(_Rule, omit_defaults=True, kw_only=True):
    """Money is in dollars, percentages are whole basis points. Only a guard has `guard`."""

    created_at: str
    updated_at: str
    warnings: list[str]
    guard: bool = False
    """True for a guard, which sets no price: its limits apply to the price of the rule that governs
    the card
    """


class SavedRule(PricingRuleShown, omit_defaults=True, kw_only=True):
    """A rule, and the results of the rule tests with it: a draft is tested as if it were live."""

    rule_tests: list[RuleTestVerdict]


class RuleList(msgspec.Struct):
    rules: list[PricingRuleShown]


_Revenue = Annotated[
    str | UnsetType | None,
    ReadsFor(lambda caller, value: usd(value) if caller.sees_revenue else UNSET),
]


class SoldInSale(msgspec.Struct):
    """The copies that were sold while their cards had the sale's price. `value` is the buyers'
    payment for them, before refunds, or null if no price is known; it is absent for staff who may
    not see revenue.
    """

    copies: int
    """Number of copies sold in the sale"""
    unpriced: int
    """Number of the sold copies whose price is unknown; `value` excludes them"""
    undated: int
    """Number of further copies, of orders without a time on a day when the sale began or ended"""
    since: Annotated[str, Reads(rfc3339)]
    """Time at which the first card got the sale's price"""
    until: Annotated[str | None, Reads(rfc3339_or_none)]
    """Time at which the last card lost the sale's price; null while cards have it"""
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
    """The copies sold in the sale; null if no card has had its price yet"""


class SaleList(msgspec.Struct):
    sales: list[SaleShown]


class PricingSettings(_Settings):
    attribution_logging: bool
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
    pricing = declared_fields.to_json(seller_pricing(account))
    own = {name: pricing[name] for name in SETTING_NAMES}
    own |= {name: getattr(account, name) for name in ("attribution_logging", "recommendations")}
    return PricingSettings(**own)

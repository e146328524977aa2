"""The JSON structs that explain a card's price, and the functions that fill some of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.kit.struct_rows import Column, Reads, Usd, struct_of
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.rules import Rule


class ExplainedCard(msgspec.Struct):
    id: int
    """The id of the inventory row"""
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str


class ExplainedBlocker(msgspec.Struct):
    code: str
    message: str


class MatchingRule(msgspec.Struct):
    id: int
    name: str
    """The name of the rule"""
    kind: Literal["base", "sale", "guard"]
    """base: a rule. sale: a promotion. guard: a rule that only limits"""
    priority: int
    outcome: Literal["governs", "blocks", "applies", "lost", "holds", "decides"]
    """The rule's effect on the card"""
    reason: str


class GoverningRule(msgspec.Struct):
    id: int
    name: str
    priority: int


def governing_rule(rules: Iterable[Rule], rule_id: int | None) -> GoverningRule | None:
    rule = next((rule for rule in rules if rule.id == rule_id), None)
    return struct_of(GoverningRule, rule) if rule else None


StaleReason = Literal["rule_changed", "new_prices", "pin_waits", "time_passed"]


class StaleTarget(msgspec.Struct):
    reason: StaleReason
    message: str


class ExplainedPin(msgspec.Struct):
    """The pin that replaces the rules' price; the pin of an accepted suggestion ends at `until`."""

    price: Usd
    by: Annotated[str | None, Column("decided_by")]
    """The member, key or token that pinned the card, as named in Activity"""
    since: Annotated[str, Reads(rfc3339)]
    until: Annotated[str | None, Reads(rfc3339_or_none)]


class Explanation(msgspec.Struct):
    """Every step has `name`, `input`, `output`, `summary` and its own fields. `target_price` is the
    stored target, or the card's pin. `stale` is the reason why the stored target differs from the
    present result of the steps, or null if it does not differ.
    """

    marketplace_id: int
    card: ExplainedCard
    """The card"""
    currency: str
    current_price: str | None
    target_price: str | None
    computed_at: str
    blockers: list[ExplainedBlocker]
    matching_rules: list[MatchingRule]
    governing_rule: GoverningRule | None
    steps: list[JsonObject]
    """Each step with its name, input, output and summary, in order"""
    inputs: JsonObject
    historical_breakdown: JsonObject | None
    # The reason why there is no `historical_breakdown`.
    historical_breakdown_absent: ExplainedBlocker | None
    pin: ExplainedPin | None
    """The pin that sets the target; null if the rules set it"""
    stale: StaleTarget | None
    """The reason why the stored target differs from the present result of the steps, or null"""


class ReceiptThen(msgspec.Struct):
    """The receipt of the last sync before a time, or the reason why there is no receipt."""

    historical_breakdown: JsonObject | None
    historical_breakdown_absent: ExplainedBlocker | None

"""What a rule asks for and nobody gathers yet: a rule in, what it asks in vain out, in words. Pure.

Recent sales, others' listings and buy-outs are market evidence. Until something brings it, a
sales anchor falls back and a gate never undercuts; whoever writes, previews or follows such a
rule is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cardsync.pricing.engine.rules import Rule

# Inputs of the engine that no stored data fills.
UNFED: Final = (
    "sales_median",
    "sales_count",
    "sales_newest_at",
    "sales_fetched_at",
    "listings_low",
    "listings_count",
    "listings_observed_at",
    "buy_out_detected_at",
)
NO_SALES: Final = "sales_anchor: no recent sales are known of any card, so the next source is taken"
NO_LISTINGS: Final = "market_gate: no listings are known of any card, so nothing is undercut"


def in_vain(rule: Rule) -> list[str]:
    anchored = [NO_SALES] if "sales_anchor" in rule.sources else []
    return anchored + ([NO_LISTINGS] if rule.market_gate else [])


def told(rules: Iterable[Rule]) -> list[str]:
    """The same of many, each under its rule's name."""
    return [f"rule “{rule.name}”: {said}" for rule in rules for said in in_vain(rule)]

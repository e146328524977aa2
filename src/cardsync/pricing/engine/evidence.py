"""Market evidence that a rule uses and that no import gathers yet: a rule goes in; sentences about
the missing evidence come out. The module is pure.

Recent sales, others' listings and buy-outs are market evidence. Until an import brings it, a sales
anchor falls back and a gate never undercuts; a seller who writes, previews or follows such a rule
gets a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cardsync.pricing.engine.rules import Rule

# No stored data fills these inputs of the engine.
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
    """Return the same sentences for many rules, each under its rule's name."""
    return [f"rule “{rule.name}”: {said}" for rule in rules for said in in_vain(rule)]

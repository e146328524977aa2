"""Warns about market evidence that a rule needs and that was never imported. Pure.

Without recent sales, a rule's sales anchor falls back on the next source; without listings, its
market gate never undercuts. Sellers who write, preview or use such a rule get a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cardsync.prices.engine.rules import Rule

NO_SALES: Final = "sales_anchor: no recent sales are known of any card, so the next source is taken"
NO_LISTINGS: Final = "market_gate: no listings are known of any card, so nothing is undercut"


class Observed(NamedTuple):
    """Flags: whether sales and listings of any product were ever imported."""

    sales: bool
    listings: bool


def asks(rule: Rule) -> bool:
    return "sales_anchor" in rule.sources or rule.market_gate is not None


def in_vain(rule: Rule, observed: Observed) -> list[str]:
    anchored = "sales_anchor" in rule.sources and not observed.sales
    gated = rule.market_gate is not None and not observed.listings
    return [NO_SALES] * anchored + [NO_LISTINGS] * gated


def warnings_of(rules: Iterable[Rule], observed: Observed) -> list[str]:
    """Return the warnings of many rules, each with its rule's name."""
    return [f"rule “{rule.name}”: {said}" for rule in rules for said in in_vain(rule, observed)]

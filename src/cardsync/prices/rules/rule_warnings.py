"""Finds warnings about stored rules and sales, a list of sentences for each.

A warning names a part of a query that no longer selects anything, or market evidence that a rule
needs and that was never imported.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardsync.platform.database.read_sources import Source
from cardsync.prices.engine.missing_evidence import in_vain
from cardsync.prices.inputs.market_inputs import observed_for
from cardsync.prices.inputs.rule_queries import selections
from cardsync.prices.inputs.rule_rows import rule_of
from cardsync.prices.models import PricingRule, PricingSale

Warnings = list[list[str]]


async def warnings_of(
    source: Source, rows: Sequence[PricingRule] | Sequence[PricingSale]
) -> Warnings:
    """Return the warnings about the rules or sales `rows` of one seller. The names in all queries
    are looked up together.
    """
    if not rows:
        return []
    found = await selections(
        source,
        rows[0].seller_id,
        [row.query for row in rows],
    )
    rules = [rule_of(row) if isinstance(row, PricingRule) else None for row in rows]
    observed = await observed_for(source, [rule for rule in rules if rule is not None])
    return [
        selection.warnings + (in_vain(rule, observed) if rule is not None else [])
        for rule, selection in zip(rules, found, strict=True)
    ]

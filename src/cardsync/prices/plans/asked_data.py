"""Finds the kinds of a shop's data that the rules and promotions use, from their parsed queries and
their fields. A write of such data changes prices. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, cast

from cardsync.platform.declared_fields import declared
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import terms

Data = Literal[
    # Tables that uploads, the agent's reports and pricing itself write.
    "uploads", "prices", "reviews",
    # Tables that members, keys and tokens also write.
    "products", "pins", "lists", "costs", "places", "counts", "market", "orders",
]  # fmt: skip
OF_FIELDS: Final[Mapping[str, Data]] = {
    **dict.fromkeys(("name", "number", "game", "rarity", "cond", "printing", "lang"), "uploads"),
    **dict.fromkeys(("market", "low", "lowship", "direct", "qty", "id", "sku"), "uploads"),
    "set": "products",
    "v": "uploads",
    **dict.fromkeys(("price", "target", "change"), "prices"),
    **dict.fromkeys(("cost", "margin", "age"), "costs"),
    "unsold": "orders",
    "list": "lists",
    **dict.fromkeys(("unshelved", "box", "loc"), "places"),
    # Queries of rules cannot use this field.
    "rule": "prices",
}
OF_FLAGS: Final[Mapping[str, Data]] = {
    **dict.fromkeys(("gone", "active", "custom", "sealed", "foil", "stamped"), "uploads"),
    **dict.fromkeys(("confirmed", "in-flux", "dropped", "moved"), "uploads"),
    **dict.fromkeys(("priced", "unpriced", "underpriced", "overpriced"), "prices"),
    **dict.fromkeys(("held", "capped", "stuck"), "reviews"),
    **dict.fromkeys(("unshelved", "location-drift"), "places"),
    "pinned": "pins",
    "review": "products",
    "audit": "counts",
}
OF_THINGS: Final[Mapping[str, Data]] = {
    "photo": "uploads",
    "list": "lists",
    "rule": "prices",
    "receipt": "prices",
    "location": "places",
    "cost": "costs",
}
# The fields of a rule that need further data. Price sources are checked by their names.
OF_RULES: Final = {each.name: each.field.uses for each in declared(Rule) if each.field.uses}
_ANCHOR: Final[tuple[Data, ...]] = ("market", "products")


def asked_of(run: Run) -> frozenset[Data]:
    """Return the data that the rules and promotions use, including disabled rules and
    promotions.
    """
    queries = [*(rule.query for rule in run.rules), *(sale.query for sale in run.sales)]
    costs: Data = "costs"
    by_cost = {costs for sale in run.sales if sale.floor_cost_bp is not None}
    by_rules = {data for rule in run.rules for data in _asked_by_rule(rule)}
    return asked_by(queries) | by_rules | by_cost


def asked_by(queries: Iterable[str]) -> frozenset[Data]:
    return frozenset(data for query in set(queries) for data in _asked_by_query(query))


def _asked_by_query(query: str) -> Iterator[Data]:
    try:
        found = [*terms(parse(query))] if query else []
    except QueryError:
        # An unreadable query selects no cards, so no write affects it.
        return
    for term in found:
        if term.field == "is":
            yield from (OF_FLAGS[str(value)] for value in term.values)
        elif term.field == "has":
            yield from (OF_THINGS[str(value)] for value in term.values)
        else:
            yield OF_FIELDS[term.field]


def _asked_by_rule(rule: Rule) -> Iterator[Data]:
    for field, asked in OF_RULES.items():
        value = getattr(rule, field)
        # A floor of 0 above the cost counts as set.
        if value is not None and value is not False:
            yield from cast("tuple[Data, ...]", asked)
    if "sales_anchor" in rule.sources:
        yield from _ANCHOR

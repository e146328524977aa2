"""Finds the rule and the sale that select each row of one file, for rules with queries.

PostgreSQL evaluates the search language, so the rows are copied into a temporary table, which the
end of the transaction drops. A file has no lists, shelves, orders or history; `unanswerable` names
the parts of a query that need them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import errors
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import (
    candidates_read,
    choices,
    condition_of,
    first_of,
    guards_of,
    losing_of,
)
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.stock.cards.names_in_search import NamesOf
from cardsync.stock.cards.write import decimal
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.folding import search_columns
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import terms

Thing = TypeVar("Thing", Rule, Sale)
# No seller has this id, so the queries read no seller's rows.
NOBODY: Final = 0
_AMOUNTS: Final = ("price", "market", "low", "low_with_shipping", "direct_low")
_TEXTS: Final = (
    "product_line",
    "set_name",
    "product_name",
    "title",
    "number",
    "rarity",
    "photo_url",
    "condition",
    "printing",
    "language",
)
_TYPES: Final = {
    "id": "bigint",
    "listing_id": "bigint",
    "quantity": "integer",
    "custom": "boolean",
    **dict.fromkeys(_AMOUNTS, "numeric(12,4)"),
    **dict.fromkeys(_TEXTS, "text"),
    "search_text": 'text COLLATE "C"',
    "number_leading": "integer",
}
CARDS: Final = """
    SELECT i.*, :seller AS seller_id, i.listing_id AS marketplace_id,
           NULL::bigint AS product_id, '' AS match, i.quantity = 0 AS gone,
           CAST(:now AS timestamptz) AS observed_at, NULL::timestamptz AS created_at,
           NULL::timestamptz AS priced_at,
           NULL::numeric AS target_price
      FROM rows_of_file i
"""
_FIELDS: Final = frozenset(
    {
        "list",
        "box",
        "loc",
        "unshelved",
        "target",
        "change",
        "age",
        "unsold",
        "cost",
        "margin",
        "rule",
    },
)
_FLAGS: Final = {
    "is": frozenset(
        {
            "unshelved",
            "location-drift",
            "underpriced",
            "overpriced",
            "pinned",
            "held",
            "capped",
            "stuck",
            "moved",
            "audit",
            "dropped",
            "confirmed",
            "in-flux",
            "review",
        }
    ),
    "has": frozenset({"rule", "list", "receipt", "location", "cost"}),
}


def unanswerable(query: str) -> list[str]:
    """Return the parts of the query that a file cannot answer."""
    try:
        asked = list(terms(parse(query)))
    except QueryError:
        return []
    fields = [term.field for term in asked if term.field in _FIELDS]
    flags = [
        f"{term.field}:{value}"
        for term in asked
        for value in term.values
        if value in _FLAGS.get(term.field, frozenset())
    ]
    return list(dict.fromkeys([*fields, *flags]))


async def resolve(database: Database, rows: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return (rule_id, sale_id, candidates, game_has_rules, guards) of each row, in the order of
    the rows.

    Raises InvalidQuery, naming the rule or sale.
    """
    async with database.tenant(NOBODY) as session:
        await fill_rows(session, rows)
        priced = [*run.live, *run.guards]
        run = replace(
            run,
            rules=[await _readable(session, rule, rule in priced) for rule in run.rules],
            sales=[await _readable(session, sale, sale in run.active_sales) for sale in run.sales],
        )
        chosen = await choices(session, NOBODY, run)
        bound = {"seller": NOBODY, "now": run.now}
        rule, sale = first_of(chosen.rules, bound, "r"), first_of(chosen.sales, bound, "s")
        own = {rule.id for rule in chosen.run.own_rules}
        conditions = [
            condition_of(selection, bound, f"g{place}")
            for place, (id, selection) in enumerate(chosen.rules)
            if id in own
        ]
        games = f"bool_or({' OR '.join(conditions) or 'false'}) OVER (PARTITION BY c.product_line)"
        sql = f"""
            SELECT {rule}, {sale}, {losing_of(chosen, bound)}, ({games})::integer,
                   {guards_of(chosen, bound)}
              FROM ({CARDS}) c ORDER BY c.id
        """
        names = ("rule_id", "sale_id", "candidates", "game_has_rules", "guards")
        schema = dict.fromkeys(names, pl.Int64) | {"candidates": pl.String}
        found = await read_rows(session, sql, schema, bound)
    return found.with_columns(candidates_read(), pl.col("game_has_rules").cast(pl.Boolean))


async def _readable(session: AsyncSession, thing: Thing, takes_part: bool) -> Thing:
    """Return the rule or sale with the names of the file's cards quoted in its query."""
    if not takes_part:
        return thing
    kind = "rule" if isinstance(thing, Rule) else "sale"
    try:
        query = await need_readable(session, NOBODY, thing.query, names=NamesOf.FILE)
    except errors.InvalidQuery as e:
        raise errors.InvalidQuery(f"{kind} “{thing.name}”: {e}") from e
    return replace(thing, query=query)


async def fill_rows(session: AsyncSession, rows: pl.DataFrame) -> None:
    """Copy the rows into the table that `CARDS` reads; the id of a row is its position."""
    outside = (
        rows.with_row_index("id")
        .hstack(search_columns(rows))
        .with_columns(decimal(name) for name in _AMOUNTS)
    )
    await new_table(session, "rows_of_file", outside.select(list(_TYPES)), _TYPES)

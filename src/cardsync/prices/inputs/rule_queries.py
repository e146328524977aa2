"""Checks the queries of rules and sales when they are saved, and compiles them to SQL conditions
when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_of, rows_once
from cardsync.stock.cards.names_in_search import NamesOf, known_names, with_names
from cardsync.stock.search.compile import Where, compile_query
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import Tree


class Selection(NamedTuple):
    """A query's condition over `card c`, or None if the query cannot be parsed, and warnings that
    the query may select fewer cards than its text suggests.
    """

    where: Where | None
    warnings: list[str]


async def need_readable(
    source: Source,
    seller_id: int,
    query: str,
    field: str = "query",
    names: NamesOf = NamesOf.SHOP,
    named_by: int | None = None,
) -> str:
    """Return the query with card names in quotes, so that cards added later do not change its
    meaning. The names are those of the cards of the seller or, if it is set, of the seller
    `named_by`. Raise InvalidQuery, which names the field, for a query that can't be parsed, refers
    to rules or names another seller's list.
    """
    if not query:
        return query
    try:
        of = seller_id if named_by is None else named_by
        query = await with_names(rows_of(source), of, query, names)
        tree = parse(query)
        compile_query(
            tree,
            await known_names(rows_once(source), seller_id, tree),
            of_rule=True,
        )
    except QueryError as e:
        raise errors.InvalidQuery(f"{field}: {e} (at offset {e.offset})") from e
    return query


async def selections(
    source: Source,
    seller_id: int,
    queries: Sequence[str],
) -> list[Selection]:
    """Return the current selections of saved queries. The names in all queries are looked up
    together.
    """
    trees = [_tree(query) for query in queries]
    readable = [tree for tree in trees if isinstance(tree, Tree)]
    known = await known_names(rows_once(source), seller_id, *readable) if readable else None
    found = []
    for query, tree in zip(queries, trees, strict=True):
        if not query:
            found.append(Selection(Where("true", {}, []), []))
        elif isinstance(tree, QueryError) or tree is None or known is None:
            found.append(Selection(None, [f"The search doesn't work: {tree}"]))
        else:
            found.append(_selection(tree, known))
    return found


def _selection(tree: Tree, known: Any) -> Selection:
    try:
        where = compile_query(tree, known, of_rule=True, saved=True)
    except QueryError as e:
        return Selection(None, [f"The search doesn't work: {e}"])
    return Selection(where, where.warnings)


def _tree(query: str) -> Tree | QueryError | None:
    try:
        return parse(query) if query else None
    except QueryError as e:
        return e

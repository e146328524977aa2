"""Turns a filter of a seller's cards into an SQL condition over `card c`.

The cards list, lists, shelves and prices all select cards with this module, so that a search finds
the same cards everywhere.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import Rows
from cardsync.stock.cards.card_filter import CardFilter
from cardsync.stock.cards.names_in_search import known_names, read_search
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.search.compile import compile_query
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.tree import Tree, asks_for_gone, terms

# Only callers who see revenue may search by these fields.
COSTS: Final = frozenset({"cost", "margin"})


class Selected(NamedTuple):
    where: str
    values: dict[str, object]


async def select_cards(
    rows: Rows,
    caller: Caller,
    wanted: CardFilter,
    now: datetime,
) -> Selected:
    """Select the cards of a filter that the caller, a member or a key, may see. Raises
    QueryError.
    """
    seller_id = caller.seller_id
    tree = await read_search(rows, seller_id, wanted.search)
    if not caller.sees_revenue:
        _need_no_costs(tree)
    found = compile_query(tree, await known_names(rows, seller_id, tree))
    conditions = ["c.seller_id = :seller", *_status(wanted, tree)]
    values: dict[str, object] = {"seller": seller_id, "now": now, **found.values}
    values["member"] = caller.member_id
    if wanted.game:
        conditions.append("c.product_line = :game")
        values["game"] = wanted.game
    if wanted.ids is not None:
        conditions.append("c.id = ANY (CAST(:ids AS bigint[]))")
        values["ids"] = list(wanted.ids)
    return Selected(" AND ".join([*conditions, f"({found.sql})", VISIBLE]), values)


def _need_no_costs(tree: Tree) -> None:
    """Refuse a search by cost or margin, which would reveal cards' costs. Raises QueryError."""
    for term in terms(tree):
        if term.field in COSTS:
            raise QueryError(f"only members who can see sales can search by {term.field}", term.at)


def _status(wanted: CardFilter, tree: Tree) -> list[str]:
    if wanted.status == "gone":
        return ["c.gone"]
    return ["NOT c.gone"] if wanted.status == "active" and not asks_for_gone(tree) else []

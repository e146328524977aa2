"""Writes a filter's selection of a seller's cards as a condition of SQL over `card c`.

All selections are made here: reads, lists, shelves and prices use this module, so that a search
means the same in all of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from cardsync.cards.card_filter import CardFilter
from cardsync.cards.names_in_search import Rows, known_names
from cardsync.cards.visible import VISIBLE
from cardsync.search.compile import compile_query
from cardsync.search.parser import parse
from cardsync.search.tree import Tree, asks_for_gone


class Selected(NamedTuple):
    where: str
    values: dict[str, Any]


async def select_cards(
    rows: Rows,
    seller_id: int,
    wanted: CardFilter,
    now: datetime,
    member_id: int | None = None,
) -> Selected:
    """Select the cards that the member may see, or, without a member, a key. Raises QueryError."""
    tree = parse(wanted.search)
    found = compile_query(tree, await known_names(rows, seller_id, tree))
    conditions = ["c.seller_id = :seller", *_status(wanted, tree)]
    values: dict[str, Any] = {"seller": seller_id, "now": now, "member": member_id, **found.values}
    if wanted.game:
        conditions.append("c.product_line = :game")
        values["game"] = wanted.game
    if wanted.ids is not None:
        conditions.append("c.id = ANY (CAST(:ids AS bigint[]))")
        values["ids"] = list(wanted.ids)
    return Selected(" AND ".join([*conditions, f"({found.sql})", VISIBLE]), values)


def _status(wanted: CardFilter, tree: Tree) -> list[str]:
    if wanted.status == "gone":
        return ["c.gone"]
    return ["NOT c.gone"] if wanted.status == "active" and not asks_for_gone(tree) else []

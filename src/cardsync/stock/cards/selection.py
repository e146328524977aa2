"""Turns a filter of a seller's cards into an SQL condition over `card c`.

The cards list, lists, shelves and prices all select cards with this module, so that a search finds
the same cards everywhere.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import Rows
from cardsync.stock.cards.card_filter import CardFilter
from cardsync.stock.cards.names_in_search import known_names, read_search
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.search.compile import EVERYTHING, compile_query
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.tree import Tree, asks_for_gone, terms

# Only callers who see revenue may search by these fields.
COSTS: Final = frozenset({"cost", "margin"})
ACTIVE: Final = "NOT c.gone"


class Selected(NamedTuple):
    """The condition `where` and its values. `matches` is its part besides seller and status;
    `active` is true if the status is only cards in stock. `texts` is the part of `matches` that
    reads only search texts, or empty.
    """

    where: str
    values: dict[str, object]
    matches: str
    active: bool
    texts: str

    @property
    def everything(self) -> bool:
        return self.matches == _matching(EVERYTHING)

    @property
    def by_ids(self) -> bool:
        return "ids" in self.values

    @property
    def reads_others(self) -> bool:
        """Whether the condition reads other tables or other rows."""
        return "SELECT" in self.matches.removesuffix(VISIBLE)

    @property
    def by_text(self) -> bool:
        """Whether the condition reads only columns of `ix_card_name`."""
        return _reads_only(self.matches.removesuffix(VISIBLE), {"id", "search_text"})


_COLUMN: Final = re.compile(r"\bc\.(\w+)")


def _reads_only(sql: str, columns: set[str]) -> bool:
    return "SELECT" not in sql and set(_COLUMN.findall(sql)) <= columns


def _matching(*conditions: str) -> str:
    return " AND ".join([*conditions, VISIBLE])


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
    conditions = []
    values: dict[str, object] = {"seller": seller_id, "now": now, **found.values}
    values["member"] = caller.member_id
    if wanted.game:
        conditions.append("c.product_line = :game")
        values["game"] = wanted.game
    if wanted.ids is not None:
        conditions.append("c.id = ANY (CAST(:ids AS bigint[]))")
        values["ids"] = list(wanted.ids)
    matches = _matching(*conditions, found.sql if found.sql == EVERYTHING else f"({found.sql})")
    status = _status(wanted, tree)
    where = " AND ".join(["c.seller_id = :seller", *status, matches])
    texts = " AND ".join(f"({part})" for part in found.parts if _reads_only(part, {"search_text"}))
    return Selected(where, values, matches, status == [ACTIVE], texts)


def _need_no_costs(tree: Tree) -> None:
    """Refuse a search by cost or margin, which would reveal cards' costs. Raises QueryError."""
    for term in terms(tree):
        if term.field in COSTS:
            raise QueryError(f"only members who can see sales can search by {term.field}", term.at)


def _status(wanted: CardFilter, tree: Tree) -> list[str]:
    if wanted.status == "gone":
        return ["c.gone"]
    return [ACTIVE] if wanted.status == "active" and not asks_for_gone(tree) else []

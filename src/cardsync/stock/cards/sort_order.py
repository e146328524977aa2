"""Builds the sort order of a page of cards as SQL over `card c`: the keys and their ORDER BY. Pure.

Cards without a value to sort by are last in both directions; ties are ordered by id.
"""

from __future__ import annotations

from typing import NamedTuple

from cardsync.platform.shelf_place import NAMED, WAY
from cardsync.stock.cards.card_filter import CardPage, Sort
from cardsync.stock.search.folding import NUMBER, RARITY, SET, TOTAL


class PageOrder(NamedTuple):
    """A sort order. `keys` are SQL expressions over `card c`; `by` is the ORDER BY over rows whose
    columns k0, k1, … are these keys, and id.
    """

    keys: tuple[str, ...]
    by: str


def _part(begins: str, ends: str) -> str:
    after = f"split_part(c.search_text, chr({ord(begins)}), 2)"
    return f"split_part({after}, chr({ord(ends)}), 1)"


_KEY = _part(NUMBER, TOTAL)
# Collector numbers are ordered by the number in them, so TG5 precedes TG10.
_NATURAL = (
    "c.number_leading",
    f"CASE WHEN c.number_leading IS NULL THEN nullif(substring({_KEY} FROM '^[^0-9]*'), '') END",
    (
        f"CASE WHEN c.number_leading IS NULL"
        f" THEN CAST(substring({_KEY} FROM '[0-9]{{1,18}}') AS bigint) END"
    ),
    _KEY,
)
# chr(1) separates a box's rank from the slot, because a rank has no character below a space.
_PLACE = f"""(SELECT min({WAY} || chr(1) || lpad(CAST(l.slot AS text), 7, '0'))
  FROM card_location l {NAMED} WHERE l.seller_id = :seller AND l.card_id = c.id)"""
_KEYS: dict[Sort, tuple[str, ...]] = {
    "name": ("c.search_text",),
    "set": (f"nullif({_part(SET, RARITY)}, '')", *_NATURAL),
    "number": _NATURAL,
    "price": ("c.price",),
    "target": ("c.target_price",),
    "quantity": ("c.quantity",),
    "updated": ("c.updated_at",),
    "location": (_PLACE,),
}


def behind(order: PageOrder, direction: str) -> str:
    """Return the SQL condition that the row `f` follows the row `at` in `order`. Both rows have the
    columns k0, k1, … and id; a null key is last.
    """
    sign = "<" if direction == "desc" else ">"
    found = f"f.id {sign} at.id"
    for number in reversed(range(len(order.keys))):
        key, mark = f"f.k{number}", f"at.k{number}"
        later = f"({mark} IS NOT NULL AND ({key} {sign} {mark} OR {key} IS NULL))"
        found = f"({later} OR ({key} IS NOT DISTINCT FROM {mark} AND {found}))"
    return found


def page_order(page: CardPage) -> PageOrder:
    keys = _KEYS[page.sort]
    direction = "DESC" if page.direction == "desc" else "ASC"
    # Names are never null, and an index has their order without NULLS LAST.
    nulls = "" if page.sort == "name" else " NULLS LAST"
    by = [f"k{number} {direction}{nulls}" for number in range(len(keys))]
    return PageOrder(keys, ", ".join([*by, f"id {direction}"]))

"""A page of the cards that a condition selects, and how many there are: a condition of SQL over
`card c` and an order in, statements out. Pure.

Where many are found, most of them come after the page and are only counted, by processes that
share the pass over the cards. Which do is told by a key that a look at some of the cards gives:
what is before it there is before it among all.
"""

from __future__ import annotations

import re

from cardsync.cards.order import PageOrder

# Ids stand close where they were given at once, and far apart between uploads: looked for from
# places that divide the whole of their range, its 64th part and the 64th of that.
_PLACES, _SHIFTS, _AT_EACH = 8, (0, 6, 12), 150
_LOOKED_AT = _PLACES * len(_SHIFTS) * _AT_EACH
# A page is no more than the fourth part of those looked at: else there is little that would only
# be counted.
_FEWER = 4
# So few cards are found faster than looked at.
_MANY = 2 * _LOOKED_AT


def worth_a_look(order: PageOrder, needed: int) -> bool:
    """A key that is not stored with the card costs more than it saves."""
    return needed * _FEWER <= _LOOKED_AT and bool(re.fullmatch(r"c\.\w+", order.keys[0]))


def looked_at(where: str, order: PageOrder) -> str:
    """The first key of the card at :last among those looked at that are selected. No row where
    most of these don't come after it, or where the seller has not many cards at all."""
    ids = "SELECT id FROM card WHERE seller_id = :seller ORDER BY id"
    return f"""
        WITH ends AS MATERIALIZED (SELECT ({ids} LIMIT 1) AS first, ({ids} DESC LIMIT 1) AS last, ({ids} OFFSET {_MANY} LIMIT 1) AS many),
        places AS (
            SELECT DISTINCT first + ((last - first) >> shift) / {_PLACES} * number AS id
              FROM ends, generate_series(0, {_PLACES - 1}) AS number, (VALUES {_values(_SHIFTS)}) AS shifts (shift) WHERE many IS NOT NULL),
        keys AS MATERIALIZED (
            SELECT DISTINCT c.id, {order.keys[0]} AS k0 FROM places, LATERAL (
                SELECT * FROM card s WHERE s.seller_id = :seller AND s.id >= places.id ORDER BY s.id LIMIT {_AT_EACH}
            ) AS c WHERE {where}),
        cut AS (SELECT k0 FROM keys ORDER BY {order.by.partition(",")[0]} OFFSET :last LIMIT 1)
        SELECT k0 FROM cut
         WHERE k0 IS NOT NULL AND (SELECT count(*) FROM keys WHERE keys.k0 {order.not_after} cut.k0) * {_FEWER} <= (SELECT count(*) FROM keys)
    """


def _values(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"({number})" for number in numbers)


def all_found(where: str, order: PageOrder) -> str:
    return f"""
        found AS MATERIALIZED (SELECT {_keyed(order)} FROM card c WHERE {where}),
        counted AS (SELECT count(*) AS total FROM found)
    """


def found_before(where: str, order: PageOrder) -> str:
    """Those whose first key does not come after :cut, and one row that stands for all others."""
    names = ["id", *(f"k{number}" for number in range(len(order.keys)))]
    cut = ", ".join(
        f"CASE WHEN k0 {order.not_after} :cut THEN {name} END AS {name}" for name in names
    )
    keys = ", ".join(f"min({name}) AS {name}" for name in names[1:])
    # The sub-select has to stand by itself (a literal of an unknown type is what parallel plans
    # allow for it): of what it gives the planner expects few values, and has them grouped where
    # they are read.
    return f"""
        groups AS MATERIALIZED (
            SELECT id, {keys}, count(*) AS cards
              FROM (SELECT {cut} FROM (SELECT {_keyed(order)} FROM card c WHERE {where}) AS keyed OFFSET '0') AS cut GROUP BY id),
        found AS (SELECT * FROM groups WHERE id IS NOT NULL),
        counted AS (SELECT CAST(coalesce(sum(cards), 0) AS bigint) AS total FROM groups)
    """


def _keyed(order: PageOrder) -> str:
    return ", ".join(["c.id", *(f"{key} AS k{number}" for number, key in enumerate(order.keys))])


def page_of(found: str, order: PageOrder, columns: str, cards: str) -> str:
    """The total with `columns` of `cards`, a join over `card c`, from :offset on, at most :limit;
    a row of the total alone if none.
    """
    return f"""
        WITH {found},
        ordered AS (SELECT id FROM found ORDER BY {order.by} LIMIT :limit OFFSET :offset),
        page AS (SELECT id, row_number() OVER () AS place FROM ordered)
        SELECT counted.total, {columns}
          FROM counted LEFT JOIN page ON true
               LEFT JOIN ({cards}) ON c.seller_id = :seller AND c.id = page.id
         ORDER BY page.place
    """

"""A page of the cards that a condition selects, with their total: a condition of SQL over
`card c` and an order come in, statements go out. Pure.

Where many cards are found, most of them come after the page and only have to be counted; the
processes that share the pass over the cards do that. A key from a sample of the cards tells the
two apart: as many cards come before it among all as the sample promises.
"""

from __future__ import annotations

import re

from cardsync.cards.order import PageOrder, behind
from cardsync.database.id_sample import SAMPLED, places_of, rows_at_places

# A page is at most the fourth part of the sample: otherwise there are few cards that only have to
# be counted.
_FEWER = 4


def worth_a_look(order: PageOrder, needed: int) -> bool:
    """Return whether a sample pays: a key that is not stored with the card costs more to compute
    than the sample saves.
    """
    return needed * _FEWER <= SAMPLED and bool(re.fullmatch(r"c\.\w+", order.keys[0]))


def looked_at(where: str, order: PageOrder) -> str:
    """Return the first key of the card at :last among the selected cards of the sample. The
    statement has no row if too many of the sample come before that key, or if the seller has few
    cards in all.
    """
    return f"""
        WITH {places_of("card")},
        keys AS MATERIALIZED (
            SELECT DISTINCT c.id, {order.keys[0]} AS k0
              FROM {rows_at_places("card", "c")} WHERE {where}),
        cut AS (SELECT k0 FROM keys ORDER BY {order.by.partition(",")[0]} OFFSET :last LIMIT 1)
        SELECT k0 FROM cut
         WHERE k0 IS NOT NULL
           AND (SELECT count(*) FROM keys WHERE keys.k0 {order.not_after} cut.k0) * {_FEWER}
               <= (SELECT count(*) FROM keys)
    """


def all_found(where: str, order: PageOrder) -> str:
    return f"""
        found AS MATERIALIZED (SELECT {_keyed(order)} FROM card c WHERE {where}),
        counted AS (SELECT count(*) AS total FROM found)
    """


def found_before(where: str, order: PageOrder) -> str:
    """Find the cards whose first key does not come after :cut; one more row stands for all
    others.
    """
    names = ["id", *(f"k{number}" for number in range(len(order.keys)))]
    cut = ", ".join(
        f"CASE WHEN k0 {order.not_after} :cut THEN {name} END AS {name}" for name in names
    )
    keys = ", ".join(f"min({name}) AS {name}" for name in names[1:])
    # The sub-select has to stay by itself (OFFSET with a literal of unknown type keeps it so and
    # still allows parallel plans): the planner expects few distinct values of it, and groups them
    # in the processes that read them.
    return f"""
        groups AS MATERIALIZED (
            SELECT id, {keys}, count(*) AS cards
              FROM (SELECT {cut}
                      FROM (SELECT {_keyed(order)} FROM card c WHERE {where}) AS keyed
                    OFFSET '0') AS cut
             GROUP BY id),
        found AS (SELECT * FROM groups WHERE id IS NOT NULL),
        counted AS (SELECT CAST(coalesce(sum(cards), 0) AS bigint) AS total FROM groups)
    """


def following(where: str, order: PageOrder, direction: str, columns: str, cards: str) -> str:
    """Return the statement of at most :limit cards behind the card :behind, in the order. It needs
    no place to count from, so the last cards cost as much as the first.
    """
    return f"""
        WITH at AS MATERIALIZED (
            SELECT {_keyed(order)} FROM card c WHERE c.seller_id = :seller AND c.id = :behind),
        found AS (SELECT {_keyed(order)} FROM card c WHERE {where}),
        ordered AS (
            SELECT f.id FROM found f, at WHERE {behind(order, direction)}
             ORDER BY {_of_found(order)} LIMIT :limit),
        page AS (SELECT id, row_number() OVER () AS place FROM ordered)
        SELECT {columns}
          FROM page JOIN ({cards}) ON c.seller_id = :seller AND c.id = page.id
         ORDER BY page.place
    """


def _of_found(order: PageOrder) -> str:
    return ", ".join(f"f.{part}" for part in order.by.split(", "))


def _keyed(order: PageOrder) -> str:
    return ", ".join(["c.id", *(f"{key} AS k{number}" for number, key in enumerate(order.keys))])


def page_of(found: str, order: PageOrder, columns: str, cards: str) -> str:
    """Return the statement of the total with `columns` of `cards`, a join over `card c`, from
    :offset on and at most :limit; without cards, its one row holds the total alone.
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

"""Builds the SQL statements that read one page of the cards that match a condition, and the number
of all matching cards. Pure.
"""

from __future__ import annotations

from cardsync.stock.cards.sort_order import PageOrder, behind


def following(
    where: str,
    order: PageOrder,
    direction: str,
    columns: str,
    cards: str,
) -> str:
    """Return the statement that reads up to :limit cards after the card :behind in `order`. The
    statement has no OFFSET, so the last cards are read as fast as the first.
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


def order_of(where: str, order: PageOrder) -> str:
    """Return the statement that reads the cards' ids in `order` as one text, joined by commas."""
    return f"""
        WITH found AS (SELECT {_keyed(order)} FROM card c WHERE {where} LIMIT :limit)
        SELECT string_agg(CAST(id AS text), ',' ORDER BY {order.by}) FROM found
    """


def page_of(
    where: str,
    order: PageOrder,
    columns: str,
    cards: str,
    worth: str = "",
) -> str:
    """Return the statement that reads up to :limit cards from :offset on. Each row has the number
    of matching cards, the sum of the SQL expression `worth` over them (null without `worth`), and
    `columns` of `cards`, a join with `card c`. An empty page is one row with only number and sum.
    """
    one, all_of_them = (f", {worth} AS worth", "sum(worth)") if worth else ("", "NULL")
    return f"""
        WITH found AS MATERIALIZED (SELECT {_keyed(order)}{one} FROM card c WHERE {where}),
        counted AS (SELECT count(*) AS total, {all_of_them} AS worth FROM found),
        ordered AS (SELECT id FROM found ORDER BY {order.by} LIMIT :limit OFFSET :offset),
        page AS (SELECT id, row_number() OVER () AS place FROM ordered)
        SELECT counted.total, counted.worth, {columns}
          FROM counted LEFT JOIN page ON true
               LEFT JOIN ({cards}) ON c.seller_id = :seller AND c.id = page.id
         ORDER BY page.place
    """

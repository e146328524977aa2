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


# `ix_card_name` has the cards in stock whose texts are short. A statement that reads it returns no
# row if the seller has other cards in stock.
_NAMED = "c.seller_id = :seller AND NOT c.gone AND octet_length(c.search_text) < 2000"
_ALL_NAMED = """NOT EXISTS (SELECT FROM card c
 WHERE c.seller_id = :seller AND NOT c.gone AND octet_length(c.search_text) >= 2000)"""


def order_of(where: str, order: PageOrder) -> str:
    """Return the statement that reads the cards' ids in `order` as one text, joined by commas."""
    return f"""
        SELECT string_agg(CAST(id AS text), ',')
          FROM (SELECT {_keyed(order)} FROM card c WHERE {where}
                 ORDER BY {order.by} LIMIT :limit) AS ordered
    """


def order_of_names(matches: str, order: PageOrder) -> str:
    """Return the statement of `order_of` for cards in stock in the order of their names."""
    return f"{order_of(f'{_NAMED} AND {matches}', order)} HAVING {_ALL_NAMED}"


def first_of(
    matches: str,
    direction: str,
    columns: str,
    cards: str,
    *,
    everything: bool,
) -> str:
    """Return the statement that searches the first :probed cards in stock, in the order of names,
    for up to :limit cards from :offset on; with `everything`, all of them. It also returns no row
    if the seller has at most :probed cards in stock.
    """
    by = f"ORDER BY c.search_text {direction}, c.id {direction}"
    many = f"EXISTS (SELECT FROM card c WHERE {_NAMED} {by} LIMIT 1 OFFSET :probed)"
    return f"""
        WITH first AS (
            SELECT c.* FROM card c WHERE {_NAMED} AND {many} AND {_ALL_NAMED}
             {by} {"" if everything else "LIMIT :probed"}),
        ordered AS (
            SELECT c.id FROM first c WHERE {matches} {by} LIMIT :limit OFFSET :offset),
        page AS (SELECT id, row_number() OVER () AS place FROM ordered)
        SELECT {columns}
          FROM page JOIN ({cards}) ON c.seller_id = :seller AND c.id = page.id
         ORDER BY page.place
    """


def count_of(where: str, worth: str = "") -> str:
    """Return the statement that counts the matching cards, and sums the SQL expression `worth`."""
    return f"SELECT count(*), {f'sum({worth})' if worth else 'NULL'} FROM card c WHERE {where}"


def page_of(where: str, order: PageOrder, columns: str, cards: str, worth: str = "") -> str:
    """Return the statement that reads up to :limit cards from :offset on. Each row has the number
    of matching cards, the sum of the SQL expression `worth` over them (null without `worth`), and
    `columns` of `cards`, a join with `card c`. An empty page is one row with only number and sum.
    """
    return _page(_found(where, order, worth), order, columns, cards, _sum(worth))


def _found(where: str, order: PageOrder, worth: str) -> str:
    return f"SELECT {_keyed(order)}{worth and f', {worth} AS worth'} FROM card c WHERE {where}"


def _sum(worth: str) -> str:
    return "sum(worth)" if worth else "NULL"


def page_of_few(
    texts: str,
    direction: str,
    where: str,
    order: PageOrder,
    columns: str,
    cards: str,
    worth: str = "",
) -> str:
    """Return the statement of `page_of` for those cards in stock that match `texts`, a part of
    `where`, of which the index of names finds the first :few. If there may be more, the number is
    null, or there is no row if at most :enough cards are found.
    """
    by = f"ORDER BY c.search_text {direction}, c.id {direction}"
    named = f"SELECT c.id FROM card c WHERE {_NAMED} AND {texts} {by} LIMIT :few"
    few = f"few AS MATERIALIZED (SELECT ARRAY({named}) AS ids),"
    found = _found(
        f"{where} AND c.id = ANY (CAST((SELECT ids FROM few) AS bigint[]))", order, worth
    )
    are_all = "(SELECT cardinality(ids) < :few FROM few)"
    only_if = f"{_ALL_NAMED} AND ({are_all} OR counted.total > :enough)"
    total = f"CASE WHEN {are_all} THEN counted.total END"
    return _page(found, order, columns, cards, _sum(worth), only_if, few, total)


def page_of_names(matches: str, order: PageOrder, columns: str, cards: str, worth: str = "") -> str:
    """Return the statement of `page_of` for cards in stock in the order of their names. Few cards
    match, so their values are read afterwards.
    """
    found = f"SELECT {_keyed(order)} FROM card c WHERE {_NAMED} AND {matches}"
    cards_found = "found f JOIN card c ON c.seller_id = :seller AND c.id = f.id"
    worth_of_all = f"(SELECT sum({worth}) FROM {cards_found})" if worth else "NULL"
    return _page(found, order, columns, cards, worth_of_all, _ALL_NAMED)


def _page(
    found: str,
    order: PageOrder,
    columns: str,
    cards: str,
    worth: str,
    only_if: str = "true",
    before: str = "",
    total: str = "counted.total",
) -> str:
    return f"""
        WITH {before} found AS MATERIALIZED ({found}),
        counted AS (SELECT count(*) AS total, {worth} AS worth FROM found),
        ordered AS (SELECT id FROM found ORDER BY {order.by} LIMIT :limit OFFSET :offset),
        page AS (SELECT id, row_number() OVER () AS place FROM ordered)
        SELECT {total}, counted.worth, {columns}
          FROM counted LEFT JOIN page ON true
               LEFT JOIN ({cards}) ON c.seller_id = :seller AND c.id = page.id
         WHERE {only_if}
         ORDER BY page.place
    """

"""Reads the facts about a customer's cards: prices, copies, days to sell, lists, and the first buy
rule that selects each.

One statement reads all cards of an offer, and the shop's cards of their products once. If the shop
has no Near Mint copy itself, the market's newest prices of the product are used, and otherwise the
last prices of a sold-out copy. For cards without any market price a second statement reads the
prices of other conditions and finishes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.wanted_lines import KnownPrice, LineFacts, WantedLine
from cardsync.buying.rules.own_targets import own_targets
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.prices.inputs.cards_to_price import first_of
from cardsync.prices.inputs.rule_queries import Selection, selections
from cardsync.prices.rules.file_queries import CARDS, NOBODY, fill_rows

Key = tuple[int, str, str]
# Days of sales from which the time to sell a card is estimated.
SOLD_DAYS: Final = timedelta(days=365)
_WANTED: Final = """
    wanted_card AS MATERIALIZED (
        SELECT * FROM unnest(CAST(:product_id AS bigint[]), CAST(:finish AS text[]),
                             CAST(:language AS text[])) AS w (product_id, finish, language)
    )
"""
_UNITS: Final = "(max({0}) FILTER (WHERE c.condition = 'NM' AND {2}) * 10000)::bigint AS {1}"
_PRICES: Final = ", ".join(
    _UNITS.format(*pair)
    for pair in (
        ("coalesce(c.target_price, c.price)", "target", "NOT c.gone"),
        ("c.market", "market", "NOT c.gone"),
        ("c.low", "low", "NOT c.gone"),
        ("c.market", "last_market", "c.gone"),
        ("c.low", "last_low", "c.gone"),
    )
)
_SHOP: Final = f"""
    shop AS MATERIALIZED (
        SELECT c.product_id, c.printing, c.language,
               sum(c.quantity) FILTER (WHERE NOT c.gone)::bigint AS copies, {_PRICES}
          FROM card c
         WHERE c.seller_id = :seller AND c.contribution IS NULL
           AND c.product_id IN (SELECT product_id FROM wanted_card)
         GROUP BY c.product_id, c.printing, c.language
    ),
    stock AS (
        SELECT product_id, printing, sum(copies) AS copies FROM shop GROUP BY product_id, printing
    ),
    coming AS (
        SELECT a.product_id, a.printing, sum(a.copies) AS copies
          FROM (
            SELECT q.product_id, q.printing, q.quantity AS copies FROM quick_add q
             WHERE q.seller_id = :seller
               AND (q.status IN ('draft', 'published', 'pending')
                    OR q.status = 'listed' AND q.card_id IS NULL)
               AND q.product_id IN (SELECT product_id FROM wanted_card)
            UNION ALL
            SELECT l.product_id, l.printing, coalesce(l.received_copies, l.copies)
              FROM buying_offer o
              JOIN buying_offer_line l ON l.seller_id = :seller AND l.offer_id = o.id
             WHERE o.seller_id = :seller
               AND o.state IN ('offered', 'accepted', 'received', 'paid')
               AND l.accepted IS NOT FALSE
               AND coalesce(l.cash_each, l.credit_each) IS NOT NULL
               AND l.product_id IN (SELECT product_id FROM wanted_card)
          ) a
         GROUP BY a.product_id, a.printing
    ),
    listed AS (
        SELECT c.product_id, c.printing, string_agg(DISTINCT e.list_id::text, ' ') AS lists
          FROM card_list_entry e
          JOIN card c ON c.seller_id = :seller AND c.id = e.card_id
         WHERE e.seller_id = :seller AND c.product_id IN (SELECT product_id FROM wanted_card)
         GROUP BY c.product_id, c.printing
    ),
    sold AS (
        SELECT c.product_id, c.printing,
               percentile_cont(0.5) WITHIN GROUP (
                   ORDER BY date_part('epoch', {PLACED_AT} - c.created_at) / 86400
               ) AS days
          FROM card c
          JOIN order_item i ON i.seller_id = :seller AND i.sku_id = c.listing_id
          JOIN orders ON orders.seller_id = :seller AND orders.id = i.order_id
         WHERE c.seller_id = :seller AND c.product_id IN (SELECT product_id FROM wanted_card)
           AND {PLACED_AT} BETWEEN greatest(c.created_at, :since) AND :now
         GROUP BY c.product_id, c.printing
    )
"""
# The market's own figures: the newest of each source, and those of the newest look at listings.
_MARKET: Final = """
    wanted AS MATERIALIZED (
        SELECT w.product_id, w.finish, w.language, p.marketplace_product_id, p.game, p.set_name,
               p.product_name, coalesce(p.number, '') AS number, coalesce(p.rarity, '') AS rarity
          FROM wanted_card w JOIN product p ON p.id = w.product_id
    ),
    named AS (
        SELECT DISTINCT marketplace_product_id AS id FROM wanted
         WHERE marketplace_product_id IS NOT NULL
    ),
    quoted AS (
        SELECT DISTINCT ON (m.product_id, m.printing) m.product_id, m.printing, m.market, m.low
          FROM market_price m JOIN named n ON n.id = m.product_id
         WHERE m.observed_at <= :now
         ORDER BY m.product_id, m.printing, m.observed_at DESC
    ),
    seen AS (
        SELECT m.product_id, e.printing, e.language, m.low, m.median
          FROM market_newest m JOIN named n ON n.id = m.product_id
          JOIN market_cell e ON e.id = m.cell AND e.condition = 'NM'
    )
"""
_FACTS: Final = f"""
    WITH {_WANTED}, {_SHOP}, {_MARKET}
    SELECT w.product_id, w.finish, w.language, w.game, w.set_name, w.product_name, w.number,
           w.rarity, s.target,
           coalesce(s.market, m.market, n.median, s.last_market) AS market,
           coalesce(s.low, n.low, m.low, s.last_low) AS low,
           coalesce(t.copies, 0)::bigint AS in_stock, coalesce(q.copies, 0)::bigint AS on_order,
           ceil(d.days)::bigint AS days_to_sell, coalesce(l.lists, '') AS lists
      FROM wanted w
      LEFT JOIN shop s ON s.product_id = w.product_id AND s.printing = w.finish
            AND s.language = w.language
      LEFT JOIN stock t ON t.product_id = w.product_id AND t.printing = w.finish
      LEFT JOIN coming q ON q.product_id = w.product_id AND q.printing = w.finish
      LEFT JOIN listed l ON l.product_id = w.product_id AND l.printing = w.finish
      LEFT JOIN sold d ON d.product_id = w.product_id AND d.printing = w.finish
      LEFT JOIN quoted m ON m.product_id = w.marketplace_product_id AND m.printing = w.finish
      LEFT JOIN seen n ON n.product_id = w.marketplace_product_id AND n.printing = w.finish
            AND n.language = w.language
"""
# The prices of the same card in other conditions and finishes; the shop's own price is the first of
# each. The catalog has a product for each finish of a card.
_OTHERS: Final = f"""
    WITH {_WANTED},
    same AS MATERIALIZED (
        SELECT w.product_id AS wanted, w.language, p.id, p.marketplace_product_id
          FROM wanted_card w JOIN product p ON p.id = w.product_id
        UNION
        SELECT w.product_id, w.language, b.id, b.marketplace_product_id
          FROM wanted_card w
          JOIN product p ON p.id = w.product_id AND NOT p.provisional
          JOIN product b ON b.game = p.game AND b.name_key = p.name_key
               AND b.number_key = p.number_key AND b.set_key = p.set_key AND NOT b.provisional
               AND b.language = p.language AND b.variant_key IS NOT DISTINCT FROM p.variant_key
    ),
    named AS (
        SELECT DISTINCT wanted, language, marketplace_product_id AS id FROM same
         WHERE marketplace_product_id IS NOT NULL
    ),
    known AS (
        SELECT s.wanted, s.language, c.condition, c.printing, CASE WHEN c.gone THEN 2
          ELSE 0 END AS by,
               (coalesce(c.target_price, c.price) * 10000)::bigint AS target,
               (c.market * 10000)::bigint AS market, (c.low * 10000)::bigint AS low
          FROM same s
          JOIN card c ON c.seller_id = :seller AND c.contribution IS NULL AND c.product_id = s.id
               AND c.language = s.language
        UNION ALL
        SELECT n.wanted, n.language, e.condition, e.printing, 1, NULL, m.median, m.low
          FROM named n JOIN market_newest m ON m.product_id = n.id
          JOIN market_cell e ON e.id = m.cell AND e.language = n.language
        UNION ALL
        SELECT n.wanted, n.language, 'NM', m.printing, 1, NULL, m.market, m.low
          FROM named n
          JOIN LATERAL (SELECT DISTINCT ON (printing) printing, market, low FROM market_price
                         WHERE product_id = n.id AND observed_at <= :now
                         ORDER BY printing, observed_at DESC) m ON true
    )
    SELECT wanted, language, condition, printing,
           (array_agg(target ORDER BY by, target DESC)
             FILTER (WHERE target IS NOT NULL))[1] AS target,
           (array_agg(market ORDER BY by, market DESC)
             FILTER (WHERE market IS NOT NULL))[1] AS market,
           (array_agg(low ORDER BY by, low DESC) FILTER (WHERE low IS NOT NULL))[1] AS low
      FROM known
     WHERE condition IN ('NM', 'LP', 'MP', 'HP', 'DMG')
     GROUP BY wanted, language, condition, printing
     ORDER BY wanted, language, printing, condition
"""
_OTHERS_SCHEMA: Final[dict[str, Any]] = {
    "wanted": pl.Int64,
    "language": pl.String,
    "condition": pl.String,
    "printing": pl.String,
    "target": pl.Int64,
    "market": pl.Int64,
    "low": pl.Int64,
}
_SCHEMA: Final[dict[str, Any]] = {
    "product_id": pl.Int64,
    "finish": pl.String,
    "language": pl.String,
    "game": pl.String,
    "set_name": pl.String,
    "product_name": pl.String,
    "number": pl.String,
    "rarity": pl.String,
    "target": pl.Int64,
    "market": pl.Int64,
    "low": pl.Int64,
    "in_stock": pl.Int64,
    "on_order": pl.Int64,
    "days_to_sell": pl.Int64,
    "lists": pl.String,
}
_KEY: Final = ("product_id", "finish", "language")


class CardTexts(NamedTuple):
    """The texts of a card, for its row on a page."""

    product_name: str
    set_name: str
    number: str
    rarity: str
    game: str


class Facts(NamedTuple):
    """Facts by product, finish and language; the cards with their texts; and the rules, in which
    those with an unreadable query are marked.
    """

    of_cards: dict[Key, LineFacts]
    cards: pl.DataFrame
    rules: list[BuyRule]


def key_of(line: WantedLine) -> Key:
    return (line.product_id, line.finish, line.language)


def texts_of(cards: pl.DataFrame, products: Iterable[int]) -> dict[int, CardTexts]:
    """Return the texts of some products among an offer's cards."""
    asked = cards.filter(pl.col("product_id").is_in(list(products)))
    rows = asked.select("product_id", *CardTexts._fields).iter_rows()
    return {row[0]: CardTexts(*row[1:]) for row in rows}


async def read_facts(
    session: AsyncSession,
    seller_id: int,
    lines: Sequence[WantedLine],
    rules: Sequence[BuyRule],
    now: datetime,
) -> Facts:
    """Return the facts about the lines' cards. `rules` are live, in order."""
    if not lines:
        return Facts({}, pl.DataFrame(schema=_SCHEMA), list(rules))
    wanted = await asyncio.to_thread(_wanted, lines)
    values = {"seller": seller_id, "now": now, "since": now - SOLD_DAYS} | wanted
    frame = await read_rows(session, _FACTS, _SCHEMA, values)
    judged, chosen, frame = await _governing(session, seller_id, rules, frame, now)
    of_cards = await asyncio.to_thread(_facts, frame, chosen)
    unsure = [
        line
        for line in lines
        if line.price_of or (of := of_cards.get(key_of(line))) is None or of.market is None
    ]
    if unsure:
        for key, others in (await _others(session, seller_id, unsure, now)).items():
            of_cards[key] = of_cards[key]._replace(others=others)
    return Facts(of_cards, frame, judged)


async def _others(
    session: AsyncSession,
    seller_id: int,
    lines: Sequence[WantedLine],
    now: datetime,
) -> dict[Key, tuple[KnownPrice, ...]]:
    """Return the prices of the lines' cards in other conditions and finishes."""
    values = {"seller": seller_id, "now": now} | await asyncio.to_thread(_wanted, lines)
    frame = await read_rows(session, _OTHERS, _OTHERS_SCHEMA, values)
    known: dict[tuple[int, str], list[KnownPrice]] = defaultdict(list)
    for product_id, language, *price in frame.iter_rows():
        known[product_id, language].append(KnownPrice(*price))
    return {
        key: tuple(
            each
            for each in known.get((key[0], key[2]), ())
            if (each.condition, each.finish) != ("NM", key[1])
        )
        for key in dict.fromkeys(map(key_of, lines))
    }


def _wanted(lines: Sequence[WantedLine]) -> dict[str, Any]:
    """Return the columns of the keys, each key once."""
    keys = zip(*dict.fromkeys(map(key_of, lines)), strict=True)
    return {name: list(values) for name, values in zip(_KEY, keys, strict=True)}


def _facts(frame: pl.DataFrame, chosen: Sequence[int | None]) -> dict[Key, LineFacts]:
    lists = {said: frozenset(map(int, said.split())) for said in frame["lists"].unique()}
    columns: dict[str, list[Any]] = {one.name: one.to_list() for one in frame}
    columns["lists"] = [lists[said] for said in columns["lists"]]
    known = map(LineFacts, chosen, *(columns[name] for name in LineFacts._fields[1:-1]))
    keys = zip(*(columns[name] for name in _KEY), strict=True)
    return dict(zip(keys, known, strict=True))


async def _governing(
    session: AsyncSession,
    seller_id: int,
    rules: Sequence[BuyRule],
    frame: pl.DataFrame,
    now: datetime,
) -> tuple[list[BuyRule], list[int | None], pl.DataFrame]:
    """Return the rules, the first of them that selects each card, and the cards with the shop's own
    targets if a rule needs them.
    """
    found = await selections(session, NOBODY, [rule.query for rule in rules])
    judged = [
        replace(rule, broken=selection.where is None)
        for rule, selection in zip(rules, found, strict=True)
    ]
    queried = any(rule.query for rule in rules)
    targeted = any(rule.base == "target" for rule in rules)
    first: list[int | None] = [judged[0].id if judged else None] * frame.height
    if not (queried or targeted):
        return judged, first, frame
    cards = await asyncio.to_thread(as_cards, frame)
    await session.execute(text("DROP TABLE IF EXISTS rows_of_file"))
    await fill_rows(session, cards)
    if targeted:
        asked = await own_targets(session, seller_id, cards, now)
        frame = frame.with_columns(target=pl.coalesce(asked, "target"))
    if not queried:
        return judged, first, frame
    pairs = [(rule.id, selection) for rule, selection in zip(judged, found, strict=True)]
    return judged, await _selected(session, pairs, now), frame


async def _selected(
    session: AsyncSession,
    pairs: list[tuple[int, Selection]],
    now: datetime,
) -> list[int | None]:
    bound: dict[str, Any] = {"seller": NOBODY, "now": now}
    sql = f"SELECT {first_of(pairs, bound, 'b')} FROM ({CARDS}) c ORDER BY c.id"
    found = await read_rows(session, sql, {"rule_id": pl.Int64}, bound)
    return found["rule_id"].to_list()


def as_cards(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the products in the form of cards for searches: Near Mint copies without a listing."""
    nothing = pl.lit(None, pl.Int64)
    return frame.select(
        "product_name",
        "set_name",
        "number",
        "rarity",
        "language",
        "market",
        "low",
        listing_id=pl.lit(0, pl.Int64),
        quantity="in_stock",
        custom=pl.lit(False),
        price=nothing,
        low_with_shipping=nothing,
        direct_low=nothing,
        product_line="game",
        title=pl.lit(""),
        photo_url=pl.lit(""),
        condition=pl.lit("NM"),
        printing="finish",
    )

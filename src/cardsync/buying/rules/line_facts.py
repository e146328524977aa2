"""Reads the facts about a customer's cards: prices, copies, days to sell, lists, and the first buy
rule that selects each card.

One statement reads the facts of all cards of an offer. If the shop has no Near Mint copy of a card
in stock, the prices are the newest market prices of the product, or else the last prices of a
sold-out copy. For cards without a market price, a second statement reads the prices of other
conditions and finishes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.wanted_lines import KnownPrice, LineFacts, WantedLine
from cardsync.buying.rules.own_targets import own_targets
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.value_types import FrameSchema
from cardsync.prices.inputs.cards_to_price import first_of
from cardsync.prices.inputs.rule_queries import Selection, selections
from cardsync.prices.rules.file_queries import CARDS, NOBODY, fill_rows

Key = tuple[int, str, str]
# The time to sell a card is estimated by its sales in this time.
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
_SHOP: Final = queries_of(__package__)["shop"].format(prices=_PRICES, placed_at=PLACED_AT)
# The market's own prices: the newest prices of each source, and the listings that were observed
# last.
_MARKET: Final = queries_of(__package__)["market"]
_FACTS: Final = queries_of(__package__)["facts"].format(wanted=_WANTED, shop=_SHOP, market=_MARKET)
# The prices of the same card in other conditions and finishes. The shop's own prices have
# precedence. The catalog has one product for each finish of a card.
_OTHERS: Final = queries_of(__package__)["others"].format(wanted=_WANTED)
_OTHERS_SCHEMA: Final[FrameSchema] = {
    "wanted": pl.Int64,
    "language": pl.String,
    "condition": pl.String,
    "printing": pl.String,
    "target": pl.Int64,
    "market": pl.Int64,
    "low": pl.Int64,
}
_SCHEMA: Final[FrameSchema] = {
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
    """The texts of a card that pages show."""

    product_name: str
    set_name: str
    number: str
    rarity: str
    game: str


class Facts(NamedTuple):
    """The facts by product, finish and language; the cards with their texts; and the rules, which
    are marked as broken if their query can't be parsed.
    """

    of_cards: dict[Key, LineFacts]
    cards: pl.DataFrame
    rules: list[BuyRule]


def key_of(line: WantedLine) -> Key:
    return (line.product_id, line.finish, line.language)


def texts_of(cards: pl.DataFrame, products: Iterable[int]) -> dict[int, CardTexts]:
    """Return the texts of the products `products` in an offer's cards, by product ID."""
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
    """Return the facts about the lines' cards. `rules` are the live rules by priority."""
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


def _wanted(lines: Sequence[WantedLine]) -> dict[str, object]:
    """Return the lines' keys (product, finish and language), without duplicates, as columns."""
    keys = zip(*dict.fromkeys(map(key_of, lines)), strict=True)
    return {name: list(values) for name, values in zip(_KEY, keys, strict=True)}


def _facts(frame: pl.DataFrame, chosen: Sequence[int | None]) -> dict[Key, LineFacts]:
    lists = {said: frozenset(map(int, said.split())) for said in frame["lists"].unique()}
    columns: dict[str, list[object]] = {one.name: one.to_list() for one in frame}
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
    """Return the rules, the ID of the first rule that selects each card, and the cards, with the
    shop's own targets if a rule needs them.
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
    bound: dict[str, object] = {"seller": NOBODY, "now": now}
    sql = f"SELECT {first_of(pairs, bound, 'b')} FROM ({CARDS}) c ORDER BY c.id"
    found = await read_rows(session, sql, {"rule_id": pl.Int64}, bound)
    return found["rule_id"].to_list()


def as_cards(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the products as rows of cards, so that searches can select them: Near Mint copies
    without a listing.
    """
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

"""Searches a shop's buylist: products of the catalog, with prices in cash and in credit for each
condition.

Prices are computed for the rows of the requested page only. They are for a single copy; the prices
of several copies are computed when the cart is priced. A product without a finish in the catalog
has one row for each printing that the shop buys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import GRADES, BuyRule, live_buy_rules
from cardsync.buying.engine.value_lines import value_lines
from cardsync.buying.engine.wanted_lines import LineFacts, WantedLine
from cardsync.buying.rules.line_facts import key_of, read_facts
from cardsync.buying.rules.value_offer import buy_rules_of
from cardsync.catalog.printings import printings_of
from cardsync.platform import limits
from cardsync.platform.money import dollars_or_none
from cardsync.stock.quick_add.schemas import Product
from cardsync.stock.quick_add.type_ahead import products_like

# Provisional products are excluded, because they are made from one shop's rows, which are private.
_DEAREST: Final = """
    WITH own AS MATERIALIZED (
        SELECT product_id, max(market) AS worth FROM card
         WHERE seller_id = :seller AND NOT gone AND NOT custom AND market IS NOT NULL
           AND condition IS NOT NULL AND product_line = ANY (CAST(:games AS text[]))
         GROUP BY product_id)
    SELECT p.id, p.game, p.product_name, p.set_name, p.set_code, p.number, p.rarity, p.finish,
           p.language, p.marketplace_product_id
      FROM own JOIN product p ON p.id = own.product_id
     WHERE NOT p.provisional
     ORDER BY own.worth DESC, p.id LIMIT :most
"""


class Price(NamedTuple):
    """The price of a copy in a condition. `cash` is None if the shop does not buy it in cash;
    `credit` is None if the shop does not buy it in credit.
    """

    condition: str
    cash: str | None
    credit: str | None


class BuylistRow(NamedTuple):
    product: Product
    printing: str
    prices: list[Price]


async def search_buylist(
    session: AsyncSession, caller: Caller, typed: str, game: str | None, now: datetime
) -> list[BuylistRow]:
    """Return the rows of products that match the typed words. If no words are typed, return rows of
    the shop's most expensive cards that it buys.
    """
    if typed.strip():
        found = await products_like(session, caller, typed, game, limits.BUYLIST_ROWS)
        return await _valued(session, caller, found, now)
    rows = await _valued(session, caller, await _dearest(session, caller, game), now)
    return [row for row in rows if row.prices][: limits.BUYLIST_ROWS]


async def _dearest(session: AsyncSession, caller: Caller, game: str | None) -> list[Product]:
    games = [line for line in caller.account.product_lines if game in (None, line)]
    most = 2 * limits.BUYLIST_ROWS
    named = {"seller": caller.seller_id, "games": games, "most": most}
    return [Product(*row) for row in await session.execute(text(_DEAREST), named)]


async def _valued(
    session: AsyncSession, caller: Caller, found: Sequence[Product], now: datetime
) -> list[BuylistRow]:
    if not found:
        return []
    offered = [(product, printing) for product in found for printing in _printings(product)]
    lines = [
        WantedLine(place, product.product_id, "NM", printing, "English", 1)
        for place, (product, printing) in enumerate(offered)
    ]
    rules = live_buy_rules(await buy_rules_of(session, caller.seller_id))
    known = await read_facts(session, caller.seller_id, lines, rules, now)
    rows: dict[int, list[BuylistRow]] = defaultdict(list)
    for (product, printing), line in zip(offered, lines, strict=True):
        facts = known.of_cards.get(key_of(line), LineFacts(None))
        others = rows[product.product_id]
        # Each product has a first row; further printings have rows only if their price is known.
        # Otherwise a rule that buys cards without a price as bulk would add rows for all printings.
        if not others or _has_price(line, facts):
            prices = _prices(line, facts, known.rules)
            others.append(BuylistRow(product, printing, prices))
    return [row for printings in rows.values() for row in _bought(printings)]


def _printings(product: Product) -> Sequence[str]:
    printings = printings_of(product.game, product.finish)
    return printings[:1] if printings[0] == product.finish else printings


def _bought(rows: list[BuylistRow]) -> list[BuylistRow]:
    """Return the rows of the printings that the shop buys. If the shop buys none, return the first
    row, which has no prices, so that the page shows the product as not bought.
    """
    return [row for row in rows if row.prices] or rows[:1]


def _has_price(line: WantedLine, facts: LineFacts) -> bool:
    own = facts.target is not None or facts.market is not None or facts.low is not None
    return own or any(each.finish == line.finish for each in facts.others)


def _prices(line: WantedLine, facts: LineFacts, rules: Sequence[BuyRule]) -> list[Price]:
    """Return the price of a copy in each condition. Each condition is valued by itself, so that one
    condition does not use up the budget of another.
    """
    prices: list[Price] = []
    for grade in GRADES:
        [valued] = value_lines([(line._replace(condition=grade), facts)], rules, {})
        for part in valued.bought:
            cash, credit = dollars_or_none(part.cash), dollars_or_none(part.credit)
            prices.append(Price(grade, cash, credit))
    return prices

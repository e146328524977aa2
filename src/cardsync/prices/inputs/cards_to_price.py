"""Reads the seller's stored cards into one frame of engine inputs.

One COPY reads the cards and selects each card's rule and sale, by a CASE in the order of priority.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from cardsync.access.models import Account
from cardsync.catalog.market.of_cards import KEYS, NO_MARKET, Market, evidence_of, the_market
from cardsync.platform.database.copy import read_integers, read_rows
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.prices.engine import engine
from cardsync.prices.engine.price_row import price_row
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.simulate import Effect, simulate, simulate_row
from cardsync.prices.inputs.market_inputs import INPUTS
from cardsync.prices.inputs.price_history import among, are_few, past_of
from cardsync.prices.inputs.rule_queries import Selection, selections
from cardsync.prices.inputs.sampled_cards import Sample
from cardsync.prices.standing import decided_of, with_decided

_PRICES: Final = ("price", "market", "low", "low_with_shipping", "direct_low", "target_price")
# The time of a card's market prices. A report of imported prices changes only the card's price and
# sets `values_hash` to 0: its time is no observation of the market.
_SEEN: Final = """
    CASE WHEN c.values_hash = 0 THEN coalesce(l.observed_at, c.observed_at)
         ELSE greatest(c.observed_at, l.observed_at) END
"""
# The flags share an integer, because every column takes the same time to read.
_FLAGS: Final = (
    "c.custom::integer + 2 * c.my_store_priced::integer"
    " + 4 * (c.product_line = ANY (:lines))::integer"
)
_STOCK: Final = f"""
    (SELECT c.id, c.marketplace_id, c.listing_id, coalesce({{rule}}, 0) AS rule_id,
      coalesce({{sale}}, 0) AS sale_id, {{guards}} AS guards, c.quantity,
            {_FLAGS} AS flags, {", ".join(f"coalesce((c.{name} * 10000)::bigint, 0) AS {name}" for name in _PRICES)},
            (date_part('epoch', {_SEEN}) * 1000000)::bigint AS observed_at,
            coalesce(array_position(CAST(:lines AS text[]), c.product_line), 0) AS line{{market}}
       FROM card c LEFT JOIN line_snapshot l ON l.seller_id = :seller
         AND l.product_line = c.product_line
       {{joins}}
      WHERE c.seller_id = :seller AND {{where}}) stock
"""
# A member's contribution is not on a marketplace, so it has no price there.
ON_SALE: Final = "NOT c.gone AND c.contribution IS NULL"
_OWN: Final = re.compile(r"(?<!:):(q[0-9]+)(?![0-9])")
_COLUMNS: Final = (
    "id",
    "marketplace_id",
    "listing_id",
    "rule_id",
    "sale_id",
    "quantity",
    "flags",
    *_PRICES,
    "observed_at",
)
# Product lines that are not priced are not searched. Each line's search ends at the first card
# that it finds.
_GAMES: Final = """
    SELECT line FROM unnest(CAST(:lines AS text[])) line
     WHERE EXISTS (SELECT FROM card c
            WHERE c.seller_id = :seller AND c.product_line = line AND {on_sale} AND ({any}))
"""
# Ids and prices are never zero, so zero means a missing id or price.
_ABSENT_AS_ZERO: Final = ("rule_id", "sale_id", *_PRICES)


@dataclass(frozen=True)
class Stock:
    """Cards, and the run that prices them. `cards` has the engine's inputs, `rule_id`, `sale_id`,
    and the stored `id`, `listing_id` and `target_price`. `market` is the market evidence of the
    same cards in the same order, if it was read.
    """

    chosen: Choices
    cards: pl.DataFrame
    market: pl.DataFrame | None = None

    @property
    def run(self) -> Run:
        return self.chosen.run


@dataclass(frozen=True)
class Choices:
    """A run, and the compiled queries of its rules and sales, in the order of priority, and of its
    guards.
    """

    run: Run
    rules: list[tuple[int, Selection]]
    sales: list[tuple[int, Selection]]
    guards: list[tuple[int, Selection]]

    @property
    def timed(self) -> bool:
        """Return whether some query depends on the time, so that it may select other cards tomorrow
        although no card changes.
        """
        found = (selection.where for _, selection in (*self.rules, *self.sales, *self.guards))
        return any(where is not None and ":now" in where.sql for where in found)


async def read_stock(
    session: Source,
    account: Account,
    run: Run,
    where: str = ON_SALE,
    card_ids: Sequence[int] | None = None,
    *,
    evidence: bool = False,
    market: Market | None = None,
    **values: Any,
) -> Stock:
    """Return every active card, or the cards that the condition `where` over `card c` selects.
    `card_ids`, a list, a sample or a range, limits the cards and the history that is read. Market
    evidence and costs are read if the run needs them, or with `evidence` and `costed`. `market` is
    what `the_market` returned, if it was read already.
    """
    chosen, market = await each_of(
        session,
        choices(session, account.seller_id, run),
        _market_of(session, run, market, evidence=evidence),
    )
    values |= {"evidence": evidence, "market": market}
    return await read_chosen(session, account, chosen, where, card_ids, **values)


async def _market_of(session: Source, run: Run, known: Market | None, *, evidence: bool) -> Market:
    if not (evidence or run.reads_market):
        return NO_MARKET
    return await the_market(session) if known is None else known


async def read_chosen(
    session: Source,
    account: Account,
    chosen: Choices,
    where: str = ON_SALE,
    card_ids: Sequence[int] | None = None,
    *,
    evidence: bool = False,
    costed: bool = False,
    market: Market | None = None,
    **values: object,
) -> Stock:
    """Read the stock like `read_stock`, for a run whose queries are compiled."""
    run = chosen.run
    market = await _market_of(session, run, market, evidence=evidence)
    rows, past, decided = await each_of(
        session,
        _read_rows(session, account, chosen, market, where, card_ids, values),
        past_of(session, account.seller_id, run, account.time_zone, card_ids),
        decided_of(
            session,
            account.seller_id,
            run.now,
            reviewed=run.reviewed,
            costed=costed or run.costed,
            card_ids=card_ids if are_few(card_ids) else None,
        ),
    )
    inputs = past.columns(rows.select("id", "market", price_old="price"), run.now)
    if market.is_empty:
        return Stock(chosen, _cards(rows.with_columns(**inputs), decided))
    seen = await evidence_of(session, market, rows.select(KEYS), account.seller_id, run.now)
    cards = _cards(rows.drop(KEYS).with_columns(**inputs), decided)
    return Stock(chosen, cards.hstack(seen.select(INPUTS)), seen)


async def price_stock(stock: Stock) -> pl.DataFrame:
    """Price the cards by the run's rules, in a worker thread."""
    run = stock.run
    return await asyncio.to_thread(
        engine.price, stock.cards, run.rules, run.seller, run.now, run.sales
    )


# Pricing so many rows costs as much as pricing a frame.
_FEW: Final = 20


async def price_chosen(stock: Stock) -> pl.DataFrame:
    """Price the cards of a person's decision like `price_stock`: few as rows, which is faster."""
    run, cards = stock.run, stock.cards
    if not 0 < cards.height <= _FEW:
        return await price_stock(stock)
    rows = [price_row(card, run) for card in cards.iter_rows(named=True)]
    known = dict(cards.schema) | engine.INPUT_COLUMNS | engine.RECEIPT_COLUMNS
    return pl.DataFrame(rows, {name: known[name] for name in rows[0]})


async def simulate_chosen(stock: Stock) -> list[dict[str, Any]]:
    """Return the rows of `simulate_stock(stock).cards`."""
    if stock.cards.height > _FEW:
        return (await simulate_stock(stock)).cards.to_dicts()
    return [simulate_row(stock.run, card) for card in stock.cards.iter_rows(named=True)]


async def simulate_stock(stock: Stock) -> Effect:
    return await asyncio.to_thread(simulate, stock.run, stock.cards)


async def _read_rows(
    session: Source,
    account: Account,
    chosen: Choices,
    market: Market,
    where: str,
    card_ids: Sequence[int] | None,
    values: Mapping[str, object],
) -> pl.DataFrame:
    """Return the rows of the cards, each with the rule and the sale that select it."""
    seller_id, lines = account.seller_id, account.product_lines
    bound = {"seller": seller_id, "now": chosen.run.now, "lines": lines, **values}
    if isinstance(card_ids, range | Sample):
        where = f"{among('c.id', card_ids)} AND {where}"
    elif card_ids is not None:
        where = f"c.id = ANY(CAST(:card_ids AS bigint[])) AND {where}"
        bound["card_ids"] = list(card_ids)
    if not market.is_empty:
        bound |= market.values
    sql = _STOCK.format(
        rule=first_of(chosen.rules, bound, "r"),
        sale=first_of(chosen.sales, bound, "s"),
        guards=guards_of(chosen, bound),
        where=where,
        market="" if market.is_empty else f", {market.columns}",
        joins="" if market.is_empty else market.joins,
    )
    # Without sales, `sale_id` would be null for every card, so it is not read.
    columns = [name for name in _COLUMNS if name != "sale_id" or chosen.sales]
    columns += ["guards"] if chosen.guards else []
    columns += ["line"] if _is_by_game(chosen.run) else []
    columns += [] if market.is_empty else KEYS
    rows, games = await each_of(
        session,
        integer_frame(session, columns, sql, bound, _ABSENT_AS_ZERO, few=are_few(card_ids)),
        games_with_rules(session, account, chosen),
    )
    if games is None:
        return rows
    places = [lines.index(game) + 1 for game in games]
    return rows.with_columns(game_has_rules=pl.col("line").is_in(places)).drop("line")


def _is_by_game(run: Run) -> bool:
    """Return whether the run prices the cards of some games."""
    return bool(run.own_rules) and not run.every_game


async def games_with_rules(
    session: Source,
    account: Account,
    chosen: Choices,
) -> list[str] | None:
    """Return the product lines in which a rule other than the default one selects a card; None if
    the run does not need them, because it prices the cards of all games or of no game.
    """
    run = chosen.run
    if not _is_by_game(run):
        return None
    own = {rule.id for rule in run.own_rules}
    lines = account.product_lines
    bound: dict[str, object] = {"seller": account.seller_id, "now": run.now, "lines": lines}
    conditions = [
        condition_of(selection, bound, f"g{place}")
        for place, (id, selection) in enumerate(chosen.rules)
        if id in own
    ]
    sql = _GAMES.format(on_sale=ON_SALE, any=" OR ".join(conditions))
    return [line for (line,) in await rows_of(session)(sql, bound)]


async def integer_frame(
    session: Source,
    columns: Sequence[str],
    source: str,
    values: Mapping[str, object],
    absent_as_zero: Sequence[str],
    *,
    few: bool = False,
) -> pl.DataFrame:
    """Read integer columns of an SQL source in the order of `id`. Zero becomes null in the columns
    `absent_as_zero`.
    """
    named = {name: name for name in columns}
    read = await read_integers(session, named, source, "id", values, few=few)
    nothing = [
        pl.when(pl.col(name) != 0).then(name).alias(name)
        for name in absent_as_zero
        if name in columns
    ]

    def cleaned() -> pl.DataFrame:
        return read.with_columns(nothing).sort("id")

    return cleaned() if few else await asyncio.to_thread(cleaned)


async def choices(session: Source, seller_id: int, run: Run) -> Choices:
    """Compile the queries of a run. Rules and sales whose query can't be parsed any more are marked
    `broken`.
    """
    live, active, guards = run.live, run.active_sales, run.guards
    things: list[Rule | Sale] = [*live, *active, *guards]
    found = await selections(session, seller_id, [thing.query for thing in things])
    of_rules, found = found[: len(live)], found[len(live) :]
    of_sales, of_guards = found[: len(active)], found[len(active) :]
    asked = zip([*live, *guards], [*of_rules, *of_guards], strict=True)
    broken_rules = {rule.id for rule, selection in asked if selection.where is None}
    broken_sales = {
        sale.id for sale, selection in zip(active, of_sales, strict=True) if selection.where is None
    }
    judged = replace(
        run,
        rules=[
            replace(rule, broken=True) if rule.id in broken_rules else rule for rule in run.rules
        ],
        sales=[
            replace(sale, broken=True) if sale.id in broken_sales else sale for sale in run.sales
        ],
    )
    return Choices(
        judged, _pairs(live, of_rules), _pairs(active, of_sales), _pairs(guards, of_guards)
    )


def _pairs(
    things: Sequence[Rule | Sale], found: Sequence[Selection]
) -> list[tuple[int, Selection]]:
    # A broken rule selects, and so blocks, every card that no earlier rule governs. A broken sale
    # selects no card.
    return [
        (thing.id, selection)
        for thing, selection in zip(things, found, strict=True)
        if selection.where is not None or isinstance(thing, Rule)
    ]


def first_of(
    choices: Sequence[tuple[int, Selection]], bound: dict[str, object], prefix: str
) -> str:
    """Return SQL for the id of the first rule or sale that selects a card, and add its values to
    `bound`.
    """
    whens = [
        f"WHEN {condition_of(selection, bound, f'{prefix}{place}')} THEN {int(id)}"
        for place, (id, selection) in enumerate(choices)
    ]
    return f"CASE {' '.join(whens)} END" if whens else "NULL::bigint"


def guards_of(chosen: Choices, bound: dict[str, object], prefix: str = "u") -> str:
    """Return SQL for the guards that select a card, as bits, and add its values to `bound`."""
    bits = [
        f"CASE WHEN {condition_of(selection, bound, f'{prefix}{bit}')} THEN {1 << bit} ELSE 0 END"
        for bit, (_, selection) in enumerate(chosen.guards)
    ]
    return f"({' + '.join(bits) or '0'})::bigint"


def condition_of(selection: Selection, bound: dict[str, object], prefix: str) -> str:
    """Return the selection's condition with its values renamed by `prefix`, and add these values to
    `bound`.
    """
    if selection.where is None:
        return "true"
    bound |= {f"{prefix}_{name}": value for name, value in selection.where.values.items()}
    own = _OWN.sub(lambda found: f":{prefix}_{found[1]}", selection.where.sql)
    return f"({own})"


def losing_of(chosen: Choices, bound: dict[str, object]) -> str:
    """Return SQL for the ids of the rules that select a card, without the first, which governs it;
    add its values to `bound`.
    """
    ids = [
        f"CASE WHEN {condition_of(selection, bound, f'c{place}')} THEN {int(id)} END"
        for place, (id, selection) in enumerate(chosen.rules)
    ]
    return (
        f"array_to_string((array_remove(ARRAY[{', '.join(ids)}]::bigint[], NULL))[2:], ' ')"
        if ids
        else "''"
    )


def candidates_read() -> pl.Expr:
    """Return the engine's column `candidates`, parsed from the text that `losing_of` selects."""
    written = pl.col("candidates")
    split = pl.when(written != "").then(written.str.split(" "))
    return split.fill_null([]).cast(pl.List(pl.Int64)).alias("candidates")


async def with_losing(
    session: Source,
    seller_id: int,
    stock: Stock,
    card_ids: Sequence[int] | None = None,
) -> Stock:
    """Add the column `candidates` to the stock's cards: the rules that select a card without
    governing it. `card_ids` are the ids of the cards, if they are few.

    If no rule has a query, every live rule selects every card, so `candidates` is not added.
    """
    if not stock.run.any(lambda rule: rule.query):
        return stock
    bound: dict[str, object] = {"seller": seller_id, "now": stock.run.now}
    where = ON_SALE
    if card_ids is not None:
        where = "c.id = ANY(CAST(:card_ids AS bigint[]))"
        bound["card_ids"] = list(card_ids)
    sql = f"SELECT c.id, {losing_of(stock.chosen, bound)} FROM card c WHERE c.seller_id = :seller AND {where}"
    lost = await read_rows(session, sql, {"id": pl.Int64, "candidates": pl.String}, bound)
    with_candidates = lost.with_columns(candidates_read())
    return replace(
        stock, cards=stock.cards.join(with_candidates, on="id", how="left", maintain_order="left")
    )


def _cards(rows: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    unknown = {name: pl.lit(None, pl.String) for name in ("condition", "printing", "language")}
    flags = pl.col("flags")
    cards = rows.rename({"price": "current_price"}).with_columns(
        pl.col("observed_at").cast(TIME),
        custom=flags % 2 == 1,
        my_store_priced=flags // 2 % 2 == 1,
        product_line_enabled=flags // 4 == 1,
        **unknown,
    )
    return with_decided(cards.drop("flags"), decided)

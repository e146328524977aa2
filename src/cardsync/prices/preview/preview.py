"""Previews other rules in place of the live rules without applying them: counts and the largest
moves.

The preview reads everything in one snapshot and writes no price. It holds the lease while it reads,
if the lease is free. During a run it reads without the lease, because a snapshot is consistent
anyway.
"""

from __future__ import annotations

import asyncio
import io
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
import polars as pl

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.lease import held_to_read
from cardsync.platform.database.read_sources import Source, each_of, rows_last
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.csv_table import encoded_frame
from cardsync.platform.money import dollars, dollars_or_none
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject, NamedRow, Values
from cardsync.prices.engine import engine, missing_evidence
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import Effect
from cardsync.prices.inputs.cards_to_price import (
    ON_SALE,
    condition_of,
    read_stock,
    simulate_stock,
)
from cardsync.prices.inputs.market_inputs import observed_for
from cardsync.prices.inputs.rule_file import read_rules, read_sales
from cardsync.prices.inputs.rule_json import RuleBody, SaleBody
from cardsync.prices.inputs.rule_queries import need_readable, selections
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.preview.schemas import DifferingCard, LargestMove, MoveBin, Preview
from cardsync.prices.receipts.sentences import blocker_codes, explain
from cardsync.stock.cards.write import decimal

LARGEST: Final = 50
DIFFERING: Final = 10
FORMATS: Final = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
# The edges of the histogram's bins: moves in basis points of the current price. The last bin has no
# upper edge.
_EDGES: Final = (
    -10_000,
    -5_000,
    -2_000,
    -1_000,
    -500,
    -100,
    0,
    100,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
)


class PricesAsked(msgspec.Struct):
    """Whole sets of rules and sales, which replace the live rules and sales. Without them, the live
    rules, the drafts and the live sales are used.
    """

    rules: list[RuleBody] | None = None
    """All rules, in place of the live rules"""
    sales: list[SaleBody] | None = None
    """All promotions, in place of the live promotions"""
    search: str | None = None


_CARDS: Final = """
    SELECT marketplace_id, id, product_name, set_name, condition_label FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
"""


@asynccontextmanager
async def reading(
    database: Database,
    caller: Caller,
    settings: Settings,
) -> AsyncIterator[Reading]:
    """Open the snapshot from which a preview is made, and hold the lease while it is read. A
    preview that waits for a free slot holds no lease meanwhile.
    """
    caller.must_be_owner()
    async with (
        database.slots.of(caller.seller_id, Work.PRICES_ALL),
        held_to_read(database, caller.seller_id, "preview", settings.lease_seconds),
        database.readings.of(caller.seller_id, settings.read_seconds) as reads,
    ):
        yield reads


async def priced(
    source: Source,
    caller: Caller,
    given: PricesAsked,
    now: datetime,
) -> Effect:
    """Return every card that the search selects, priced by the given rules.

    Raises InvalidRule, InvalidQuery, InvalidPayload.
    """
    seller_id = caller.seller_id
    account, live = await live_run(source, seller_id, now)
    run = await asked(source, seller_id, given.rules, given.sales, live)
    bound: Values = {}
    where = await _where(source, seller_id, given.search, bound)
    return await simulate_stock(await read_stock(source, account, run, where, **bound))


async def asked(
    source: Source,
    seller_id: int,
    given_rules: Sequence[Mapping[str, object]] | None,
    given_sales: Sequence[Mapping[str, object]] | None,
    live: Run,
) -> Run:
    """Return a run of the live rules and drafts, or of the given rules and sales instead.

    Raises InvalidRule, InvalidQuery.
    """
    rules: Sequence[Rule] = [replace(rule, state="published") for rule in live.rules]
    sales: Sequence[Sale] = live.sales
    queries: dict[str, list[str]] = {}
    if given_rules is not None:
        rules = read_rules(given_rules)
        queries["rules"] = [rule.query for rule in rules]
    if given_sales is not None:
        sales = read_sales(given_sales)
        queries["sales"] = [sale.query for sale in sales]
    read = dict[str, str]()
    for kind, asked_for in queries.items():
        for query in dict.fromkeys(asked_for):
            field = f"{kind}[{asked_for.index(query)}].query"
            read[query] = await need_readable(source, seller_id, query, field)
    return replace(
        live,
        rules=[replace(rule, query=read.get(rule.query, rule.query)) for rule in rules],
        sales=[replace(sale, query=read.get(sale.query, sale.query)) for sale in sales],
    )


async def _where(
    source: Source,
    seller_id: int,
    search: str | None,
    bound: dict[str, object],
) -> str:
    if not search:
        return ON_SALE
    search = await need_readable(source, seller_id, search, "search")
    [selection] = await selections(source, seller_id, [search])
    return f"{ON_SALE} AND {condition_of(selection, bound, 'w')}"


class Summed(NamedTuple):
    """The figures of priced cards, the cards with the largest moves, and those whose target would
    differ from the last run's target: their number and the first of them.
    """

    run: Run
    counts: JsonObject
    moves: Sequence[NamedRow]
    differs: int
    differing: Sequence[NamedRow]

    @property
    def ids(self) -> list[int]:
        return [card["marketplace_id"] for card in (*self.moves, *self.differing)]


async def figures(
    source: Source,
    caller: Caller,
    effect: Effect,
    most: int = LARGEST,
) -> Preview:
    """Return the preview with the largest moves."""
    [shown] = await figures_of(source, caller, [await summed(effect, most)])
    return shown


async def summed(effect: Effect, most: int) -> Summed:
    """Add up the cards, in a worker thread."""

    def add_up() -> Summed:
        differing = effect.moves("target_price", "target")
        return Summed(
            effect.run,
            _counts(effect),
            effect.moves().head(most).to_dicts(),
            differing.height,
            differing.head(DIFFERING).to_dicts(),
        )

    return await asyncio.to_thread(add_up)


async def figures_of(source: Source, caller: Caller, effects: Sequence[Summed]) -> list[Preview]:
    """Return a preview for each of the figures. The cards of all are read together."""
    known, observed = await each_of(
        source,
        cards_of(source, caller.seller_id, [id for one in effects for id in one.ids]),
        observed_for(source, [rule for one in effects for rule in one.run.live]),
    )
    return [
        Preview(
            **one.counts,
            differs=one.differs,
            differing=[
                DifferingCard(
                    row["marketplace_id"],
                    *known[row["marketplace_id"]],
                    dollars_or_none(row["current_price"]),
                    dollars_or_none(row["target_price"]),
                    dollars_or_none(row["target"]),
                )
                for row in one.differing
            ],
            largest=[largest_move(row, "target", known, one.run) for row in one.moves],
            warnings=missing_evidence.warnings_of(one.run.live, observed),
        )
        for one in effects
    ]


def _counts(effect: Effect) -> JsonObject:
    out, counted = effect.cards, effect.counts
    before, after = effect.worth
    current = pl.col("current_price")
    held = engine.is_limited()
    stays = held & ~pl.col("changed")
    target, was = pl.col("target"), current.fill_null(0)
    sums = out.select(
        # `unchanged` counts these cards, too, which keep their price while they wait. A card that
        # waits for its first price has no target, so `unchanged` does not count it.
        waiting=(pl.col("review").is_not_null() & current.is_not_null()).sum(),
        stays=stays.sum(),
        held_up=(held & (target > was)).sum(),
        held_down=(held & (target < was)).sum(),
    ).row(0, named=True)
    return {
        "cards": counted.cards,
        "up": counted.up,
        "down": counted.down,
        "unchanged": counted.unchanged - sums["stays"] - sums["waiting"],
        "held": counted.held,
        "held_up": int(sums["held_up"]),
        "held_down": int(sums["held_down"]),
        "reviewed": counted.reviewed,
        "blocked": counted.blocked,
        "listed_value_before": dollars_or_none(before),
        "listed_value_after": dollars_or_none(after),
        "up_value": dollars_or_none(counted.up_value),
        "down_value": dollars_or_none(counted.down_value),
        "histogram": _histogram(out),
    }


class KnownCard(NamedTuple):
    """The id and the names of a card; all are None for a deleted card."""

    card_id: int | None = None
    product_name: str | None = None
    set_name: str | None = None
    condition_label: str | None = None


async def cards_of(
    source: Source,
    seller_id: int,
    marketplace_ids: Sequence[int],
) -> Mapping[int, KnownCard]:
    """Return ids, names, sets and conditions of cards by their marketplace ids. A reading's message
    with this read is its last.
    """
    values = {"seller": seller_id, "ids": list(marketplace_ids)}
    found = await rows_last(source)(_CARDS, values) if marketplace_ids else ()
    known = {row[0]: KnownCard(*row[1:]) for row in found}
    return defaultdict(KnownCard, known)


_CLOSING: Final = ("rounding", "holdout", "review", "change")


def largest_move(
    row: NamedRow, price: str, known: Mapping[int, KnownCard], run: Run
) -> LargestMove:
    """Return a card's move to the price in the column `price`."""
    return LargestMove(
        row["marketplace_id"],
        *known[row["marketplace_id"]],
        dollars_or_none(row["current_price"]),
        dollars(row[price]),
        row["rule_id"],
        reason_of(row, run),
    )


def reason_of(row: Mapping[str, object], run: Run) -> str:
    """Return the sentence of the last step that moved the price, except the steps of `_CLOSING`."""
    steps = [step for step in explain(row, run)[2:] if step["name"] not in _CLOSING]
    moved = [step for step in steps if step["input"] != step["output"]]
    return str((moved or steps)[-1]["summary"]) if steps else "The price is pinned."


def _histogram(out: pl.DataFrame) -> list[MoveBin]:
    moved = out.filter(pl.col("changed") & pl.col("current_price").is_not_null())
    share = (pl.col("target") - pl.col("current_price")) * 10_000 // pl.col("current_price")
    bins = moved.select(share.alias("bp"))["bp"]
    edges = [*pairwise(_EDGES), (_EDGES[-1], None)]
    return [
        MoveBin(low, high, int(((bins >= low) & (True if high is None else bins < high)).sum()))
        for low, high in edges
    ]


def every_card(out: pl.DataFrame, kind: str) -> bytes:
    """Return every card as CSV or Parquet, with amounts in dollars."""
    codes = {bits: ";".join(blocker_codes(bits)) for bits in out["blockers"].unique().to_list()}
    frame = out.select(
        "marketplace_id",
        decimal("current_price").cast(pl.Decimal(18, 4)),
        decimal("target").cast(pl.Decimal(18, 4)).alias("target_price"),
        "rule_id",
        "sale_id",
        engine.is_limited().alias("held"),
        pl.col("blockers").replace_strict(codes, return_dtype=pl.String).alias("blocked"),
    )
    if kind == "csv":
        return encoded_frame(frame, ["blocked"])
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()

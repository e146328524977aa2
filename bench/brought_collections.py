"""`python bench/brought_collections.py [--rounds 5]`: a ManaBox file of 20,000 rows of the real
Magic catalog: recognized and read, matched, and valued by the standard preset, in a process that
has done it before.

The floor is what no program does without: the csv module over the file, and one join of its rows
with the catalog by set, name and number. Every product has a market price, so that every row is
valued. Storing the rows is timed beside it.
"""

from __future__ import annotations

import csv
import io
import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import polars as pl

import ground
from cardsync.access.caller import Caller
from cardsync.buying.collections.collection_cells import read_rows
from cardsync.buying.collections.collection_text import read_text
from cardsync.buying.collections.file_formats import recognize
from cardsync.buying.collections.match_collection import match_rows
from cardsync.buying.collections.value_collection import ROWS_PER_PAGE
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.rules import buy_rule_sets
from cardsync.buying.rules.value_offer import value
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.logs import setup_logging
from ground import Ground, Report

ROWS = 20_000
HEADER = (
    "Name,Set code,Set name,Collector number,Foil,Rarity,Quantity,ManaBox ID,Scryfall ID,"
    "Purchase price,Misprint,Altered,Condition,Language,Purchase price currency"
)
# The shared catalogs have no ids of the marketplace, by which its prices are kept.
NAMED = "UPDATE product SET marketplace_product_id = id WHERE marketplace_product_id IS NULL"
PRICED = """
    INSERT INTO market_price (product_id, printing, source, observed_at, market, low)
    SELECT DISTINCT ON (p.marketplace_product_id) p.marketplace_product_id, 'Normal', 'bench',
           now(), 5000 + p.id % 300000, 4000 + p.id % 300000
      FROM product p WHERE p.marketplace_product_id IS NOT NULL
    ON CONFLICT DO NOTHING
"""


def a_file(catalog: pl.DataFrame) -> bytes:
    chance = random.Random(1)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER.split(","))
    named = catalog.select("product_name", "set_code", "set_name", "number")
    for number, row in enumerate(named.sample(ROWS, seed=1, with_replacement=True).iter_rows()):
        name, code, set_name, collector = row
        condition = chance.choice(("near_mint", "near_mint", "light_played", "played"))
        copies = chance.choice((1, 1, 1, 2, 4))
        writer.writerow(
            [name, code or "", set_name, collector or "", "normal", "common", copies, number, "",
             "0.10", "false", "false", condition, "en", "USD"]
        )  # fmt: skip
    return out.getvalue().encode()


@dataclass
class Times:
    """Seconds of one round."""

    floor: float
    read: float
    matched: float
    valued: float

    @property
    def whole(self) -> float:
        return self.read + self.matched + self.valued


def the_floor(data: bytes, catalog: pl.DataFrame) -> float:
    started = perf_counter()
    rows = list(csv.reader(io.StringIO(data.decode())))
    frame = pl.DataFrame(rows[1:], schema=rows[0], orient="row")
    keys = {"Set name": "set_name", "Name": "product_name", "Collector number": "number"}
    frame.rename(keys).join(catalog, on=list(keys.values()), how="left")
    return perf_counter() - started


async def one_round(
    database: Database,
    caller: Caller,
    data: bytes,
    catalog: pl.DataFrame,
) -> tuple[Times, int, int]:
    floor = the_floor(data, catalog)
    started = perf_counter()
    text = read_text(data)
    found = recognize(text.header)
    assert found is not None
    rows = read_rows(text.rows, found, text.header).frame
    read = perf_counter()
    matched = await match_rows(database, caller.seller_id, ["magic"], rows)
    known = perf_counter()
    of_products = matched.filter(pl.col("product_id").is_not_null())
    lines = [
        WantedLine(*row)
        for row in of_products.select(
            "row", "product_id", "condition", "finish", "language", "copies"
        ).iter_rows()
    ]
    on_page = {line.line for line in lines[:ROWS_PER_PAGE]}
    async with database.tenant(caller.seller_id) as session:
        valued = await value(session, caller, lines, clock.now(), explained=on_page)
    done = perf_counter()
    bought = sum(1 for line in valued.lines if line.bought)
    return Times(floor, read - started, known - read, done - known), len(lines), bought


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Collections")
    setup_logging("warning", "json")
    catalog = pl.read_parquet(data / "catalog" / "magic_xmage.parquet")
    with ground.ground(data, rows) as made:
        measured(made, report, catalog, rounds)
    return report


def measured(made: Ground, report: Report, catalog: pl.DataFrame, rounds: int) -> None:
    seller = made.new_seller()
    with made.admin() as connection:
        connection.execute(NAMED)
        connection.execute(PRICED)
        connection.execute("ANALYZE")
    file = a_file(catalog)

    async def work(database: Database) -> list[tuple[Times, int, int]]:
        caller = await made.caller(database, seller.seller_id)
        async with database.tenant(seller.seller_id) as session:
            await buy_rule_sets.apply_preset(session, caller, "standard", clock.now())
        return [await one_round(database, caller, file, catalog) for _ in range(rounds + 1)]

    found = made.in_database(work)[1:]
    times = [one for one, _, _ in found]
    _, matched, bought = found[0]
    whole = statistics.median(one.whole for one in times)
    ratio = statistics.median(one.whole / one.floor for one in times)
    for name in ("floor", "read", "matched", "valued"):
        median = statistics.median(getattr(one, name) for one in times)
        report.note(f"{name:<8} {median:.3f} s")
    report.note(f"{matched:,} of {ROWS:,} rows matched, {bought:,} bought")
    report.figure("20,000 rows against parse and one join", ratio)
    report.figure("20,000 rows of a collection", whole, "s")


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

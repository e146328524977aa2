"""Imports files of market observations, and reports the result.

Each file is one transaction. Loading the same file again writes nothing: a repeated sale is stored
once, and a repeated snapshot of listings is replaced only if it differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market import daily_prices, observation_files
from cardsync.catalog.market.newest import keep_newest
from cardsync.catalog.market.observation_files import MarketFileError
from cardsync.catalog.sources.source_record import Broken
from cardsync.platform import clock
from cardsync.platform.database.copy import write_rows
from cardsync.platform.database.locks import LOAD_SECONDS, Lock, locked
from cardsync.platform.database.session import Database, run

FORMS: Final = ("auto", "csv", "parquet", "mtgjson", "tcgcsv")
_CELL: Final = ("condition", "printing", "language")
_SALE: Final = ("product_id", "sold_at", "cell", "price", "quantity")
_LISTING: Final = ("product_id", "observed_at", "cell", "listings", "copies", "low")
_PRICE: Final = ("product_id", "printing", "source", "observed_at", "market", "low")


@dataclass
class Report:
    """The result of one file. `broken` lists the skipped records."""

    name: str
    rows: int = 0
    sales: int = 0
    listings: int = 0
    prices: int = 0
    broken: list[Broken] = field(default_factory=list)

    @property
    def new(self) -> int:
        return self.sales + self.listings + self.prices

    def sentence(self) -> str:
        """Return the result in one line."""
        said = (
            f"{self.rows:,} rows in {self.name}: {self.sales:,} sales,"
            f" {self.listings:,} listings and {self.prices:,} prices are new"
        )
        if self.broken:
            count = len(self.broken)
            said += f"; {count:,} record{'s were' if count > 1 else ' was'} skipped"
        return said


async def load(
    database: Database,
    path: Path,
    say: Callable[[str], None],
    form: str = "auto",
    *,
    kind: str | None = None,
    observed_at: datetime | None = None,
    printings: Path | None = None,
) -> Report:
    """Load one file. Raises MarketFileError before anything is written."""
    form = daily_prices.form_of(path) if form == "auto" else form
    report = Report(path.name)
    async with database.shared() as session:
        # Without the lock, two simultaneous imports could block each other by row locks.
        await locked(session, Lock.MARKET, seconds=LOAD_SECONDS)
        if form in ("csv", "parquet"):
            await _observations(session, observation_files.slices(path, form, kind), report, say)
        else:
            found = daily_prices.slices(path, form, observed_at, printings)
            await _prices(session, found, report, say)
        if not report.new and report.broken and len(report.broken) == report.rows:
            first = report.broken[0]
            raise MarketFileError(
                f"{path.name} holds no usable record; {first.where}: {first.reason}"
            )
    if report.new:
        async with database.shared() as session:
            for table in (
                "market_sale",
                "market_listing",
                "market_price",
                "market_look",
                "market_newest",
            ):
                await session.execute(text(f"ANALYZE {table}"))
    return report


async def _observations(
    session: AsyncSession,
    found: Iterable[observation_files.Slice],
    report: Report,
    say: Callable[[str], None],
) -> None:
    for statement in _INCOMING:
        await session.execute(text(statement))
    cells = _CellIds()
    slices = iter(found)
    while (some := await asyncio.to_thread(next, slices, None)) is not None:
        report.rows += some.rows
        report.broken += some.broken
        if some.sales.height:
            await _copy_sales(session, await cells.of(session, some.sales))
        if some.listings.height:
            await _copy_listings(session, await cells.of(session, some.listings))
        say(f"{report.rows:,} rows of {report.name} are read")
    report.sales = await run(session, _NEW_SALES, {})
    report.listings = await run(session, _NEW_LISTINGS, {})
    now = {"now": clock.now()}
    await run(session, _NEW_LOOKS, now)
    await run(session, _NEW_SALES_LOOKS, now)
    # Without new rows, the newest evidence changes only for products with a newer observation time.
    looked = "seen_look" if report.sales or report.listings else "moved_look"
    await keep_newest(session, f"SELECT product_id FROM {looked}")


_INCOMING: Final = (
    """CREATE TEMP TABLE seen_sale (product_id bigint, sold_at timestamptz, cell smallint,
                                    price bigint, quantity integer) ON COMMIT DROP""",
    """CREATE TEMP TABLE seen_listing (product_id bigint, observed_at timestamptz, cell smallint,
                                       listings integer, copies integer, low bigint)
       ON COMMIT DROP""",
    """CREATE TEMP TABLE seen_look (product_id bigint, sales_at timestamptz,
                                    listings_at timestamptz) ON COMMIT DROP""",
    "CREATE TEMP TABLE moved_look (product_id bigint) ON COMMIT DROP",
    # With the default work_mem, sorts of millions of rows would use many small files on disk.
    "SELECT set_config('work_mem', '128MB', true)",
)
_NEW_SALES: Final = """
    INSERT INTO market_sale (product_id, sold_at, cell, price, quantity)
    SELECT product_id, sold_at, cell, price, quantity FROM seen_sale
     ORDER BY product_id, sold_at, cell, price, quantity
    ON CONFLICT DO NOTHING
"""
# Two slices of a file may each contain a part of a snapshot, so the parts are added.
_NEW_LISTINGS: Final = """
    INSERT INTO market_listing AS m (product_id, observed_at, cell, listings, copies, low)
    SELECT product_id, observed_at, cell, sum(listings), least(sum(copies), 2000000000), min(low)
      FROM seen_listing GROUP BY product_id, observed_at, cell
     ORDER BY product_id, observed_at, cell
    ON CONFLICT (product_id, observed_at, cell) DO UPDATE
       SET listings = excluded.listings, copies = excluded.copies, low = excluded.low
     WHERE (m.listings, m.copies, m.low)
           IS DISTINCT FROM (excluded.listings, excluded.copies, excluded.low)
"""
# A stored time in the future counts as unknown, and the next import's time replaces it.
_LATER: Final = """
    CASE WHEN k.{0} > CAST(:now AS timestamptz) THEN coalesce(excluded.{0}, k.{0})
         ELSE greatest(k.{0}, excluded.{0}) END
"""
_SALES_AT: Final = _LATER.format("sales_at")
_LISTINGS_AT: Final = _LATER.format("listings_at")
_NEW_LOOKS: Final = f"""
    WITH written AS (
        INSERT INTO market_look AS k (product_id, sales_at, listings_at)
        SELECT product_id, max(sales_at), max(listings_at) FROM seen_look
         GROUP BY product_id ORDER BY product_id
        ON CONFLICT (product_id) DO UPDATE
           SET sales_at = {_SALES_AT}, listings_at = {_LISTINGS_AT}
         WHERE k.sales_at IS DISTINCT FROM {_SALES_AT}
            OR k.listings_at IS DISTINCT FROM {_LISTINGS_AT}
        RETURNING product_id)
    INSERT INTO moved_look SELECT product_id FROM written
"""
# Observation times in the future are ignored.
_NEW_SALES_LOOKS: Final = """
    INSERT INTO market_sales_look (product_id, looked_at)
    SELECT DISTINCT product_id, sales_at FROM seen_look WHERE sales_at <= :now
     ORDER BY product_id, sales_at
    ON CONFLICT DO NOTHING
"""


async def _copy_sales(session: AsyncSession, rows: pl.DataFrame) -> None:
    await _copy(session, "seen_sale", rows.select(_SALE))
    hour = pl.col("fetched_at").dt.truncate("1h").alias("hour")
    looks = rows.group_by("product_id", hour).agg(pl.col("fetched_at").max().alias("sales_at"))
    await _copy(session, "seen_look", looks.select("product_id", "sales_at"))


async def _copy_listings(session: AsyncSession, rows: pl.DataFrame) -> None:
    summed = rows.group_by("product_id", "observed_at", "cell").agg(
        pl.len().alias("listings"),
        pl.col("quantity").sum().alias("copies"),
        pl.col("price").min().alias("low"),
    )
    await _copy(session, "seen_listing", summed.select(_LISTING))
    looks = rows.group_by("product_id").agg(pl.col("observed_at").max().alias("listings_at"))
    await _copy(session, "seen_look", looks.select("product_id", "listings_at"))


async def _copy(session: AsyncSession, table: str, rows: pl.DataFrame) -> None:
    await write_rows(session, table, rows)


class _CellIds:
    """The ids of the cells (condition, printing and language) that this import has read so far."""

    def __init__(self) -> None:
        self._known = pl.DataFrame(
            schema={**dict.fromkeys(_CELL, pl.String), "cell": pl.Int64},
        )

    async def of(self, session: AsyncSession, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the column `cell`, the id of their cell. A new cell gets an id."""
        distinct = rows.select(_CELL).unique()
        if distinct.join(self._known, on=_CELL, how="anti").height:
            await self._learn(session, distinct)
        return rows.join(self._known, on=_CELL, how="left", maintain_order="left")

    async def _learn(self, session: AsyncSession, distinct: pl.DataFrame) -> None:
        await session.execute(
            text("""
                INSERT INTO market_cell (condition, printing, language)
                SELECT * FROM unnest(CAST(:condition AS text[]), CAST(:printing AS text[]),
                                     CAST(:language AS text[])) AS given (condition, printing,
                                       language)
                 WHERE NOT EXISTS (SELECT FROM market_cell c
                                    WHERE (c.condition, c.printing, c.language)
                                        = (given.condition, given.printing, given.language))
                ON CONFLICT DO NOTHING
            """),
            {name: distinct[name].to_list() for name in _CELL},
        )
        found = await session.execute(
            text("SELECT condition, printing, language, id FROM market_cell")
        )
        self._known = pl.DataFrame(
            [tuple(row) for row in found], schema=self._known.schema, orient="row"
        )


async def _prices(
    session: AsyncSession,
    found: Iterable[tuple[pl.DataFrame, list[Broken]]],
    report: Report,
    say: Callable[[str], None],
) -> None:
    await session.execute(
        text(
            "CREATE TEMP TABLE seen_price (product_id bigint, printing text, source text,"
            " observed_at timestamptz, market bigint, low bigint) ON COMMIT DROP"
        )
    )
    slices = iter(found)
    while (some := await asyncio.to_thread(next, slices, None)) is not None:
        rows, broken = some
        report.rows += rows.height + len(broken)
        report.broken += broken
        await _copy(session, "seen_price", rows.select(_PRICE))
        say(f"{report.rows:,} prices of {report.name} are read")
    report.prices = await run(session, _NEW_PRICES, {})


_NEW_PRICES: Final = """
    INSERT INTO market_price AS m (product_id, printing, source, observed_at, market, low)
    SELECT DISTINCT ON (product_id, printing, source, observed_at)
           product_id, printing, source, observed_at, market, low
      FROM seen_price ORDER BY product_id, printing, source, observed_at, market NULLS LAST
    ON CONFLICT (product_id, printing, source, observed_at) DO UPDATE
       SET market = excluded.market, low = excluded.low
     WHERE (m.market, m.low) IS DISTINCT FROM (excluded.market, excluded.low)
"""


async def drop_old(database: Database, before: datetime) -> int:
    """Delete the observations that are older than `before`, and return their number."""
    deleted = 0
    async with database.shared() as session:
        for table, column in _CLOCKS:
            deleted += await run(
                session, f"DELETE FROM {table} WHERE {column} < :before", {"before": before}
            )
        for statement in _PAST:
            await run(session, statement, {"before": before})
    return deleted


_PAST: Final = (
    """DELETE FROM market_newest m USING market_look k
        WHERE k.product_id = m.product_id AND greatest(k.sales_at, k.listings_at) < :before""",
    """UPDATE market_look SET fell = NULL
        WHERE fell IS NOT NULL AND greatest(sales_at, listings_at) < :before""",
)
_CLOCKS: Final[Sequence[tuple[str, str]]] = (
    ("market_sale", "sold_at"),
    ("market_sales_look", "looked_at"),
    ("market_listing", "observed_at"),
    ("market_price", "observed_at"),
)

"""`python bench/market_import.py [--observed 5000000] [--rounds 1]`: importing market observations,
half sales and half listings, into empty tables, and the same file again.

Floor: Polars reads the file, and COPY writes the same rows into a table without an index.
"""

from __future__ import annotations

import resource
import statistics
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import polars as pl

import ground
from cardsync.catalog.market.load_observations import Report as Imported
from cardsync.catalog.market.load_observations import load
from cardsync.platform.database.copy import encode
from cardsync.platform.database.session import Database
from ground import Ground, Report, spread

PRODUCTS = 100_000
TABLES = "market_sale, market_listing, market_look"
NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def observations(rows: int) -> pl.DataFrame:
    """Return sales of thirty days, and snapshots of listings every six hours."""
    rng = np.random.default_rng(7)
    sales = pl.Series(np.arange(rows) % 2 == 0)
    ago = pl.Series(rng.integers(0, 30 * 86_400, rows))
    fetched = pl.Series(rng.integers(0, 120, rows) * 6 * 3_600)
    now = pl.lit(NOW)
    return pl.DataFrame(
        {
            "product_id": rng.integers(1, PRODUCTS, rows),
            "condition": rng.choice(["NM", "LP", "MP", "HP", "DMG"], rows),
            "printing": rng.choice(["Normal", "Foil"], rows),
            "language": rng.choice(["English", "Japanese"], rows, p=[0.9, 0.1]),
            "price": rng.integers(25, 20_000, rows) / 100,
            "quantity": rng.integers(1, 5, rows),
        }
    ).with_columns(
        kind=pl.when(sales).then(pl.lit("sale")).otherwise(pl.lit("listing")),
        sold_at=pl.when(sales).then(now - pl.duration(seconds=ago)),
        fetched_at=pl.when(sales).then(now),
        observed_at=pl.when(~sales).then(now - pl.duration(seconds=fetched)),
    )


def _import(made: Ground, path: Path) -> Imported:
    async def run(database: Database) -> Imported:
        return await load(database, path, lambda _: None)

    return made.in_database(run)


def _copied(made: Ground, path: Path) -> float:
    with made.admin() as connection:
        connection.execute("DROP TABLE IF EXISTS floor")
        connection.execute(
            "CREATE TABLE floor (product_id bigint, condition text, printing text, language text,"
            " price numeric, quantity integer, kind text, sold_at timestamptz,"
            " fetched_at timestamptz, observed_at timestamptz)"
        )
        started = perf_counter()
        frame = pl.read_parquet(path)
        columns = ", ".join(frame.columns)
        with connection.cursor().copy(f"COPY floor ({columns}) FROM STDIN") as copy:
            copy.write(encode(frame))
        return perf_counter() - started


def measure(data: Path, rows: int, observed: int, rounds: int) -> Report:
    report = Report("Market observations")
    times: dict[str, list[float]] = {"first": [], "again": [], "floor": []}
    written = 0
    with TemporaryDirectory() as folder, ground.ground(data, 1_000, catalogs=False) as made:
        path = Path(folder) / "observations.parquet"
        observations(observed).write_parquet(path)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(rounds):
            with made.admin() as connection:
                connection.execute(f"TRUNCATE {TABLES}")
            made.settle()
            for name in ("first", "again"):
                started = perf_counter()
                told = _import(made, path)
                times[name].append(perf_counter() - started)
            written = told.new
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(rounds):
            times["floor"].append(_copied(made, path))
        report.note(
            f"{observed:,} observations; memory grew from {before >> 10} to {most >> 10} MB"
        )
    for name, values in times.items():
        report.note(f"{name:<6} {spread(values)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("import / read + COPY", middle["first"] / middle["floor"])
    report.figure("rows written by the same file again", written, "rows")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, observed=5_000_000, rounds=1)

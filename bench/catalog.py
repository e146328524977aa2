"""`python bench/catalog.py [--rounds 3]`: importing the Magic catalog (91,544 printings) into an
empty table, and the same file again.

Floor: Polars reads the file, and COPY writes the same columns into a table with the indexes of the
products, because every search and every match needs them. The bare floor, COPY into a table without
an index, is printed beside it: the indexes alone cost about fifteen times as much. Each round
begins with an empty table.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import perf_counter

import polars as pl

import ground
from cardsync.catalog.load_catalog import Report as Imported
from cardsync.catalog.load_catalog import load
from cardsync.platform.database.copy import encode
from cardsync.platform.database.session import Database
from ground import Ground, Report, spread

CATALOG = "catalog/magic_xmage.parquet"
COLUMNS = [
    "game",
    "set_name",
    "set_code",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "product_id",
]


def _import(made: Ground, path: Path) -> Imported:
    async def run(database: Database) -> Imported:
        return await load(database, path, "auto", None, lambda _: None)

    return made.in_database(run)


def _copied(made: Ground, path: Path, like: str) -> float:
    """Read the file and COPY it into a new table; return the seconds."""
    with made.admin() as connection:
        connection.execute("DROP TABLE IF EXISTS floor")
        connection.execute(f"CREATE TABLE floor ({like})")
        started = perf_counter()
        frame = read_catalog(path)
        columns = ", ".join(frame.columns)
        with connection.cursor().copy(f"COPY floor ({columns}) FROM STDIN") as copy:
            copy.write(encode(frame))
        return perf_counter() - started


def read_catalog(path: Path) -> pl.DataFrame:
    """Return the file's columns, and its texts once more as the keys that the indexes take."""
    read = pl.read_parquet(path, columns=COLUMNS).rename({"product_id": "marketplace_product_id"})
    return (
        read.with_row_index("n")
        .with_columns(
            identity=pl.format("{}", "n"),
            set_key="set_name",
            set_code_key="set_code",
            number_key="number",
        )
        .drop("n")
    )


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Catalog import")
    path = data / CATALOG
    times: dict[str, list[float]] = {"first": [], "again": [], "floor": [], "bare": []}
    written = 0
    with ground.ground(data, 1_000, catalogs=False) as made:
        for _ in range(rounds):
            with made.admin() as connection:
                connection.execute("TRUNCATE product CASCADE")
            made.settle()
            times["bare"].append(
                _copied(made, path, "LIKE product INCLUDING IDENTITY INCLUDING DEFAULTS")
            )
            times["floor"].append(_copied(made, path, "LIKE product INCLUDING ALL"))
            for name in ("first", "again"):
                started = perf_counter()
                told = _import(made, path)
                times[name].append(perf_counter() - started)
            written = told.added + told.changed + told.vanished
        report.note(f"{told.products:,} printings")
    for name, values in times.items():
        report.note(f"{name:<6} {spread(values)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.note(f"first import / bare floor {middle['first'] / middle['bare']:.1f} x")
    report.figure("first import / read + COPY", middle["first"] / middle["floor"])
    report.figure("rows written by the same file again", written, "rows")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=3)

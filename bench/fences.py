"""`python bench/fences.py [--rows 100000] [--rounds 5]`: what each fenced trick of `database/` is
worth: the same work with it and without it, in turn, in one process.

Seconds are the least of the rounds; where helper processes share the work they are what counts, and
CPU would say nothing. The docstrings of `platform/database/transaction_settings.py` and its neighbours name
the figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import polars as pl
from isal import igzip
from sqlalchemy import text

import ground
import import_inventory
import orders
import read_orders
import search
from cardsync.access.caller import Caller
from cardsync.imports import stored_cards
from cardsync.platform.database import snapshot_reads as readings
from cardsync.platform.database.copy import new_table, read_integers, read_rows
from cardsync.platform.database.session import Database, driver
from cardsync.platform.database.transaction_settings import (
    committed_before_the_disk,
    joined_by_hash,
)
from cardsync.platform.derived import sales_by_day
from cardsync.platform.kit.row_pages import Paging
from cardsync.sales.orders import apply as orders_apply
from cardsync.sales.orders import customer_list as customers_read
from cardsync.sales.orders.order_filter import OrderFilter
from cardsync.sales.orders.queries import find_orders
from ground import Ground, Report

Work = Callable[[], Awaitable[Any]]
NOTHING = "SELECT 1"
WRITTEN = "SELECT max(updated_at) FROM orders"


async def compared(report: Report, what: str, rounds: int, with_it: Work, without_it: Work) -> None:
    least = [float("inf"), float("inf")]
    for _ in range(rounds + 1):
        for place, work in enumerate((with_it, without_it)):
            started = perf_counter()
            await work()
            least[place] = min(least[place], perf_counter() - started)
    report.note(
        f"{what:<46} {least[0] * 1000:8.1f} ms, without it {least[1] * 1000:8.1f} ms,"
        f" {least[1] / least[0]:5.2f} x"
    )
    report.figure(f"without / with {what}", least[1] / least[0])


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    with patch.object(module, name, value):
        yield


def without(module: Any, name: str, work: Work, value: Any = lambda: NOTHING) -> Work:
    async def patched() -> None:
        with replaced(module, name, value):
            await work()

    return patched


async def integers(report: Report, database: Database, seller: int, rounds: int) -> None:
    columns = {name: sql.format(seller_id=seller) for name, sql in stored_cards._STORED_SQL.items()}
    apart = {name: sql for name, sql in columns.items() if name != "kind"} | {
        "place": stored_cards._PLACE_OF_LINE.format(seller_id=seller).join(("coalesce(", ", 0)")),
        "letter": "ascii(match)",
        "bit": "gone::integer",
        "other_bit": "my_store_priced::integer",
    }
    source = f"card WHERE seller_id = {seller}"

    def reads(expressions: dict[str, str], *, few: bool = False) -> Work:
        async def read() -> None:
            async with database.tenant(seller) as session:
                await read_integers(session, expressions, source, "id", few=few)

        return read

    async def as_rows() -> None:
        async with database.tenant(seller) as session:
            query = f"SELECT {', '.join(columns.values())} FROM {source}"
            await read_rows(session, query, dict.fromkeys(columns, pl.Int64))

    hashed = reads(columns)
    await compared(report, "read_integers", rounds, hashed, as_rows)
    await compared(report, "packed", rounds, hashed, reads(apart))
    await compared(report, "grouped_by_hash", rounds, hashed, reads(columns, few=True))


async def copies(report: Report, database: Database, seller: int, rounds: int) -> None:
    columns = "id, marketplace_id, set_name, product_name, title"
    query = f"SELECT {columns} FROM card WHERE seller_id = {seller}"
    kinds = dict.fromkeys(columns.split(", "), pl.String)
    async with database.tenant(seller) as session:
        frame = await read_rows(session, query, kinds)

    async def copied() -> None:
        async with database.tenant(seller) as session:
            await new_table(session, "t", frame, {})

    async def row_by_row() -> None:
        async with database.tenant(seller) as session:
            await new_table(session, "t", frame.clear(), {})
            statement = f"COPY t ({columns}) FROM STDIN"
            async with (await driver(session)).cursor().copy(statement) as copy:
                for row in frame.iter_rows():
                    await copy.write_row(row)

    async def read() -> None:
        async with database.tenant(seller) as session:
            await read_rows(session, query, kinds)

    async def in_parts() -> None:
        async with database.tenant(seller) as session:
            statement = f"COPY ({query}) TO STDOUT"
            async with (await driver(session)).cursor().copy(statement) as copy:
                async for _ in copy:
                    pass

    await compared(report, "new_table, for write_row", rounds, copied, row_by_row)
    await compared(report, "read_rows, for `async for`", rounds, read, in_parts)


async def order_reads(report: Report, database: Database, caller: Caller, rounds: int) -> None:
    async def customers() -> None:
        async with database.readings.of(caller.seller_id, 30) as reading:
            await customers_read.customers(reading, caller, Paging(1, 50))

    async def page() -> None:
        for _ in range(50):
            async with database.readings.of(caller.seller_id, 30) as reading:
                await find_orders(reading, caller, OrderFilter())

    async def planned_each_time() -> None:
        # A plain subclass is not recognized as `Planned`; its statement is read as text.
        with replaced(readings.Reading, "_together", _unprepared(readings.Reading._together)):
            await page()

    name = "grouped_by_sorting"
    await compared(report, name, rounds, customers, without(customers_read, name, customers))
    await compared(report, "prepared_text, 50 pages of orders", rounds, page, planned_each_time)


def _unprepared(together: Any) -> Any:
    async def each_time(self: Any, statements: Any, values: Any, last: bool) -> Any:
        plain = [getattr(one, "statement", one) for one in statements]
        return await together(self, plain, values, last)

    return each_time


async def order_writes(made: Ground, report: Report, database: Database, rounds: int) -> None:
    body = igzip.compress(orders.orders(orders.COUNT, 1), 2)

    async def applied() -> None:
        seller = await asyncio.to_thread(made.new_seller)
        await orders.applied(made, database, seller, [body])

    name = "planned_each_time"
    await compared(report, name, rounds, applied, without(sales_by_day, name, applied))
    await lots_of_orders(made, report, database, rounds)


async def lots_of_orders(made: Ground, report: Report, database: Database, rounds: int) -> None:
    """Orders and items that statistics know nothing of: an upload finds the cards of its orders."""
    seller = (await asyncio.to_thread(made.new_seller)).seller_id
    of_orders = {"seller": seller, "first": 1, "last": 10_000, "all": 10_000}
    with made.admin() as connection:
        connection.execute(
            read_orders.ORDERS, of_orders | {"days": 365, "waiting": 100, "buyers": 3_000}
        )
        connection.execute("SET session_replication_role = replica")
        connection.execute(read_orders.ITEMS, {"seller": seller, "after": 0})

    def finds(setting: str) -> Work:
        async def find() -> None:
            async with database.tenant(seller) as session:
                await session.execute(text(setting))
                values = {"seller": seller, "now": await session.scalar(text(WRITTEN))}
                await session.execute(text(orders_apply._SOLD.format(narrowed="")), values)

        return find

    by_hash, as_planned = finds(joined_by_hash()), finds(NOTHING)
    await compared(report, "joined_by_hash, 10,000 orders", rounds, by_hash, as_planned)


async def commits(report: Report, database: Database, seller: int, rounds: int) -> None:
    def writes(setting: str) -> Work:
        async def write() -> None:
            for _ in range(100):
                async with database.tenant(seller) as session:
                    await session.execute(text(setting))
                    await session.execute(
                        text(
                            "UPDATE sync_state SET requested_kind = requested_kind"
                            " WHERE seller_id = :s"
                        ),
                        {"s": seller},
                    )

        return write

    await compared(
        report,
        "committed_before_the_disk, 100 commits",
        rounds,
        writes(committed_before_the_disk()),
        writes(NOTHING),
    )


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Fences")
    with ground.ground(data, rows, catalogs=False) as made:
        seller = made.new_seller()
        with ground.service(made, workers=1):
            import_inventory.upload(made, seller, made.inventory.read_bytes())
        others = [made.new_seller().seller_id for _ in range(2)]
        search.set_the_scene(made, seller.seller_id, others)

        async def all_of_them(database: Database) -> None:
            for seed in (1, 2):
                body = igzip.compress(orders.orders(orders.COUNT, seed), 2)
                await orders.applied(made, database, seller, [body])
            with made.admin() as connection:
                connection.execute("VACUUM ANALYZE orders, order_tally")
            caller = await made.caller(database, seller.seller_id)
            await order_reads(report, database, caller, rounds)
            await integers(report, database, seller.seller_id, rounds)
            await copies(report, database, seller.seller_id, rounds)
            await commits(report, database, seller.seller_id, rounds)
            await order_writes(made, report, database, min(rounds, 3))

        made.in_database(all_of_them)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

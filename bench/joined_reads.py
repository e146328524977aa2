"""`python bench/joined_reads.py [--rounds 5]`: the read of a polling caller in four ways, one after
the other and 32 at once: as `database/hot_reads` joins prepared statements into one message; with
psycopg's pipeline mode; joined, but planned each time; and as a session would, in four round trips.

CPU of this process and of PostgreSQL for each read, the least of the rounds, and the median time.
"""

from __future__ import annotations

import asyncio
import statistics
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psycopg

import ground
from cardsync.access.caller import CALLER
from cardsync.platform.database.hot_reads import TOGETHER, PolledQuery, PolledReads
from cardsync.platform.database.session import Database
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.transaction_settings import of_seller
from ground import Ground, Report

READS = 960
SCOPE = "SELECT set_config('app.seller_id', $1, true)"


class Pipelined(PolledReads):
    """Sends each batch through the extended protocol: two prepared statements a read, one sync."""

    async def _rows(self, connection: Any, batch: list[Any]) -> list[Any]:
        cursors = []
        async with connection.pipeline():
            for asked in batch:
                scope = psycopg.AsyncRawCursor(connection)
                await scope.execute(SCOPE, [str(asked.values[0])], prepare=True)
                cursor = psycopg.AsyncRawCursor(connection)
                cursors.append(cursor)
                await cursor.execute(asked.query.sql, asked.values, prepare=True)
        return [await cursor.fetchone() for cursor in cursors]


class InSession(PolledReads):
    """Begins, sets the seller, reads and commits, each in a round trip of its own."""

    async def first_row(self, seller_id: int, query: PolledQuery, *ids: int) -> Any:
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(of_seller(seller_id).encode())
            cursor = psycopg.AsyncRawCursor(connection)
            await cursor.execute(query.sql.encode(), (seller_id, *ids), prepare=True)
            return await cursor.fetchone()


WAYS = {
    "joined, prepared": PolledReads,
    "pipeline": Pipelined,
    "joined, planned each time": partial(PolledReads, planned=False),
    "four round trips": InSession,
}


async def read(reads: PolledReads, seller_id: int, key_id: int, at_once: int) -> list[float]:
    times = []
    for _ in range(READS // at_once):
        started = perf_counter()
        rows = await asyncio.gather(
            *(reads.first_row(seller_id, CALLER, key_id) for _ in range(at_once))
        )
        times.append(perf_counter() - started)
        assert all(row is not None for row in rows)
    return times


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Polled reads, joined or in a pipeline")
    with ground.ground(data, rows, catalogs=False) as made:
        made.in_database(lambda database: _measured(made, database, report, rounds))
    return report


async def _measured(made: Ground, database: Database, report: Report, rounds: int) -> None:
    seller_id = (await asyncio.to_thread(made.new_seller)).seller_id
    with made.admin() as connection:
        [(key_id,)] = connection.execute(
            f"SELECT id FROM api_key WHERE seller_id = {seller_id}"
        ).fetchall()
    postmaster = made.postmaster()
    ways = {name: way(database.hot, Spread()) for name, way in WAYS.items()}
    for at_once in (1, TOGETHER):
        costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WAYS}
        for turn in range(rounds + 1):
            for name, reads in ways.items():
                spent, of_postgres = process_time(), ground.cpu_seconds(postmaster)
                times = await read(reads, seller_id, key_id, at_once)
                cost = (
                    (process_time() - spent) / READS * 1e6,
                    (ground.cpu_seconds(postmaster) - of_postgres) / READS * 1e6,
                    statistics.median(times) / at_once * 1e6,
                )
                if turn:
                    costs[name].append(cost)
        cpu = {}
        for name, each in costs.items():
            ours, theirs, waited = (min(values) for values in zip(*each, strict=True))
            cpu[name] = ours + theirs
            report.note(
                f"{at_once:>2} at once, {name:<26} {ours:4.0f} µs of ours, {theirs:4.0f} µs of"
                f" PostgreSQL, {waited:5.0f} µs until it is there"
            )
        [joined, *others] = WAYS
        for name in others:
            what = f"{at_once} at once: CPU of {name} / {joined}"
            report.figure(what, cpu[name] / cpu[joined])


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

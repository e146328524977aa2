"""`python bench/orders.py [--rounds 9]`: 50,000 orders. The 202 through the real web process
against inflating and orjson.loads alone; applying them, first as new and then again, from the
stored bytes to the commit, in a process that has done it before; what the web process's memory
does while ten such uploads come at once. `--budgeted 1` measures the applying alone.

Applying is printed as a ratio of three floors, each a COPY of the same rows into an unlogged table
without a key or a check:
- of the values as orjson.loads gives them, a `write_row` each as psycopg does it: the budget's
floor;
- with inflating and orjson.loads before it: all the work that any program does, as the floors of
imports are counted;
- of bytes that were encoded before: stricter than anybody meant, because no request has such
bytes. What no store of orders can do without is timed beside them: reading the bytes, and COPY into
a logged table with its two keys alone.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import orjson
import psutil
import psycopg
from isal import igzip

import ground
from cardsync.platform import clock
from cardsync.platform.database.copy import encode
from cardsync.platform.database.session import Database
from cardsync.platform.logs import setup_logging
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from cardsync.platform.work.models import Upload
from cardsync.platform.work.streams import private_key
from cardsync.sales.orders import ingest, rows
from cardsync.sales.orders.sales_sums import SALES_SUMS
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import MB, Client, Ground, Report, spread

COUNT = 50_000
STATUSES = (
    "Completed - Paid",
    "Shipped - In Transit",
    "Ready to Ship",
    "Processing",
    "Canceled",
    "Pending",
)


def orders(count: int, seed: int) -> bytes:
    """Orders as an agent uploads them, all fields in every row; placeholder names.

    Most are of a few dollars, as in life.
    """
    chance = random.Random(seed)
    prefix = f"{chance.getrandbits(32):08X}"

    def each() -> Iterator[dict[str, object]]:
        for number in range(count):
            product, shipping = (
                25 + min(int(chance.expovariate(1 / 1500)), 100_000),
                chance.choice((0, 131, 131, 599)),
            )
            yield {
                "order_number": f"{prefix}-{chance.getrandbits(24):06X}-{number:05X}",
                "buyer_name": f"Test Buyer {chance.randrange(count)}",
                "order_date": f"{chance.randrange(1, 13):02}/{chance.randrange(1, 29):02}/{chance.randrange(2021, 2027)}",
                "status": chance.choice(STATUSES),
                "product_amt": product / 100,
                "shipping_amt": shipping / 100,
                "total_amt": (product + shipping) / 100,
            }

    return orjson.dumps(list(each()))


def accepting(made: Ground, report: Report, rounds: int) -> None:
    plain = orders(COUNT, 1)
    body = igzip.compress(plain, 2)
    report.note(f"{COUNT:,} orders: {len(plain) / MB:.1f} MB, {len(body) / MB:.1f} MB gzip")
    seller = made.new_seller()
    with ground.service(made, workers=0) as children:
        assert children[0].process is not None
        web = psutil.Process(children[0].process.pid)
        client = Client(made.settings.bind, seller.api_key)
        client.request("POST", "/api/v1/heartbeat", b"{}", Content_Type="application/json")
        idle = ground.memory(web)
        times: dict[str, list[float]] = {"202": [], "floor": []}
        for turn in range(rounds + 1):
            took = sent(client, body), ground.seconds(lambda: orjson.loads(igzip.decompress(body)))
            if turn:
                times["202"].append(took[0])
                times["floor"].append(took[1])
        with ThreadPoolExecutor(10) as pool:
            clients = [Client(made.settings.bind, made.new_seller().api_key) for _ in range(10)]
            list(pool.map(lambda one: sent(one, body), clients))
        grown = ground.peak_memory(web) - idle
    for name, values in times.items():
        report.note(f"{name:<6} {spread(values, 'ms', 1000)}")
    report.note(f"web idle {idle / MB:.0f} MB, peak +{grown / MB:.0f} MB with ten uploads at once")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure(
        "202 of 50,000 orders / (inflate + orjson.loads)", middle["202"] / middle["floor"]
    )
    report.figure("web memory over idle, ten uploads of 50,000 orders", grown / MB, "MB")


def sent(client: Client, body: bytes) -> float:
    started = perf_counter()
    status, _, answer = client.request(
        "POST", "/api/v1/orders", body, Content_Type="application/gzip"
    )
    took = perf_counter() - started
    assert status == 202, answer
    return took


FLOORS = {
    "values": "COPY of the rows' values",
    "whole": "(inflate + orjson.loads + COPY)",
    "encoded": "COPY of encoded bytes, the strictest floor",
}


def applying(made: Ground, report: Report, rounds: int) -> None:
    times: dict[str, list[float]] = {
        name: []
        for name in (
            *FLOORS,
            "keys",
            "read",
            "new",
            "with its sums",
            "again",
            "again, with sums",
        )
    }

    async def by_one_worker(database: Database) -> int:
        """How many rows the second time wrote.

        One process and its connections for all rounds, the first of which warms them.
        """
        written = 0
        for turn in range(rounds + 1):
            plain = orders(COUNT, turn + 100)
            body = igzip.compress(plain, 2)
            seller = await asyncio.to_thread(made.new_seller)
            made.settle()
            took = [
                *floors(made, plain, body),
                *await applied(made, database, seller, [body, body]),
            ]
            if turn:
                for name, value in zip(times, took, strict=True):
                    times[name].append(value)
            written += reported(made, seller) - COUNT
        return written

    written = made.in_database(by_one_worker)
    for name, values in times.items():
        report.note(f"{name:<16} {spread(values, 'ms', 1000)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.note(
        "read + keys, what no store of orders can do without:"
        f" {(middle['read'] + middle['keys']) / middle['values']:.1f} x"
    )
    report.figure(
        f"applying 50,000 new orders / {FLOORS['values']}", middle["new"] / middle["values"]
    )
    report.figure("applying 50,000 new orders", middle["new"], "s")
    sums = middle["with its sums"] / middle["new"]
    report.note(f"the job with its sums of days and customers / applying them: {sums:.1f} x")
    for name in ("whole", "encoded"):
        report.note(
            f"applying 50,000 new orders / {FLOORS[name]}: {middle['new'] / middle[name]:.1f} x"
        )
    report.figure("the same again / applying them new", middle["again"] / middle["new"])
    report.figure("rows written by the same again", written, "rows")


def floors(made: Ground, plain: bytes, body: bytes) -> list[float]:
    return [
        by_values(made, plain),
        by_values(made, body, gzip=True),
        encoded(made, plain),
        encoded(made, plain, keys=True),
        ground.seconds(lambda: rows.read(igzip.decompress(body), "orders")),
    ]


def reported(made: Ground, seller: CreatedSeller) -> int:
    with made.admin() as connection:
        row = connection.execute(
            "SELECT sum((report->>'written')::int) FROM upload WHERE seller_id = %s",
            [seller.seller_id],
        ).fetchone()
        assert row is not None
        return int(row[0])


TYPES = {
    "order_number": "text", "buyer_name": "text", "order_date": "date", "status": "text",
    "product_amt": "numeric", "shipping_amt": "numeric", "total_amt": "numeric",
}  # fmt: skip


@contextmanager
def floor_table(made: Ground, *, keys: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """An unlogged table of nothing but the typed columns; or a logged one that has its two keys."""
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    if keys:
        columns += ", seller_id bigint DEFAULT 1, id bigint GENERATED ALWAYS AS IDENTITY"
        columns += ", PRIMARY KEY (seller_id, id), UNIQUE (seller_id, order_number)"
    with made.admin() as connection:
        connection.execute("DROP TABLE IF EXISTS floor_orders")
        connection.execute(f"CREATE {'' if keys else 'UNLOGGED'} TABLE floor_orders ({columns})")
        yield connection


def by_values(made: Ground, body: bytes, *, gzip: bool = False) -> float:
    """COPY of the values as they stand in the JSON, a `write_row` each; of a body that is still
    gzip everything that comes before too.
    """
    given = [] if gzip else [tuple(row.values()) for row in orjson.loads(body)]
    with floor_table(made) as connection:
        started = perf_counter()
        if gzip:
            given = [tuple(row.values()) for row in orjson.loads(igzip.decompress(body))]
        with connection.cursor().copy(f"COPY floor_orders ({', '.join(TYPES)}) FROM STDIN") as copy:
            for row in given:
                copy.write_row(row)
        return perf_counter() - started


def encoded(made: Ground, plain: bytes, *, keys: bool = False) -> float:
    """COPY of bytes that were encoded before."""
    data = encode(rows.read(plain, "orders").frame.drop("row"))
    statement = f"COPY floor_orders ({', '.join(TYPES)}) FROM STDIN"
    with floor_table(made, keys=keys) as connection:
        started = perf_counter()
        with connection.cursor().copy(statement) as copy:
            for start in range(0, len(data), 1 << 18):
                copy.write(data[start : start + (1 << 18)])
        return perf_counter() - started


async def applied(
    made: Ground, database: Database, seller: CreatedSeller, bodies: list[bytes]
) -> list[float]:
    """Seconds until each upload is committed, and until the sums of days and customers are kept;
    without the queue's.
    """
    work, times = Work(made.settings, database, open_store(made.settings)), []
    for body in bodies:
        key = private_key(seller.seller_id, "json")
        with work.store.spool() as (path, file):
            file.write(body)
            file.flush()
            await work.store.write(key, path)
        async with database.tenant(seller.seller_id) as session:
            now = clock.now()
            session.add(
                Upload(
                    seller_id=seller.seller_id,
                    stream="orders",
                    kind="orders",
                    storage_key=key,
                    exported_at=now,
                    received_at=now,
                )
            )
        started = perf_counter()
        stored = asyncio.create_task(
            asyncio.to_thread(stored_at, made, seller, len(times) // 2 + 1)
        )
        assert await ingest.work_off_one(work, seller.seller_id)
        while await SALES_SUMS.work_off(work, seller.seller_id):
            pass
        whole = perf_counter() - started
        times += [await stored - started, whole]
    return times


def stored_at(made: Ground, seller: CreatedSeller, uploads: int) -> float:
    """The moment at which so many uploads of the seller are committed."""
    done = "SELECT count(*) FROM upload WHERE seller_id = %s AND state = 'done'"
    with made.admin() as connection:
        while True:
            row = connection.execute(done, [seller.seller_id]).fetchone()
            if row is not None and row[0] >= uploads:
                return perf_counter()
            connection.commit()
            sleep(0.005)


def measure(data: Path, rows: int, rounds: int, budgeted: int = 0) -> Report:
    report = Report("Order-data uploads")
    setup_logging("warning", "json")
    with ground.ground(data, rows, catalogs=False) as made:
        if not budgeted:
            accepting(made, report, rounds)
        applying(made, report, rounds)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9, budgeted=0)

"""`python bench/orders.py [--rounds 9]`: 50,000 orders. The 202 through the real web process against inflating and orjson.loads alone;
applying them, first as new and then again, from the stored bytes to the commit; what the web process's memory does while ten such
uploads come at once.

The floor of applying is the COPY alone: typed rows, encoded before, into an unlogged table without a key. What no store of orders can do
without is timed beside it: reading the bytes, and the same COPY into a logged table that has its two keys and nothing else.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import orjson
import psutil
import psycopg
from isal import igzip

import ground
from cardsync import clock
from cardsync.accepted import private_key
from cardsync.accounts.sellers import CreatedSeller
from cardsync.db import Database, encode
from cardsync.inventory.models import Upload
from cardsync.jobs import Work
from cardsync.observe import setup_logging
from cardsync.orders import ingest, rows
from cardsync.storage import open_store
from ground import MB, Client, Ground, Report, spread

COUNT = 50_000
STATUSES = ("Completed - Paid", "Shipped - In Transit", "Ready to Ship", "Processing", "Canceled", "Pending")


def orders(count: int, seed: int) -> bytes:
    """Orders as an agent uploads them, all fields in every row; placeholder names. Most are of a few dollars, as in life."""
    chance = random.Random(seed)
    prefix = f"{chance.getrandbits(32):08X}"

    def each() -> Iterator[dict[str, object]]:
        for number in range(count):
            product, shipping = 25 + min(int(chance.expovariate(1 / 1500)), 100_000), chance.choice((0, 131, 131, 599))
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
    report.at_most("202 of 50,000 orders / (inflate + orjson.loads)", middle["202"] / middle["floor"], 1.3)
    report.at_most("web memory over idle, ten uploads of 50,000 orders", grown / MB, 150, "MB")


def sent(client: Client, body: bytes) -> float:
    started = perf_counter()
    status, _, answer = client.request("POST", "/api/v1/orders", body, Content_Type="application/gzip")
    took = perf_counter() - started
    assert status == 202, answer
    return took


def applying(made: Ground, report: Report, rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in ("floor", "keys", "read", "new", "again")}
    written = 0
    for turn in range(rounds + 1):
        plain = orders(COUNT, turn + 100)
        body = igzip.compress(plain, 2)
        seller = made.new_seller()
        made.settle()
        took = [copied(made, plain), copied(made, plain, keys=True), seconds_to_read(body)]
        took += made.in_database(lambda database: applied(made, database, seller, [body, body]))  # noqa: B023
        if turn:
            for name, value in zip(times, took, strict=True):
                times[name].append(value)
        with made.admin() as connection:
            row = connection.execute(
                "SELECT sum((report->>'written')::int) FROM upload WHERE seller_id = %s", [seller.seller_id]
            ).fetchone()
            assert row is not None
            written += row[0] - COUNT
    for name, values in times.items():
        report.note(f"{name:<6} {spread(values, 'ms', 1000)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    least = (middle["read"] + middle["keys"]) / middle["floor"]
    report.note(f"read + keys, what no store of orders can do without: {least:.1f} x the floor")
    report.at_most("applying 50,000 new orders / COPY into an unlogged table", middle["new"] / middle["floor"], 6)
    report.at_most("the same again / applying them new", middle["again"] / middle["new"], 0.5)
    report.at_most("rows written by the same again", written, 0, "rows")


def seconds_to_read(body: bytes) -> float:
    return ground.seconds(lambda: ingest._read(body, "orders"))


def copied(made: Ground, plain: bytes, *, keys: bool = False) -> float:
    """COPY of the typed rows into an unlogged table, encoded before; or into a logged one with its keys."""
    read = rows.read(plain, "orders")
    data = encode(read.frame.drop("row"))
    types = ["text", "text", "date", "text", "numeric", "numeric", "numeric"]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(read.frame.columns[1:], types, strict=True))
    with made.admin() as connection:
        connection.execute("DROP TABLE IF EXISTS floor_orders")
        if keys:
            columns += ", seller_id bigint DEFAULT 1, id bigint GENERATED ALWAYS AS IDENTITY"
            columns += ", PRIMARY KEY (seller_id, id), UNIQUE (seller_id, order_number)"
        connection.execute(f"CREATE {'' if keys else 'UNLOGGED'} TABLE floor_orders ({columns})")
        return ground.seconds(lambda: _copy(connection, data, read.frame.columns[1:]))


def _copy(connection: psycopg.Connection[object], data: memoryview, columns: list[str]) -> None:
    statement = f"COPY floor_orders ({', '.join(columns)}) FROM STDIN WITH (FORMAT csv, NULL '\\N')"
    with connection.cursor().copy(statement) as copy:
        for start in range(0, len(data), 1 << 18):
            copy.write(data[start : start + (1 << 18)])


async def applied(made: Ground, database: Database, seller: CreatedSeller, bodies: list[bytes]) -> list[float]:
    """Seconds of each upload's job, without the queue's."""
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
        assert await ingest.work_off_one(work, seller.seller_id) == "done"
        times.append(perf_counter() - started)
    return times


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Order-data uploads")
    setup_logging("warning", "json")
    with ground.ground(data, rows, catalogs=False) as made:
        accepting(made, report, rounds)
        applying(made, report, rounds)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9)

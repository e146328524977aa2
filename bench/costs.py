"""`python bench/costs.py [--items 1000000] [--rounds 9]`: the cost of a seller's order items from
lots, the first time and after a day, against one window query over the same items; and the sales
with profit over HTTP.

The window query is the running sum of each card's items by day, which is the least that any way to
count lots through has to do. A day is a thousandth of the orders: its items are put back as
though they had just come.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from pathlib import Path
from time import perf_counter

import ground
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import mark
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from cardsync.sales.lots.settle_uses import LOTS
from cardsync.sales.orders.sales_sums import SALES_SUMS
from ground import Ground, Reader, Report, spread
from read_orders import get

CARDS = 100_000
AN_ORDER = 2
ORDERS = """
INSERT INTO orders (seller_id, order_number, order_date, status, product_amt, shipping_amt,
                    total_amt, refund_amt)
SELECT %(seller)s, 'O-' || n, DATE '2024-01-01' + (n * 700 / %(all)s), 'Completed', 6, 1.27, 7.27,
       CASE WHEN n %% 50 = 1 THEN 7.27 END
  FROM generate_series(1, %(all)s::int) n
"""
ITEMS = """
INSERT INTO order_item (seller_id, order_id, sku_id, product_line, quantity, unit_price)
SELECT o.seller_id, o.id, 1 + (abs(hashint8(o.id * 7 + k)) %% %(cards)s), 'magic', 1 + k, 2
  FROM orders o CROSS JOIN generate_series(0, %(each)s - 1) k WHERE o.seller_id = %(seller)s
ON CONFLICT DO NOTHING
"""
LOTS_OF_CARDS = """
INSERT INTO lot (seller_id, marketplace_id, quantity, remaining, cost, bought_on, source)
SELECT %(seller)s, card, 8, 8, round((1 + card %% 100) / 100.0, 2),
       DATE '2023-12-01' + k * 200, 'file'
  FROM generate_series(1, %(cards)s::int) card CROSS JOIN generate_series(0, 3) k
"""
STALE = """
INSERT INTO lot_stale (seller_id, marketplace_id)
SELECT DISTINCT seller_id, sku_id FROM order_item
 WHERE seller_id = %(seller)s AND order_id > %(after)s
"""
WINDOW = """
SELECT count(*), max(until) FROM (
    SELECT i.id, sum(i.quantity) OVER (PARTITION BY i.sku_id ORDER BY o.order_date, i.id) AS until
      FROM order_item i JOIN orders o ON o.seller_id = %(seller)s AND o.id = i.order_id
     WHERE i.seller_id = %(seller)s) counted
"""

# The first time writes at least the copies that each item took and those that each lot has left.
ROOM = (
    "CREATE TABLE written (LIKE lot_use INCLUDING ALL)",
    "CREATE TABLE counted (LIKE lot INCLUDING ALL EXCLUDING IDENTITY)",
    "INSERT INTO counted SELECT * FROM lot",
    "UPDATE counted SET remaining = quantity",
    "VACUUM FULL ANALYZE counted",
)
WRITTEN = (
    "INSERT INTO written SELECT * FROM lot_use",
    """
UPDATE counted SET remaining = counted.remaining - u.taken
  FROM (SELECT lot_id, sum(taken) AS taken FROM written GROUP BY 1) u WHERE counted.id = u.lot_id
""",
)


def writing(made: Ground) -> float:
    """Return the seconds of writing what the first time leaves, when it is known already."""
    with made.admin() as connection:
        for statement in ROOM:
            connection.execute(statement)
        started = perf_counter()
        for statement in WRITTEN:
            connection.execute(statement)
        took = perf_counter() - started
        connection.execute("DROP TABLE written, counted")
    return took


def fill(made: Ground, seller: int, items: int) -> None:
    values = {"seller": seller, "all": items // AN_ORDER, "cards": CARDS, "each": AN_ORDER}
    with made.admin() as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in (ORDERS, ITEMS, LOTS_OF_CARDS):
            connection.execute(statement, values)
        connection.execute(STALE, values | {"after": 0})
        connection.execute(
            "INSERT INTO sales_stale (seller_id, ordered)"
            " SELECT DISTINCT seller_id, order_date FROM orders WHERE seller_id = %s",
            (seller,),
        )
        connection.execute("VACUUM ANALYZE orders, order_item, lot, lot_use, lot_stale")
    made.settle()


def settled(settings: Settings, seller: int) -> Callable[[Database], Awaitable[list[float]]]:
    """Work off what is out of date; return the seconds of the lots and of the sums."""

    async def work_off(database: Database) -> list[float]:
        work = Work(settings, database, open_store(settings))
        took = []
        for kept in (LOTS, SALES_SUMS):
            async with database.tenant(seller) as session:
                await mark(session, seller, kept.figure)
            started = perf_counter()
            while await kept.work_off(work, seller):
                pass
            took.append(perf_counter() - started)
        return took

    return work_off


def measure(data: Path, rows: int, rounds: int, items: int) -> Report:
    report = Report("Costs of order items")
    with ground.ground(data, rows, catalogs=False) as made:
        key = made.new_seller()
        seller = key.seller_id
        fill(made, seller, items)
        windows = []
        with made.admin() as connection:
            for _ in range(3):
                started = perf_counter()
                connection.execute(WINDOW, {"seller": seller}).fetchall()
                windows.append(perf_counter() - started)
        window = statistics.median(windows)
        report.note(f"one window query over {items:,} items: {spread(windows)}")
        first, sums = made.in_database(settled(made.settings, seller))
        report.note(f"first time: {first:.1f} s; the sums of sales with profit: {sums:.1f} s")
        report.figure("cost of all items, first time / one window query", first / window)
        floor = writing(made)
        report.note(f"writing its rows alone: {floor:.1f} s, which it takes {first / floor:.1f} x")
        with made.admin() as connection:
            newest = connection.execute(
                "SELECT max(id) FROM orders WHERE seller_id = %s", (seller,)
            ).fetchone()
            assert newest is not None
            after = newest[0] - items // AN_ORDER // 1_000
            found = connection.execute(
                "DELETE FROM lot_use u USING order_item i WHERE u.seller_id = %s"
                " AND i.seller_id = u.seller_id AND i.id = u.item_id AND i.order_id > %s",
                (seller, after),
            )
            report.note(f"a day: {found.rowcount:,} items")
            connection.execute(STALE, {"seller": seller, "after": after})
        again, _ = made.in_database(settled(made.settings, seller))
        report.note(f"after a day: {again:.2f} s")
        report.figure("after a day / first time", again / first)
        with ground.service(made, workers=0):
            reader = Reader(made.settings.bind, key.api_key)
            until = date(2025, 11, 30)
            for by, days in (("day", 30), ("month", 365), ("game", 90)):
                span = {"from": until - timedelta(days=days), "to": until, "by": by}
                took = [get(reader, "/api/sales/summary", **span)[0] for _ in range(rounds + 1)][1:]
                report.note(f"sales by {by} with profit, {days} days: {spread(took, 'ms', 1000)}")
                report.figure(
                    f"sales with profit by {by}, p50", statistics.median(took) * 1000, "ms"
                )
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9, items=1_000_000)

"""`python bench/read_orders.py [--orders 1000000] [--rounds 3]`: GET /api/orders over HTTP, 50 a
page with items, of one seller with so many orders among 20 others.

The first 100 pages, exact total and status_counts included, against the bare indexed SELECT of
the same 50 rows; searches, combinations and deep pages against the best SQL that we could write
by hand for the same answer, both ways tried for each: the page's orders, its items (as many of
each as are shown), the pull sessions and the counts, as Python values. That has no HTTP around
it, ours has.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import psycopg

import ground
from cardsync.platform.database.urls import libpq_url
from cardsync.sales.limits import ITEMS_PER_ORDER
from cardsync.sales.orders.pull_reads import RECENT
from cardsync.sales.orders.pullable import IN_OPEN_SESSION
from cardsync.sales.orders.schemas import ORDER_COLUMNS, ItemRow
from ground import Ground, Reader, Report, spread

OTHERS = 20
OTHERS_ORDERS = 10_000
SIX_YEARS = 2_190
WAITING_DAYS = 11
CHUNK = 50_000
PAGES = 100
PAGE = 50

# Nearly in the order of their days; what is seldom in life is seldom here. Orders of the last days
# wait to be shipped.
ORDERS = """
INSERT INTO orders (seller_id, order_number, buyer_name, order_date, status, product_amt,
    shipping_amt, total_amt, refund_amt,
                    refund_type, shipping_method, shipping_type, items_total, items_quantity,
                        product_lines, feedback_rating)
SELECT %(seller)s, upper(substr(md5(n::text), 1, 8)) || '-' || lpad(to_hex(n), 6, '0'),
       'Customer ' || (abs(hashint4(n)) %% %(buyers)s) || (CASE WHEN n %% 50 = 0 THEN ' Müller'
           ELSE ' Smith' END),
       DATE '2026-10-31' - %(days)s + ((n::bigint * %(days)s) / %(all)s)::int
           - (abs(hashint4(n + 7)) %% 20),
       CASE WHEN n %% 40 = 0 THEN 'Canceled' WHEN n > %(all)s - %(waiting)s THEN 'Ready to Ship'
       WHEN n %% 11 = 0 THEN 'Shipped - In Transit'
            ELSE 'Completed' END,
       round((n %% 9000) / 100.0, 2), 1.27, round((n %% 9000) / 100.0, 2) + 1.27,
       CASE WHEN n %% 50 = 1 THEN round((n %% 9000) / 100.0, 2) END,
       CASE WHEN n %% 50 = 1 THEN 'full' END, 'Standard', CASE WHEN n %% 100 = 3 THEN 'expedited'
       WHEN n %% 4 = 0 THEN 'tracked' ELSE 'pwe' END,
       1 + n %% 4, 1 + n %% 4, CASE WHEN n %% 5000 = 0 THEN ARRAY['lorcana']
       WHEN n %% 3 = 0 THEN ARRAY['pokemon'] ELSE ARRAY['magic'] END,
       CASE WHEN n %% 3 > 0 THEN 5 END
  FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""
ITEMS = """
INSERT INTO order_item (seller_id, order_id, sku_id, product_name, product_line, condition,
    set_name, rarity, quantity, unit_price)
SELECT seller_id, id, id * 10 + n, 'Alacrian Jaguar ' || n, product_lines[1], 'Near Mint',
    'Aetherdrift', 'C', 1, 1.2700
  FROM orders CROSS JOIN LATERAL generate_series(1, items_total) AS n
  WHERE seller_id = %(seller)s AND id > %(after)s
"""
COLUMNS = ORDER_COLUMNS
SESSIONS = RECENT.replace(":seller", "%(seller)s")
NEWEST = "orders.order_date DESC NULLS LAST, orders.id DESC"


@dataclass(frozen=True)
class Case:
    """A query over HTTP, and the same as a condition for SQL by hand."""

    name: str
    query: dict[str, Any]
    where: str = "true"
    of_status: str = "true"
    order: str = NEWEST
    key: str = "orders.order_date"
    # The counts that the tally has; empty: the orders must be counted.
    tallied: str = ""
    offset: int = 0


FIRST_PAGES = (
    Case("without filter", {}),
    Case("status", {"status": "Completed"}, of_status="orders.status_group = 'Completed'"),
    Case("rare status", {"status": "Ready to Ship"}, of_status=(
        "orders.status_group = 'Ready to Ship'"
    )),
    Case("date", {"date_from": "2022-02-10", "date_to": "2025-08-20"},
         "orders.order_date BETWEEN '2022-02-10' AND '2025-08-20'"),
    Case("refund", {"refund": "true"}, "orders.refund_amt IS NOT NULL"),
    Case("shipping_type", {"shipping_type": "expedited"}, "orders.shipping_type = 'expedited'"),
    Case("usual shipping", {"shipping_type": "pwe"}, "orders.shipping_type = 'pwe'"),
)  # fmt: skip


def like(word: str) -> str:
    return f"orders.search_text LIKE '%%{word}%%'"


EVER = (
    "SELECT status_group, sum(orders) FROM order_tally"
    " WHERE seller_id = %(seller)s AND period = 'ever' {} GROUP BY 1"
)


def others(orders: int) -> tuple[Case, ...]:
    deep = orders // PAGE * 3 // 4
    return (
        Case("search, one finds it", {"search": "-0001f4"}, like("-0001f4")),
        Case("search, nobody", {"search": "nobody here"}, like("nobody here")),
        Case("search, one in fifty", {"search": "MÜLLER"}, like("müller")),
        Case("search, everyone", {"search": "smith"}, like("smith")),
        Case("search, page 300", {"search": "müller", "page": 300}, like("müller"),
             offset=299 * PAGE),
        Case("product_line, most", {"product_line": "magic"},
             "'magic' = ANY (orders.product_lines)"),
        Case("product_line, few", {"product_line": "lorcana"},
             "'lorcana' = ANY (orders.product_lines)"),
        Case("unfeedbacked", {"unfeedbacked": "true"}, "orders.feedback_rating IS NULL"),
        Case("search, status, dates",
             {"search": "müller", "status": "Completed", "date_from": "2024-01-01",
              "date_to": "2024-12-31"},
             f"{like('müller')} AND orders.order_date BETWEEN '2024-01-01' AND '2024-12-31'",
             "orders.status_group = 'Completed'"),
        Case("search, refund, tracked",
             {"search": "1", "refund": "true", "shipping_type": "tracked"},
             f"{like('1')} AND orders.refund_amt IS NOT NULL AND orders.shipping_type = 'tracked'"),
        Case("pull_session=none", {"pull_session": "none"},
             "orders.status_group = 'Ready to Ship' AND orders.refund_amt IS NULL"
             " AND orders.shipped_marked_at IS NULL"
             f" AND orders.pull_dismissed_at IS NULL AND NOT {IN_OPEN_SESSION}"),
        Case("two statuses", {"status[]": ["Cancelled", "Ready to Ship"]}, of_status=(
            "orders.status_group IN ('Cancelled', 'Ready to Ship')"
        ),
             tallied=EVER.format("")),
        Case("status and shipping_type", {"status": "Cancelled", "shipping_type": "expedited"},
             "orders.shipping_type = 'expedited'",
             "orders.status_group = 'Cancelled'",
             tallied=EVER.format("AND shipping_type = 'expedited'")),
        Case("by total", {"sort": "total"}, order=(
            "orders.total_amt DESC NULLS LAST, orders.id DESC"
        ), key="orders.total_amt",
             tallied=EVER.format("")),
        Case("deep page", {"page": deep}, tallied=EVER.format(""), offset=(deep - 1) * PAGE),
        Case("deep page by total", {"page": deep, "sort": "total"}, order=(
            "orders.total_amt DESC NULLS LAST, orders.id DESC"
        ),
             key="orders.total_amt", tallied=EVER.format(""), offset=(deep - 1) * PAGE),
    )  # fmt: skip


@dataclass
class Hand:
    """SQL by hand on a connection as the application makes it, in the seller's scope."""

    connection: psycopg.Connection[Any]
    seller: int
    values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection.execute(f"SET app.seller_id = '{self.seller}'")
        self.connection.execute("SET plan_cache_mode = force_custom_plan")
        self.values = {"seller": self.seller}

    def rows(self, query: str, **values: Any) -> list[Any]:
        return self.connection.execute(query, {**self.values, **values}).fetchall()

    def bare(self, case: Case, offset: int) -> list[Any]:
        where = f"orders.seller_id = %(seller)s AND {case.where} AND {case.of_status}"
        return self.rows(
            f"SELECT {COLUMNS} FROM orders WHERE {where} ORDER BY {NEWEST}"
            f" LIMIT {PAGE} OFFSET {offset}"
        )

    def shown(self, ids: list[int]) -> None:
        """The page's orders and their items, and the newest pull sessions."""
        self.rows(
            f"SELECT {COLUMNS} FROM orders WHERE seller_id = %(seller)s AND id = ANY (%(ids)s)",
            ids=ids,
        )
        columns = ", ".join(f"item.{name}" for name in ItemRow._fields)
        query = f"""
            SELECT {columns} FROM unnest(%(ids)s::bigint[]) AS page (id) CROSS JOIN LATERAL (
                SELECT * FROM order_item AS item WHERE seller_id = %(seller)s AND order_id = page.id
                ORDER BY item.id LIMIT {ITEMS_PER_ORDER}
            ) AS item
        """
        self.rows(query, ids=ids)
        self.rows(SESSIONS)

    def apart(self, case: Case) -> dict[str, int]:
        """The page in the order of an index, and the counts by another statement."""
        where = f"orders.seller_id = %(seller)s AND {case.where}"
        page = (
            f"SELECT orders.id FROM orders WHERE {where} AND {case.of_status}"
            f" ORDER BY {case.order} LIMIT {PAGE} OFFSET {case.offset}"
        )
        ids = [id for (id,) in self.rows(page)]
        counts = dict(
            self.rows(
                case.tallied
                or f"SELECT status_group, count(*) FROM orders WHERE {where} GROUP BY 1"
            )
        )
        self.shown(ids)
        return counts

    def together(self, case: Case) -> dict[str, int]:
        """Page and counts from one pass."""
        where = f"orders.seller_id = %(seller)s AND {case.where}"
        query = f"""
            WITH orders AS MATERIALIZED (SELECT orders.id, orders.status_group, {case.key}
                FROM orders WHERE {where})
            SELECT ARRAY(SELECT orders.id FROM orders WHERE {case.of_status} ORDER BY {case.order}
                LIMIT {PAGE} OFFSET {case.offset}),
                   (SELECT json_object_agg(status_group, n)
                       FROM (SELECT status_group, count(*) AS n FROM orders GROUP BY 1) AS c)
        """
        [(ids, counts)] = self.rows(query)
        self.shown(ids)
        return counts or {}


def fill(made: Ground, seller: int, orders: int, days: int = SIX_YEARS) -> None:
    """Orders of so many days, with others' orders among them. A second shop on the ground has the
    others of the first.
    """
    with made.admin() as connection:
        alone = connection.execute("SELECT FROM orders LIMIT 1").fetchone() is None
        neighbours = [made.new_seller().seller_id for _ in range(OTHERS if alone else 0)]
        everybody = [(seller, orders)] + [(one, min(orders, OTHERS_ORDERS)) for one in neighbours]
        rounds = -(-orders // CHUNK)
        for turn in range(rounds):
            for one, number in everybody:
                first, last = number * turn // rounds + 1, number * (turn + 1) // rounds
                values = {
                    "seller": one,
                    "first": first,
                    "last": last,
                    "all": number,
                    "days": days,
                    "waiting": number * WAITING_DAYS // days,
                    "buyers": max(1, number // 3),
                }
                connection.execute(ORDERS, values)
        # The checks of an upload hold by the way the items are made.
        connection.execute("SET session_replication_role = replica")
        for one, _ in everybody:
            connection.execute(ITEMS, {"seller": one, "after": 0})
        connection.execute("VACUUM ANALYZE orders, order_item, order_tally")
    made.settle()


def get(reader: Reader, path: str, **query: Any) -> tuple[float, dict[str, Any]]:
    asked = f"{path}?{urlencode(query, doseq=True)}"
    started = perf_counter()
    status, body = reader.get(asked)
    took = perf_counter() - started
    assert status == 200, body[:300]
    return took, json.loads(body)


def first_pages(report: Report, reader: Reader, hand: Hand, orders: int, rounds: int) -> None:
    for case in FIRST_PAGES:
        ours, bare = [], []
        pages = (
            range(1, min(PAGES, orders // 200 // PAGE or 1) + 1)
            if case.name == "rare status"
            else range(1, PAGES + 1)
        )
        for turn in range(rounds + 1):
            for page in pages:
                started = perf_counter()
                rows = hand.bare(case, (page - 1) * PAGE)
                plain = perf_counter() - started
                took, told = get(reader, "/api/orders", page=page, **case.query)
                assert [row[0] for row in rows] == [order["id"] for order in told["orders"]], (
                    case.name,
                    page,
                )
                if turn:
                    ours.append(took)
                    bare.append(plain)
        assert sum(hand.apart(case).values()) == sum(told["status_counts"].values())
        report.note(
            f"{case.name:<15} ours {spread(ours, 'ms', 1000)}; bare {spread(bare, 'ms', 1000)}"
        )
        ratio = statistics.median(ours) / statistics.median(bare)
        report.figure(f"first {len(pages)} pages, {case.name} / bare SELECT", ratio)


def other_reads(report: Report, reader: Reader, hand: Hand, orders: int, rounds: int) -> None:
    empty = [get(reader, "/api/orders", date_from="9999-01-01")[0] for _ in range(30)]
    report.note(f"an answer without an order, most of it HTTP's: {spread(empty, 'ms', 1000)}")
    for case in others(orders):
        times: dict[str, list[float]] = {"ours": [], "apart": [], "together": []}
        for _ in range(rounds + 1):
            took, told = get(reader, "/api/orders", **case.query)
            times["ours"].append(took)
            for name, way in (("apart", hand.apart), ("together", hand.together)):
                started = perf_counter()
                counts = way(case)
                times[name].append(perf_counter() - started)
                assert {status: n for status, n in counts.items() if n} == told["status_counts"], (
                    case.name,
                    name,
                )
        middle = {name: statistics.median(values[1:]) for name, values in times.items()}
        told_times = ", ".join(f"{name} {value * 1000:.1f} ms" for name, value in middle.items())
        report.note(f"{case.name:<25} {told['total']:>9,} found; {told_times}")
        report.figure(
            f"{case.name} / best SQL", middle["ours"] / min(middle["apart"], middle["together"])
        )


def summaries(report: Report, reader: Reader, rounds: int) -> None:
    """Sums of sales: a month and a year of them, and ten years by day."""
    newest = get(reader, "/api/orders", per_page=1)[1]["orders"][0]["order_date"]
    until = date.fromisoformat(newest)
    spans = (("day", 30), ("day", 365), ("day", 3_650), ("game", 30), ("game", 365))
    for by, days in spans:
        span = {"from": until - timedelta(days=days), "to": until, "by": by}
        took = [get(reader, "/api/sales/summary", **span)[0] for _ in range(rounds + 1)][1:]
        report.note(f"sales by {by}, {days:,} days: {spread(took, 'ms', 1000)}")


def measure(data: Path, rows: int, rounds: int, orders: int) -> Report:
    report = Report("Reading orders")
    with ground.ground(data, rows, catalogs=False) as made:
        seller = made.new_seller()
        report.note(
            f"{orders:,} orders loaded in"
            f" {ground.seconds(lambda: fill(made, seller.seller_id, orders)):.0f} s"
        )
        with (
            ground.service(made, workers=0),
            psycopg.connect(libpq_url(made.url), autocommit=True) as connection,
        ):
            reader, hand = (
                Reader(made.settings.bind, seller.api_key),
                Hand(connection, seller.seller_id),
            )
            first_pages(report, reader, hand, orders, max(1, rounds // 3))
            other_reads(report, reader, hand, orders, rounds)
            summaries(report, reader, rounds)
            took = [get(reader, "/api/customers")[0] for _ in range(rounds)]
            report.note(f"customers {spread(took, 'ms', 1000)}")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=3, orders=1_000_000)

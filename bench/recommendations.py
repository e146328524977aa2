"""`python bench/recommendations.py [--rows 300000] [--sales 5000000] [--rounds 3]`: generating the
recommendations of a shop, and the first page of 5,000 that wait.

Floor: one aggregate scan of the same sales (count and median by product and cell in thirty days);
and the bare SELECT of a page, over a connection at hand.
"""

from __future__ import annotations

import resource
import statistics
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg

import ground
from cardsync.access.models import Account
from cardsync.catalog.market.newest import keep_newest
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.limits import CARDS_PER_PAGE
from cardsync.prices.recommendations.candidates import all_found
from cardsync.prices.recommendations.generate import write_found
from ground import Ground, Reader, Report, spread

_PRODUCTS = """
    INSERT INTO product ({names}) SELECT {values} FROM generate_series(1, %(rows)s) n
"""
_CARDS = """
    INSERT INTO card (seller_id, id, marketplace_id, listing_id, product_id, identity_hash,
        observed_at, created_at, updated_at, quantity, condition, printing, language,
        product_line, price, target_price, match, market, low, product_line_label, set_name,
        product_name, title, number, rarity, condition_label, photo_url)
    SELECT %(seller)s, n, n, n, p.id, n, now(), now() - n %% 200 * interval '1 day', now(),
           1 + n %% 4, 'NM', 'Normal', 'English', 'magic', 1 + n %% 40, 1 + n %% 40, 'matched',
           (1 + n %% 40) * 1.1, 1 + n %% 40, 'Magic', 'Set', 'Card ' || n, '', '1', 'C',
           'Near Mint', ''
      FROM generate_series(1, %(rows)s) n
      JOIN product p ON p.marketplace_product_id = n
"""
_CELLS = """
    INSERT INTO market_cell (condition, printing, language)
    VALUES ('NM', 'Normal', 'English'), ('LP', 'Normal', 'English') RETURNING id
"""
_LOOKS = """
    INSERT INTO market_look (product_id, sales_at, listings_at)
    SELECT n, now() - interval '1 hour', now() - interval '1 hour'
      FROM generate_series(1, %(rows)s) n
"""
_SALES = """
    INSERT INTO market_sale (product_id, sold_at, cell, price, quantity)
    SELECT 1 + n %% %(rows)s, now() - (n * 7919 %% 2592000) * interval '1 second',
           CASE WHEN n / %(rows)s %% 2 = 0 THEN %(own)s ELSE %(other)s END,
           (1 + n %% %(rows)s %% 40) * (8000 + n * 31 %% 6000), 1 + n %% 2
      FROM generate_series(1, CAST(%(sales)s AS bigint)) n
     ORDER BY 1, 2
    ON CONFLICT DO NOTHING
"""
_LISTINGS = """
    INSERT INTO market_listing (product_id, observed_at, cell, listings, copies, low)
    SELECT n, now() - interval '1 hour', %(own)s, 1 + n %% 12, 20, (1 + n %% 40) * 11000
      FROM generate_series(1, %(rows)s) n
"""
_SCAN = """
    SELECT product_id, cell, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY price)
      FROM market_sale WHERE sold_at BETWEEN now() - interval '30 days' AND now()
     GROUP BY product_id, cell
"""
_PAGE = """
    SELECT r.*, c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, c.printing
      FROM proposal r
      LEFT JOIN card c ON c.seller_id = %(seller)s AND c.id = r.card_id
     WHERE r.seller_id = %(seller)s AND r.family = 'price' AND r.state = 'pending'
       AND r.expires_at > now()
     ORDER BY r.worth DESC, r.id LIMIT %(limit)s
"""


def _stock(connection: psycopg.Connection[Any], seller: int, rows: int, sales: int) -> None:
    """Write the shop and the market with SQL alone, so that this process stays small."""
    named: dict[str, Any] = {"seller": seller, "rows": rows, "sales": sales}
    columns = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = 'product' AND is_nullable = 'NO' AND column_default IS NULL"
        " AND is_identity = 'NO'"
    ).fetchall()
    plain = {"text": "'p' || n", "boolean": "false", "bigint": "n", "integer": "1"}
    values = {name: plain.get(kind, "now()") for name, kind in columns}
    values |= {"game": "'magic'", "marketplace_product_id": "n"}
    connection.execute(
        _PRODUCTS.format(names=", ".join(values), values=", ".join(values.values())),
        named,
    )
    own, other = (row[0] for row in connection.execute(_CELLS).fetchall())
    for statement in (_CARDS, _LOOKS, _SALES, _LISTINGS):
        connection.execute(statement, named | {"own": own, "other": other})


async def _summed(database: Database) -> int:
    """Write the sums that an import keeps beside its sales."""
    async with database.shared() as session:
        return await keep_newest(session, "SELECT product_id FROM market_look")


def _generated(made: Ground, seller: int) -> tuple[float, int]:
    """Return the seconds of a generation, from reading to its commit, and the rows found."""

    async def work(database: Database) -> int:
        now = clock.now()
        async with database.tenant(seller, snapshot=True) as session:
            account = await session.get_one(Account, seller)
            found = await all_found(session, account, now, {})
        async with database.tenant(seller) as session:
            await write_found(session, seller, found, now)
        return len(found.rows)

    started = perf_counter()
    count = made.in_database(work)
    return perf_counter() - started, count


def measure(data: Path, rows: int, sales: int, rounds: int) -> Report:
    report = Report("Recommendations")
    times: dict[str, list[float]] = {"scan": [], "generation": [], "page": [], "select": []}
    with ground.ground(data, 1_000, catalogs=False) as made:
        created = made.new_seller()
        seller = created.seller_id
        with psycopg.connect(libpq_url(made.admin_url, role=None), autocommit=True) as connection:
            _stock(connection, seller, rows, sales)
            started = perf_counter()
            made.in_database(_summed)
            report.note(f"the sums of all sales are written in {perf_counter() - started:.1f} s")
            connection.execute("VACUUM ANALYZE")
            made.settle()
            count = 0
            for _ in range(rounds):
                started = perf_counter()
                scanned = len(connection.execute(f"SELECT count(*) FROM ({_SCAN}) s").fetchall())
                assert scanned == 1
                times["scan"].append(perf_counter() - started)
                took, count = _generated(made, seller)
                times["generation"].append(took)
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            report.note(f"{rows:,} cards, {sales:,} sales: {count:,} recommendations; {most} MB")
            _pages(made, created.api_key, connection, seller, times)
    for name, values in times.items():
        report.note(f"{name:<10} {spread(values)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("generation / aggregate scan", middle["generation"] / middle["scan"])
    report.figure("memory of the process", most, "MB")
    report.figure("recommendations that wait", count, "rows")
    report.figure("first page / bare SELECT", middle["page"] / middle["select"])
    return report


def _pages(
    made: Ground,
    key: str,
    connection: psycopg.Connection[Any],
    seller: int,
    times: dict[str, list[float]],
) -> None:
    connection.execute("ANALYZE proposal")
    with ground.service(made, workers=0):
        client = Reader(made.settings.bind, key)
        for _ in range(200):
            started = perf_counter()
            connection.execute(_PAGE, {"seller": seller, "limit": CARDS_PER_PAGE}).fetchall()
            times["select"].append(perf_counter() - started)
            started = perf_counter()
            status, body = client.get("/api/recommendations")
            times["page"].append(perf_counter() - started)
            assert status == 200, body[:300]


if __name__ == "__main__":
    ground.main(measure, __doc__, sales=5_000_000, rounds=3)

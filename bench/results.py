"""Figures in, bench/results.jsonl and its table bench/RESULTS.md out.

A line of the file is one claim, with the commit, the time and the machine it was measured on.
What is measured again replaces all rows of its part; the other parts keep theirs.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

import ground

ROWS = ground.HERE / "results.jsonl"
TABLE = ground.HERE / "RESULTS.md"


class Row(msgspec.Struct):
    part: str
    what: str
    reached: str
    reach: str
    met: bool
    commit: str
    date: str
    machine: str


def machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, load {os.getloadavg()[0]:.1f}"


def commit() -> str:
    """The program that is measured; `+` where its sources differ from the commit."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ground.HERE, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "../src", "../migrations", ".")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def read(path: Path = ROWS) -> list[Row]:
    decoder = msgspec.json.Decoder(Row)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def record(part: str, figures: Iterable[ground.Figure], on: str, of: str) -> None:
    """Replace the part's rows by these, measured `on` a machine and `of` a commit."""
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    new = [Row(part, f.what, f.reached, f.reach, f.met, of, date, on) for f in figures]
    rows = replaced(read(), part, new)
    ROWS.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    TABLE.write_text(table(rows))


def replaced(rows: list[Row], part: str, new: list[Row]) -> list[Row]:
    """The new rows stand where the part's old ones stood, or at the end."""
    place = next((n for n, row in enumerate(rows) if row.part == part), len(rows))
    others = [row for row in rows[place:] if row.part != part]
    return [*rows[:place], *new, *others]


def table(rows: list[Row]) -> str:
    lines = [
        "# Results of `make bench`",
        "",
        (
            "`make bench` measures every part and writes this table from `bench/results.jsonl`;"
            " `make bench PARTS=orders` measures one"
        ),
        (
            "part and replaces its rows. Ratios hold on other machines, absolute figures do not."
            " What was tried on the way to these"
        ),
        (
            "figures stands in [docs/adr/0019](../docs/adr/0019-what-was-tried-for-speed.md)."
            " Times are UTC."
        ),
        (
            "Rows whose commit begins with `~` come from the diary before this table:"
            " the commit is the last one before their time."
        ),
        "",
        "| part | what | reached | reach | | commit | date | machine |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        met = "met" if row.met else "**missed**"
        cells = (row.part, row.what, row.reached, row.reach, met, row.commit, row.date, row.machine)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"

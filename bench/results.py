"""Keeps the figures in bench/results.jsonl, and writes bench/RESULTS.md: the misses, then the
table.

A line of the file is one claim, with the commit, the time and the machine it was measured on. A new
measurement replaces all rows of its part; the other parts keep theirs, and are marked as old once
the program has gone on. `python bench/results.py` marks and writes without measuring.
"""

from __future__ import annotations

import os
import platform
import subprocess
import textwrap
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

import ground

ROWS = ground.HERE / "results.jsonl"
TABLE = ground.HERE / "RESULTS.md"
# A figure is old once it was measured more than so many commits ago.
OLD = 500


class Row(msgspec.Struct, omit_defaults=True):
    """`old` says how the row stood to its commit when the rows were written last."""

    part: str
    what: str
    reached: str
    reach: str
    met: bool
    commit: str
    date: str
    machine: str
    old: bool = False


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


def git(*arguments: str, folder: Path = ground.HERE) -> str:
    """What git prints; nothing if it refuses."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def commits_since(of: str, folder: Path = ground.HERE) -> int | None:
    """How many commits the program has gone on since; None if its history does not know `of`."""
    told = git("rev-list", "--count", f"{of.strip('~+')}..HEAD", folder=folder)
    return int(told) if told else None


def marked(rows: list[Row], since: Callable[[str], int | None] = commits_since) -> list[Row]:
    """The rows, those as old whose commit is far behind or not known."""
    ages = {of: since(of) for of in {row.commit for row in rows}}

    def is_old(age: int | None) -> bool:
        return age is None or age > OLD

    return [msgspec.structs.replace(row, old=is_old(ages[row.commit])) for row in rows]


def commit() -> str:
    """The program that is measured; `+` where its sources differ from the commit."""
    changed = git("status", "--porcelain", "--", "../src", "../migrations", ".")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def read(path: Path = ROWS) -> list[Row]:
    decoder = msgspec.json.Decoder(Row)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def record(part: str, figures: Iterable[ground.Figure], on: str, of: str) -> None:
    """Replace the part's rows by these, measured `on` a machine and `of` a commit."""
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    new = [Row(part, f.what, f.reached, f.reach, f.met, of, date, on) for f in figures]
    write(marked(replaced(read(), part, new)))


def write(rows: list[Row]) -> None:
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
        (
            f"Rows that are old were measured more than {OLD} commits before this table was"
            " written, or of a commit that is not known."
        ),
        "",
        "## What is missed",
        "",
        misses(rows),
        "## All figures",
        "",
        "| part | what | reached | reach | | commit | date | machine |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        met = ("met" if row.met else "**missed**") + (", old" if row.old else "")
        cells = (row.part, row.what, row.reached, row.reach, met, row.commit, row.date, row.machine)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def misses(rows: list[Row]) -> str:
    """The missed goals, a paragraph for each part."""
    missed = [row for row in rows if not row.met]
    first = (
        f"{len(missed)} of {len(rows)} goals for speed and size are missed. A goal stands in"
        f" brackets; “old” is what was measured more than {OLD} commits before."
    )
    lines = [first, ""]
    for part in dict.fromkeys(row.part for row in missed):
        told = "; ".join(
            f"{row.what} {row.reached} ({row.reach}{', old' if row.old else ''})"
            for row in missed
            if row.part == part
        )
        lines.append(f"- `{part}`: {told}")
    wrapped = [
        textwrap.fill(line, 100, subsequent_indent="  " * (line[:1] == "-")) for line in lines
    ]
    return "\n".join(wrapped) + "\n"


if __name__ == "__main__":
    write(marked(read()))

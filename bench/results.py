"""Keeps the figures in bench/results.jsonl, and writes bench/RESULTS.md from them and
bench/BUDGETS.md from the budgets.

A line of the file is a figure, with the commit, the time, the machine and the sizes it was measured
on. A new measurement replaces all rows of its part, one of the budgets alone only the rows that it
measured; the others are marked as old once the program has gone on. The page shows old figures of
budgets alone. `python bench/results.py` marks and writes without measuring.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

import ground
from budgets import BUDGETS, BY_NAME, MOST_BUDGETS, Budget, said

ROWS = ground.HERE / "results.jsonl"
TABLE = ground.HERE / "RESULTS.md"
GOALS = ground.HERE / "BUDGETS.md"
# A figure is old once it was measured more than so many commits ago.
OLD = 500


class Row(msgspec.Struct, omit_defaults=True):
    """`old` says how the row stood to its commit when the rows were written last.

    `speed` is the machine's: the milliseconds of a fixed piece of work beside the measurement. Rows
    from before there were sizes have neither.
    """

    part: str
    what: str
    value: float
    unit: str
    commit: str
    date: str
    machine: str
    old: bool = False
    sizes: str = ""
    speed: float = 0.0

    @property
    def budget(self) -> Budget | None:
        return BY_NAME.get((self.part, self.what))


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
    return decoded(path.read_text())


def committed(commit: str, folder: Path = ground.HERE) -> list[Row]:
    """The rows that a commit has."""
    return decoded(git("show", f"{commit}:./{ROWS.name}", folder=folder))


def encoded(rows: list[Row]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def decoded(lines: str) -> list[Row]:
    decoder = msgspec.json.Decoder(Row)
    return [decoder.decode(line) for line in lines.splitlines()]


def record(
    part: str, figures: Iterable[ground.Figure], of: Measured, *, whole: bool = True
) -> list[Row]:
    """Replace the part's rows by these; where not the `whole` part was measured, only their own."""
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    new = [
        Row(part, f.what, round(f.value, 4), f.unit, of.commit, date, of.machine,
            sizes=of.sizes, speed=round(of.speed, 2))
        for f in figures
    ]  # fmt: skip
    write(marked(replaced(read(), part, new, whole=whole)))
    return new


class Measured(NamedTuple):
    """The circumstances of a measurement."""

    commit: str
    machine: str
    sizes: str
    speed: float


def write(rows: list[Row]) -> None:
    ROWS.write_bytes(encoded(rows))
    TABLE.write_text(table(rows))
    GOALS.write_text(goals())


def replaced(rows: list[Row], part: str, new: list[Row], *, whole: bool = True) -> list[Row]:
    """The new rows stand where the part's old ones stood, or at the end."""
    measured = {row.what for row in new}
    place = next((n for n, row in enumerate(rows) if row.part == part), len(rows))
    kept = [row for row in rows[place:] if row.part != part]
    if not whole:
        new = [*new, *(row for row in rows if row.part == part and row.what not in measured)]
    return [*rows[:place], *new, *kept]


def goals() -> str:
    """The page of the budgets."""
    lines = [
        "# Budgets",
        "",
        (
            f"At most {MOST_BUDGETS} figures have a goal: those that somebody waits for. They hold at"
            " 300,000 cards, 1,000,000 orders and"
        ),
        (
            "500,000 products on two cores without other load. Times of pages are the server's;"
            " those of a browser are Chromium's on a"
        ),
        (
            "processor slowed four times. “Beside” is a figure of the same run: the ratio to a floor,"
            " or the time of a ratio. This page is"
        ),
        "written from `bench/budgets.py`; [RESULTS.md](RESULTS.md) has what was reached.",
        "",
        "| who waits | figure | reach | beside | part |",
        "|---|---|---|---|---|",
        *(_line(one.who, one.what, one.goal, one.beside, f"`{one.part}`") for one in BUDGETS),
    ]
    return "\n".join(lines) + "\n"


def table(rows: list[Row]) -> str:
    lines = [
        "# Results of `make bench`",
        "",
        missed(rows),
        "",
        (
            "`make bench` measures the budgets and writes this page from `bench/results.jsonl`;"
            " `make bench PARTS=orders` measures all"
        ),
        (
            "figures of a part. [BUDGETS.md](BUDGETS.md) says what the budgets mean. Ratios hold on"
            " other machines, absolute figures do not."
        ),
        (
            "[docs/adr/0019](../docs/adr/0019-what-was-tried-for-speed.md) says what was tried on the"
            " way. Times are UTC. A commit with `~` is"
        ),
        (
            f"the last one before a measurement, `+` has changes beside it. Old is what was measured"
            f" more than {OLD} commits before, or of an unknown commit."
        ),
        "",
        "| who waits | figure | reached | reach | | beside | sizes | commit | date |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_name = {(row.part, row.what): row for row in rows}
    lines += [_reached(one, by_name) for one in BUDGETS]
    others = [row for row in rows if row.budget is None]
    shown = [row for row in others if not row.old]
    lines += [
        "",
        "## All other figures",
        "",
        f"{len(others) - len(shown)} more, which are old, are in `bench/results.jsonl`.",
        "",
        "| part | figure | reached | commit | date | machine |",
        "|---|---|---|---|---|---|",
        *(_line(row.part, row.what, said(row.value, row.unit), row.commit, row.date, row.machine)
          for row in shown),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def missed(rows: list[Row]) -> str:
    """The sentence of the misses."""
    found = [(row.budget, row) for row in rows if row.budget is not None]
    misses = sum(not budget.met(row.value) for budget, row in found)
    old = sum(row.old for _, row in found)
    return (
        f"{misses} of {len(BUDGETS)} budgets are missed, {len(BUDGETS) - len(found)} are not measured"
        f" yet. {old} of the measured ones are old."
    )


def _reached(budget: Budget, rows: dict[tuple[str, str], Row]) -> str:
    row, beside = rows.get((budget.part, budget.what)), rows.get((budget.part, budget.beside))
    if row is None:
        return _line(
            budget.who, budget.what, "", budget.goal, "not measured", budget.beside, "", "", ""
        )
    state = ("met" if budget.met(row.value) else "**missed**") + (", old" if row.old else "")
    told = "" if beside is None else f"{beside.what} {said(beside.value, beside.unit)}"
    return _line(budget.who, budget.what, said(row.value, row.unit), budget.goal, state, told,
                 row.sizes, row.commit, row.date)  # fmt: skip


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    write(marked(read()))

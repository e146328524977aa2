"""`python bench/command_line.py [--rounds 9]`: the processor time of commands that start, do one
thing and end: help, and operators' commands beside a database that runs.

Floor: a process that imports the libraries of the database and of the settings, and ends. Other
programs on the machine make both longer, so their ratio is what counts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import ground
from ground import Report

PROGRAM = (sys.executable, "-m", "cardsync")
LIBRARIES = "import sqlalchemy.ext.asyncio, psycopg_pool, pydantic_settings, structlog"


def processor_seconds(folder: Path, command: tuple[str, ...]) -> float:
    """The time of the process itself and of those that it waits for; the database is none."""
    env = os.environ | {"CARDSYNC_DATA_DIR": str(folder)}
    # Compiled modules are kept, whatever the environment says.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    program = command if command[0] == sys.executable else (*PROGRAM, *command)
    process = subprocess.Popen(program, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Command line")
    with ground.ground(data, rows, catalogs=False) as made:
        seller = str(made.new_seller().seller_id)
        of_help: list[tuple[str, ...]] = [
            ("--help",),
            ("admin", "--help"),
            ("admin", "key", "list", "--help"),
            ("completion", "bash"),
        ]
        of_operators: list[tuple[str, ...]] = [
            ("backup", "list"),
            ("catalog", "list"),
            ("admin", "seller", "show", seller),
            ("admin", "key", "list", seller),
            ("admin", "credits", "grant", seller, "1", "--reason", "bench"),
        ]
        folder = made.settings.data_dir

        def median_of(*command: str) -> tuple[float, str]:
            # The first one finds nothing compiled.
            times = [processor_seconds(folder, command) for _ in range(rounds + 1)][1:]
            return statistics.median(times), ground.spread(times, "ms", 1000)

        floor, shown = median_of(sys.executable, "-c", LIBRARIES)
        report.note(f"{'the libraries alone':<44} {shown}")
        for command in (*of_help, *of_operators):
            spent, shown = median_of(*command)
            name = " ".join(("cardsync", *(word for word in command if word != seller)))
            report.note(f"{name:<44} {shown}")
            report.figure(f"{name}: processor time", spent, "s")
            if command in of_operators:
                report.figure(f"{name}: command / libraries", spent / floor)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9)

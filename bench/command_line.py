"""`python bench/command_line.py [--rounds 9]`: the processor time of commands that start, do one thing
and end: help, and operators' commands beside a database that runs.

Other programs on the machine make this time a little longer.
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
HELP, ADMIN = 0.3, 0.8


def processor_seconds(folder: Path, command: tuple[str, ...]) -> float:
    """The time of the process itself and of those that it waits for; the database is none."""
    env = os.environ | {"CARDSYNC_DATA_DIR": str(folder)}
    # Compiled modules are kept, whatever the environment says.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen((*PROGRAM, *command), env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Command line")
    with ground.ground(data, rows, catalogs=False) as made:
        seller = str(made.new_seller().seller_id)
        limits = {
            ("--help",): HELP,
            ("admin", "--help"): HELP,
            ("admin", "seller", "show", seller): ADMIN,
            ("admin", "key", "list", seller): ADMIN,
            ("admin", "credits", "grant", seller, "1", "--reason", "bench"): ADMIN,
        }
        for command, limit in limits.items():
            # The first one finds nothing compiled.
            times = [processor_seconds(made.settings.data_dir, command) for _ in range(rounds + 1)][
                1:
            ]
            name = " ".join(("cardsync", *(word for word in command if word != seller)))
            report.note(f"{name:<44} {ground.spread(times, 'ms', 1000)}")
            report.at_most(f"{name}: processor time", statistics.median(times), limit, "s")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9)

"""`python bench/suite.py`: the minutes of `make test` and of `.ci/run`, which contains it. A run that
fails ends the measurement.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import ground
from ground import Report

COMMANDS = {"make test": ("make", "test"), ".ci/run": (".ci/run",)}


def measure(data: Path, rows: int) -> Report:
    report = Report("The tests")
    for name, command in COMMANDS.items():

        def run(command: tuple[str, ...] = command) -> None:
            subprocess.run(command, cwd=ground.HERE.parent, check=True)

        report.figure(name, ground.seconds(run) / 60, "min")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__)

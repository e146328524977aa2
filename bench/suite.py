"""`python bench/suite.py`: the minutes of `.ci/run` and of `make test`, its first step. A run that
fails ends the measurement.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import ground
from ground import Report

# `.ci/run` prints such a line at each step.
STEP = "=== "


def measure(data: Path, rows: int) -> Report:
    report = Report("The tests")
    begun = time.perf_counter()
    steps = []
    with subprocess.Popen(
        [".ci/run"], cwd=ground.HERE.parent, stdout=subprocess.PIPE, text=True
    ) as run:
        for line in run.stdout or ():
            print(line, end="", flush=True)
            if line.startswith(STEP):
                steps.append(time.perf_counter())
    if run.returncode:
        raise SystemExit(".ci/run failed.")
    report.figure("make test", (steps[1] - begun) / 60, "min")
    report.figure(".ci/run", (time.perf_counter() - begun) / 60, "min")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__)

"""`python bench/spread.py [--rows 50000] [--most 3] [--sellers 6]`: imports of different sellers on
one web and one worker process, and on two, up to `--most` of each. Each seller's file is accepted
before the clock starts to run, so what is compared is the work and not the upload.

A worker more cannot do more than a core more: the figure is the throughput against one worker's,
times the workers or the cores, whichever are fewer. The database runs on the same cores.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from time import perf_counter, sleep

import psutil

import ground
from ground import Client, Ground, Report
from polls import still_open


def accepted(made: Ground, sellers: int) -> None:
    """A queue: a file of each seller, with nobody to work it off."""
    body = made.inventory.read_bytes()
    keys = [made.new_seller().api_key for _ in range(sellers)]
    with ground.service(made, workers=0):
        for key in keys:
            client = Client(made.settings.bind, key)
            status, _, told = client.request(
                "POST", "/api/v1/sync", body, Content_Type="application/gzip"
            )
            assert status == 202, told
            client.close()
    made.settle()


def worked_off(made: Ground, processes: int) -> tuple[float, float]:
    """The seconds until nothing is open, and the cores that were busy."""
    settings = made.settings.model_copy(update={"web_workers": processes})
    with ground.service(replace(made, settings=settings), workers=processes):
        started = perf_counter()
        psutil.cpu_percent()
        while still_open(made):
            sleep(0.05)
        busy = psutil.cpu_percent() / 100 * (os.cpu_count() or 1)
        return perf_counter() - started, busy


def measure(data: Path, rows: int, most: int, sellers: int) -> Report:
    cores = os.cpu_count() or 1
    report = Report(f"Imports of {sellers} sellers on one to {most} workers, {cores} cores")
    rates, busy = dict[int, float](), dict[int, float]()
    with ground.ground(data, rows, catalogs=False) as made:
        # The first imports of all fill the database's caches.
        for processes in (1, *range(1, most + 1)):
            accepted(made, sellers)
            took, busy[processes] = worked_off(made, processes)
            rate = rates[processes] = sellers * rows / took
            of_cores = f"{busy[processes]:.2f} of {cores} cores busy"
            report.note(f"{processes} of each: {took:.1f} s, {rate:,.0f} rows/s, {of_cores}")
    for processes, rate in rates.items():
        if processes > 1:
            ratio = rate / rates[1] / min(processes, cores)
            report.figure(f"{processes} workers / one, per worker up to cores", ratio)
            # One worker and its database keep more than a core busy.
            most_times = min(processes, cores / busy[1])
            ratio = rate / rates[1] / most_times
            report.figure(f"{processes} workers / what the cores allow", ratio)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, most=3, sellers=6)

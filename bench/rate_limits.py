"""`python bench/rate_limits.py [--seconds 300] [--rounds 5]`: 4 web processes saturate one key;
admitted requests against the configured limit. And what the limits cost a request, alone and
within a heartbeat.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import ground
import heartbeat
from cardsync.access.rate_limits.check_limits import RateLimits, limit_headers
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from ground import Ground, Report

PROCESSES = 4
PAUSE = 0.025
ROUNDS_ALONE, KEYS_ALONE = 100, 1_000
LIMIT = {"CARDSYNC_RATE_LIMIT_GENERAL": "300/min:100"}
COUNT, BURST = 300, 100
OFF = {"CARDSYNC_RATE_LIMIT_GENERAL": "0"}
ONLY_COUNTED = {"CARDSYNC_RATE_LIMIT_GENERAL": "1000000000/min"}


@dataclass
class Answers:
    """When requests were admitted, and how many were refused."""

    admitted: list[float] = field(default_factory=list)
    refused: int = 0

    def within(self, since: float, until: float) -> int:
        return sum(since <= moment < until for moment in self.admitted)


@contextmanager
def web_processes(
    made: Ground, count: int, env: dict[str, str]
) -> Iterator[list[tuple[str, psutil.Process]]]:
    """Start `count` web processes on the one database: (address, process) of each."""
    with ExitStack() as stack:
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        started = []
        for _ in range(count):
            # A folder each for what `serve` keeps of its processes; the database is the same.
            port = ground.free_port()
            update = {"bind": f"127.0.0.1:{port}", "data_dir": made.folder / f"web-{port}"}
            settings = made.settings.model_copy(update=update)
            [web] = stack.enter_context(
                ground.service(Ground(made.folder, settings, made.inventory, made.truth), workers=0)
            )
            assert web.process is not None
            started.append((settings.bind, psutil.Process(web.process.pid)))
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        yield started


async def saturate(binds: list[str], key: str, seconds: float, answers: Answers) -> None:
    """Heartbeats at every process, far more than the limit admits, each as soon as a short pause
    after the last is over.
    """
    ending = time.monotonic() + seconds

    async def beat(bind: str) -> None:
        host, _, port = bind.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = (
            f"POST /api/v1/heartbeat HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Length: 0\r\n\r\n"
        )
        while time.monotonic() < ending:
            writer.write(request.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: ([0-9]+)", answer, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            if answer.startswith(b"HTTP/1.1 200"):
                answers.admitted.append(time.monotonic())
            else:
                assert answer.startswith(b"HTTP/1.1 429"), answer
                answers.refused += 1
            await asyncio.sleep(PAUSE)
        writer.close()

    await asyncio.gather(*(beat(bind) for bind in binds))


def measure_rate(made: Ground, report: Report, seconds: int) -> None:
    seller = made.new_seller()
    with web_processes(made, PROCESSES, LIMIT) as running:
        answers, began = Answers(), time.monotonic()
        processes = [process for _, process in running]
        before = sum(map(ground.cpu_seconds, processes))
        asyncio.run(saturate([bind for bind, _ in running], seller.api_key, seconds, answers))
        spent = sum(map(ground.cpu_seconds, processes)) - before
        took = time.monotonic() - began
    total, per_second = len(answers.admitted), COUNT / 60
    allowed = BURST + per_second * took
    report.note(
        f"{total + answers.refused:,} requests in {took:.0f} s at {PROCESSES} processes:"
        f" {total:,} admitted, "
        f"{allowed:,.0f} configured (burst {BURST} and {per_second:g}/s);"
        f" {spent / (total + answers.refused) * 1e6:.0f} µs CPU a request"
    )
    rate_off = abs(total / allowed - 1) * 100
    report.figure("admitted over configured, burst included, off by", rate_off, "%")
    # The burst is gone long before; what was admitted too soon in it is paid back.
    half = took / 2
    steady = answers.within(began + half, began + took) / (per_second * half)
    report.note(f"second half: {steady * 100:.1f} % of the configured rate")
    report.figure("rate of the second half, off by", abs(steady - 1) * 100, "%")


def measure_cost(made: Ground, report: Report, rounds: int) -> None:
    key = made.new_seller().api_key
    script = made.folder / "heartbeat.lua"
    database = made.postmaster()
    costs: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    load = "wrk" if shutil.which("wrk") else "sockets"
    with web_processes(made, 1, ONLY_COUNTED) as [counted], web_processes(made, 1, OFF) as [off]:
        for turn in range(rounds + 1):
            # Turns begin with each in turn: the first after a pause has the warmer machine.
            servers = [("with", counted), ("without", off)]
            for name, (bind, process) in servers if turn % 2 else reversed(servers):
                before = ground.cpu_seconds(process), ground.cpu_seconds(database)
                rate = (
                    heartbeat.with_wrk(bind, key, script)
                    if load == "wrk"
                    else heartbeat.with_sockets(bind, key)
                )
                count = rate * heartbeat.SECONDS
                web, postgres = (
                    ground.cpu_seconds(process) - before[0],
                    ground.cpu_seconds(database) - before[1],
                )
                if turn:
                    costs[name].append((web / count * 1e6, (web + postgres) / count * 1e6))
    for name, spent in costs.items():
        web, both = (statistics.median(cost[place] for cost in spent) for place in (0, 1))
        report.note(
            f"heartbeat {name:<7} limits: {web:.0f} µs CPU of the web process,"
            f" {both:.0f} with the database's, load by {load}"
        )
    web, postgres = made.in_database(lambda opened: _cost_alone(opened, made.settings, database))
    report.note(
        f"limits alone: {web:.1f} µs CPU of the web process, {postgres:.1f} of the database,"
        " each key asking once a second"
    )
    for where, value, place in (("web process", web, 0), ("both", web + postgres, 1)):
        whole = statistics.median(cost[place] for cost in costs["without"])
        report.figure(f"limits / heartbeat, CPU of {where}", value / whole * 100, "%")


async def _cost_alone(
    opened: Database, settings: Settings, database: psutil.Process
) -> tuple[float, float]:
    """µs CPU a request, here and in the database, of what limits add to it; with a row an
    exchange for every request, the worst case.
    """
    limited = RateLimits(opened, settings.model_copy(update={"rate_limit_general": "300/min:100"}))
    before, count = (time.process_time(), ground.cpu_seconds(database)), 0
    for _ in range(ROUNDS_ALONE):
        for key_id in range(KEYS_ALONE):
            scope: Any = {"type": "http", "client": ("192.0.2.7", 1), "headers": []}
            buckets = limited.of_key(scope, key_id, {})
            limited.refuse_flood(scope, buckets)
            await limited.admit_key(scope, buckets)
            limit_headers(scope)
            count += 1
        await limited.buckets.flush()
    web, postgres = time.process_time() - before[0], ground.cpu_seconds(database) - before[1]
    return web / count * 1e6, postgres / count * 1e6


def measure(data: Path, rows: int, seconds: int, rounds: int) -> Report:
    report = Report("Rate limits")
    with ground.ground(data, rows, catalogs=False) as made:
        measure_rate(made, report, seconds)
        measure_cost(made, report, rounds)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, seconds=300, rounds=5)

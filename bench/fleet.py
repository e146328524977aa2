"""`python bench/fleet.py [--agents 3000] [--minutes 30] [--webs 2] [--workers 1]`: so many agents
with keys of their own live beside `serve`'s real processes. Each comes by every 30 s with a
heartbeat and a poll on a connection that stays open; some of them upload a file of 1,000 rows, and
fetch the price file behind it.

It counts every answer but a success as an error, and samples the memory of each process. The load
is made on the same cores as the servers run on. Latency counts from when a request was due.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import psutil
import uvloop

import ground
from agents import Agent, Connection, connect, new_agents
from ground import MB, Ground, Report
from polls import some_rows, still_open, upload_of

EVERY = 30
# 3,000 shops that sync every six hours make eight uploads a minute; this is more than that.
UPLOADS_A_SECOND = 50 / 60
SAMPLE_SECONDS = 5
ANSWER_SECONDS = 60
BEAT, POLL, UPLOAD, EXPORT = "heartbeat", "poll", "upload", "price file"
# Processes that take their memory in their first seconds are not held against their last ones.
WARM_SECONDS = 20


@dataclass
class Lived:
    """The seconds of the answers of each kind, and the failures."""

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: Counter[str] = field(default_factory=Counter)


@dataclass
class Caller:
    """An agent with its open connection; it connects again where it was cut off."""

    agent: Agent
    bind: str
    connection: Connection | None = None

    async def ask(self, lived: Lived, kind: str, request: bytes, due: float) -> None:
        # The server may close an idle connection just now: then an agent asks again on another.
        for kept in (self.connection is not None, False):
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    if self.connection is None or not self.connection.is_open():
                        self.connection = await connect(self.bind)
                    await self.connection.ask(request, b"HTTP/1.1 2")
            except (AssertionError, OSError, TimeoutError) as e:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
                if kept and isinstance(e, ConnectionError):
                    continue
                lived.failed[f"{kind}: {type(e).__name__} {str(e)[:80]}"] += 1
                return
            lived.took[kind].append(perf_counter() - due)
            return


def export_of(agent: Agent, bind: str) -> bytes:
    head = f"Host: {bind}\r\nAuthorization: Bearer {agent.key}\r\n\r\n"
    return f"GET /api/v1/export/price-updates HTTP/1.1\r\n{head}".encode()


async def live(bind: str, agents: list[Agent], seconds: float, body: bytes) -> Lived:
    lived = Lived()
    callers = [Caller(agent, bind) for agent in agents]
    over = perf_counter() + seconds

    async def one(number: int) -> None:
        caller, pair = callers[number], agents[number].pair(bind)
        due = perf_counter() + EVERY * number / len(callers)
        while due < over:
            await asyncio.sleep(max(0, due - perf_counter()))
            # A cold start of 3,000 connections is not what is measured: they come one by one.
            await caller.ask(lived, BEAT, pair[0], due)
            await caller.ask(lived, POLL, pair[1], perf_counter())
            due += EVERY

    async def uploads() -> None:
        sending, number = Caller(agents[0], bind), 0
        while perf_counter() < over:
            agent = agents[number * 7 % len(agents)]
            await sending.ask(lived, UPLOAD, upload_of(agent, bind, body), perf_counter())
            await sending.ask(lived, EXPORT, export_of(agent, bind), perf_counter())
            number += 1
            await asyncio.sleep(1 / UPLOADS_A_SECOND)

    gc.collect()
    gc.disable()
    try:
        await asyncio.gather(*(one(number) for number in range(len(callers))), uploads())
    finally:
        gc.enable()
        for caller in callers:
            if caller.connection is not None:
                caller.connection.close()
    return lived


def named(made: Ground) -> dict[str, psutil.Process]:
    """The processes of the service, and the database's first one with all of its children."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            kind = process.cmdline()[-1:]
            if kind in (["web"], ["worker"]):
                found[f"{kind[0]} {process.pid}"] = process
    return found


async def watch(made: Ground, seconds: float) -> dict[str, list[float]]:
    """The megabytes of each process, sampled until the time is over."""
    samples: dict[str, list[float]] = defaultdict(list)
    processes, over = named(made), perf_counter() + seconds
    while perf_counter() < over:
        for name, process in processes.items():
            with suppress(psutil.Error):
                # Pages that a fork shares would be counted in each process, so only own ones count.
                samples[name].append(process.memory_full_info().uss / MB)
        await asyncio.sleep(SAMPLE_SECONDS)
    return samples


def growth(samples: list[float]) -> float:
    """The growth of the second half in percent: its last quarter against its first."""
    half = samples[len(samples) // 2 :]
    quarter = max(1, len(half) // 4)
    return (statistics.mean(half[-quarter:]) / statistics.mean(half[:quarter]) - 1) * 100


def _at(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)] * 1000


def measure(data: Path, rows: int, agents: int, minutes: int, webs: int, workers: int) -> Report:
    report = Report(f"{agents:,} agents for {minutes} minutes")
    with ground.ground(data, rows, catalogs=False) as made:
        body = some_rows(made.inventory)
        fleet = new_agents(made, agents)
        settings = made.settings.model_copy(update={"web_workers": webs})
        with ground.service(replace(made, settings=settings), workers=workers):
            bind, seconds = made.settings.bind, minutes * 60

            async def both() -> tuple[Lived, dict[str, list[float]]]:
                warm = fleet[: max(1, len(fleet) // 10)]
                await live(bind, warm, WARM_SECONDS, body)
                watching = asyncio.create_task(watch(made, seconds))
                return await live(bind, fleet, seconds, body), await watching

            lived, memory = uvloop.run(both())
            report.note(f"uploads still open at the end: {still_open(made)}")
    for kind, took in lived.took.items():
        told = f"p50 {_at(took, 0.5):.1f} ms, p99 {_at(took, 0.99):.1f} ms, n {len(took):,}"
        report.note(f"{kind:<10} {told}")
    for name, samples in memory.items():
        report.note(
            f"{name}: {samples[0]:.0f} -> {samples[-1]:.0f} MB,"
            f" second half {growth(samples):+.1f} %"
        )
    for what, times in lived.failed.most_common(5):
        report.note(f"failed {times} x {what}")
    polled = [*lived.took[BEAT], *lived.took[POLL]]
    report.figure("errors", sum(lived.failed.values()), "")
    report.figure("heartbeat and poll, p99", _at(polled, 0.99), "ms")
    most = max(growth(samples) for samples in memory.values())
    report.figure("most growth of a process in the second half", most, "%")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, agents=3000, minutes=30, webs=2, workers=1)

"""`python bench/slow_bodies.py [--rounds 3]`: 500 agents come by, each POST /heartbeat, then GET
/sync/pending, alone and beside 200 uploads whose bodies come at 500 bytes a second. Each of those
is ended after 30 s, and another takes its place. They begin one after the other, as computers do
that know nothing of each other, so each part of a second has its share of them.

The load is made on the cores that the servers run on. Latency counts from when a request was due.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import uvloop

import agents
import ground
from agents import Agent, Connection, connect
from ground import Report

AGENTS = 500
# Every agent comes by so often: six times as often as a real one.
EVERY = 5
SECONDS = 20
SLOW_BODIES = 200
DRIP_BYTES = 500
BEGUN_WITHIN = 20


async def slow_body(bind: str, agent: Agent, after: float) -> None:
    """One upload after the other, as slow as can be."""
    await asyncio.sleep(after)
    host, _, port = bind.rpartition(":")
    head = f"POST /api/v1/sync HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {agent.key}\r\n"
    head += "Content-Type: text/csv\r\nContent-Length: 1000000\r\n\r\n"
    while True:
        reader, writer = await asyncio.open_connection(host, int(port))
        with suppress(OSError):
            writer.write(head.encode())
            while not reader.at_eof() and not writer.is_closing():
                writer.write(b"x" * DRIP_BYTES)
                await writer.drain()
                await asyncio.sleep(1)
        writer.close()


async def polled(bind: str, callers: list[Agent]) -> list[float]:
    """Seconds of each request."""
    connections: list[tuple[Connection, tuple[bytes, bytes]]] = [
        (await connect(bind), agent.pair(bind)) for agent in callers
    ]
    took: list[float] = []

    async def come_by(number: int, due: float) -> None:
        connection, pair = connections[number % len(connections)]
        async with connection.turn:
            for request in pair:
                await connection.ask(request)
                now = perf_counter()
                took.append(now - due)
                due = now

    began, coming = perf_counter(), []
    for number in range(AGENTS * SECONDS // EVERY):
        due = began + number * EVERY / AGENTS
        await asyncio.sleep(max(0, due - perf_counter()))
        coming.append(asyncio.create_task(come_by(number, due)))
    await asyncio.gather(*coming)
    for connection, _ in connections:
        connection.close()
    return took


async def beside(bind: str, callers: list[Agent], slow: list[Agent]) -> list[float]:
    # The first are ended while we look.
    bodies = [
        asyncio.create_task(slow_body(bind, agent, BEGUN_WITHIN * number / len(slow)))
        for number, agent in enumerate(slow)
    ]
    await asyncio.sleep(BEGUN_WITHIN if slow else 0)
    took = await polled(bind, callers)
    for body in bodies:
        body.cancel()
    await asyncio.gather(*bodies, return_exceptions=True)
    return took


def p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98] * 1000


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report(f"{AGENTS} agents beside {SLOW_BODIES} bodies that hardly come")
    with ground.ground(data, rows, catalogs=False) as made:
        known = agents.new_agents(made)
        callers, slow = known[:AGENTS], known[AGENTS : AGENTS + SLOW_BODIES]
        with ground.service(made, workers=1):
            bind = made.settings.bind
            uvloop.run(polled(bind, callers))
            found: dict[str, list[float]] = {"alone": [], "beside": []}
            gc.disable()
            for _, (name, others) in itertools.product(
                range(rounds), (("alone", []), ("beside", slow))
            ):
                took = uvloop.run(beside(bind, callers, others))
                found[name].append(p99(took))
                report.note(
                    f"{name}: p50 {statistics.median(took) * 1000:.1f} ms, p99 {p99(took):.1f} ms"
                )
            gc.enable()
    alone, besides = (statistics.median(found[name]) for name in ("alone", "beside"))
    report.figure("p99 beside slow bodies against p99 alone", besides / alone)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=3)

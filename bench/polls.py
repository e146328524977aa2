"""`python bench/polls.py [--agents 500] [--queued 300] [--seconds 30]`: heartbeats and polls of
agents in the middle of their cycles, beside a queue of imports that one worker works off and two
further uploads a second.

Every agent holds its seller's sync lock. Those whose upload is queued have to wait; the
others get their cycle again, as after a lost answer. A pair is sent when it is due, whether
earlier ones are answered or not.
"""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import uvloop

import ground
from agents import Agent, connect, new_agents
from ground import Client, Ground, Report

PAIRS_A_SECOND = 50
UPLOADS_A_SECOND = 2
ROWS_OF_AN_UPLOAD = 1_000


@dataclass
class Times:
    """Seconds of each answer, by what was asked."""

    beats: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)


def some_rows(inventory: Path) -> bytes:
    lines = gzip.decompress(inventory.read_bytes()).splitlines(keepends=True)
    return gzip.compress(b"".join(lines[: ROWS_OF_AN_UPLOAD + 1]), 6, mtime=0)


def upload_of(agent: Agent, bind: str, body: bytes) -> bytes:
    head = f"POST /api/v1/sync HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {agent.key}\r\n"
    return (
        f"{head}Content-Type: application/gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def into_their_cycles(made: Ground, agents: list[Agent], queued: int, body: bytes) -> None:
    """Every agent takes its lock, and the first ones upload."""
    with made.admin() as connection:
        connection.execute("UPDATE sync_state SET last_pricing_at = NULL")
    for number, agent in enumerate(agents):
        client = Client(made.settings.bind, agent.key)
        status, _, told = client.request("GET", f"/api/v1/sync/pending?agent_id={agent.name}")
        assert (status, b'"sync"' in told) == (200, True), told
        if number < queued:
            status, _, told = client.request(
                "POST", "/api/v1/sync", body, Content_Type="application/gzip"
            )
            assert status == 202, told
        client.close()


def still_open(made: Ground) -> int:
    with made.admin() as connection:
        row = connection.execute(
            "SELECT count(*) FROM upload WHERE state IN ('queued', 'processing')"
        ).fetchone()
    assert row is not None
    return int(row[0])


def load(bind: str, agents: list[Agent], queued: int, seconds: int, body: bytes) -> Times:
    async def run() -> Times:
        times, running = Times(), set[asyncio.Task[None]]()
        connections = [await connect(bind) for _ in agents]
        sender = await connect(bind)

        async def come_by(number: int, due: float) -> None:
            connection = connections[number]
            async with connection.turn:
                for request, kept in zip(
                    agents[number].pair(bind),
                    (times.beats, times.waiting if number < queued else times.again),
                    strict=True,
                ):
                    await connection.ask(request)
                    kept.append(perf_counter() - due)
                    due = perf_counter()

        async def upload(number: int) -> None:
            async with sender.turn:
                # A seller whose upload is queued sends another: what its polls cost does not
                # change.
                await sender.ask(upload_of(agents[number % queued], bind, body), b"HTTP/1.1 202")

        def begin(task: asyncio.Task[None]) -> None:
            running.add(task)
            task.add_done_callback(running.discard)

        started = perf_counter()
        for number in range(PAIRS_A_SECOND * seconds):
            due = started + number / PAIRS_A_SECOND
            if (early := due - perf_counter()) > 0:
                await asyncio.sleep(early)
            begin(asyncio.create_task(come_by(number * 7 % len(agents), due)))
            if number % (PAIRS_A_SECOND // UPLOADS_A_SECOND) == 0:
                begin(asyncio.create_task(upload(number)))
        await asyncio.gather(*running)
        for connection in (*connections, sender):
            connection.close()
        return times

    return uvloop.run(run())


def at(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)] * 1000


def measure(data: Path, rows: int, agents: int, queued: int, seconds: int) -> Report:
    report = Report(f"Polls of {agents} agents beside a queue of {queued} imports")
    with ground.ground(data, rows, catalogs=False) as made:
        body = some_rows(made.inventory)
        sellers = new_agents(made, agents)
        with ground.service(made, workers=0):
            into_their_cycles(made, sellers, queued, body)
        with ground.service(made, workers=1):
            before = still_open(made)
            times = load(made.settings.bind, sellers, queued, seconds, body)
            report.note(
                f"uploads open: {before} before, {still_open(made)} after,"
                f" {UPLOADS_A_SECOND} a second came"
            )
    named = {
        "heartbeat": times.beats,
        "poll, waiting": times.waiting,
        "poll, told again": times.again,
    }
    for name, kept in named.items():
        report.note(
            f"{name:<17} p50 {at(kept, 0.5):.1f} ms, p99 {at(kept, 0.99):.1f} ms, n {len(kept)}"
        )
    for share in (0.5, 0.99):
        polls = at([*times.waiting, *times.again], share)
        report.figure(f"a poll / a heartbeat, p{share * 100:.0f}", polls / at(times.beats, share))
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, agents=500, queued=300, seconds=30)

"""`python bench/agents.py [--rounds 5]`: 1,000 agents with keys of their own, each POST
/heartbeat, then GET /sync/pending, in the steady state (nothing to do): the real stack with 2 web
processes against a raw ASGI program on granian, 2 processes, that reads one primary-key row a
request.

They take turns for the most that each carries; then every agent comes by on a connection of its
own at a fixed rate, 70 % of the most that those connections carry, and latency counts from when a
pair was due. The load is made on the same cores as the servers run on.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import shutil
import statistics
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import cast

import psutil
import uvloop
from argon2 import PasswordHasher

import ground
from cardsync.access import passwords
from cardsync.platform.database.session import Database
from cardsync.shop.accounts import sellers
from ground import Ground, Report

AGENTS = 1_000
WEB_PROCESSES = 2
CONNECTIONS = 64
SECONDS = 4
STEADY_SECONDS = 12
SHARE = 0.7
# Turns until every process has met every agent.
WARM_UP = 2
# An agent's pair comes every so many seconds.
EVERY = 30
BODY = '{"version":"1.2.3","platform":"linux/x86_64"}'
WAITS = {"action": "wait", "reason": "no_sync_needed", "sync_requested": False}

# Every thread takes the agents in turn, a heartbeat and then the poll of each.
SCRIPT = """
local requests, at = {}, 0
function init()
  for line in io.lines("%(keys)s") do
    local key, agent = line:match("(%%S+) (%%S+)")
    wrk.headers["Authorization"] = "Bearer " .. key
    wrk.headers["Content-Type"] = "application/json"
    requests[#requests + 1] = wrk.format("POST", "/api/v1/heartbeat", nil, '%(body)s')
    wrk.headers["Content-Type"] = nil
    requests[#requests + 1] = wrk.format("GET", "/api/v1/sync/pending?agent_id=" .. agent)
  end
end
function request()
  at = at %% #requests + 1
  return requests[at]
end
"""


@dataclass(frozen=True)
class Agent:
    seller_id: int
    key: str

    @property
    def name(self) -> str:
        return f"agent-{self.seller_id}"

    def pair(self, bind: str) -> tuple[bytes, bytes]:
        """The heartbeat and the poll as they go over the wire."""
        head = f"Host: {bind}\r\nAuthorization: Bearer {self.key}\r\n"
        typed = f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        beat = f"POST /api/v1/heartbeat HTTP/1.1\r\n{head}{typed}\r\n{BODY}"
        poll = f"GET /api/v1/sync/pending?agent_id={self.name} HTTP/1.1\r\n{head}\r\n"
        return beat.encode(), poll.encode()


def new_agents(made: Ground, count: int = AGENTS) -> list[Agent]:
    """Sellers whose last cycle ended a moment ago."""
    usual, passwords.HASHER = (
        passwords.HASHER,
        PasswordHasher(time_cost=1, memory_cost=8, parallelism=1),
    )

    async def make(database: Database) -> list[Agent]:
        agents = []
        for n in range(count):
            async with database.shared() as session:
                who = {"name": f"Seller {n}", "email": f"agent-{n}@example.invalid"}
                seller = await sellers.create_seller(
                    session, **who, plan="founder", lines=ground.LINES, sync_mode="full"
                )
            agents.append(Agent(seller.seller_id, seller.api_key))
        return agents

    try:
        agents = made.in_database(make)
    finally:
        passwords.HASHER = usual
    with made.admin() as connection:
        connection.execute(
            "UPDATE sync_state SET last_pricing_at = now(), last_sync_at = now(),"
            " history_fetched_at = now()"
        )
        connection.execute("VACUUM ANALYZE")
    made.settle()
    return agents


@contextmanager
def servers(made: Ground) -> Iterator[dict[str, tuple[str, psutil.Process]]]:
    """The stack and the floor, up and idle: (address, process) of each."""
    settings = made.settings.model_copy(update={"web_workers": WEB_PROCESSES})
    stack = ground.service(replace(made, settings=settings), workers=1)
    with (
        stack as [web, _],
        ground.floor_server(made, "poll", workers=str(WEB_PROCESSES)) as (bind, floor),
    ):
        assert web.process is not None
        yield {"ours": (settings.bind, psutil.Process(web.process.pid)), "floor": (bind, floor)}


class Connection(asyncio.Protocol):
    """One kept-alive connection with one request under way; as little Python as it takes."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one by its methods, not by its class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        found = re.search(rb"content-length: ([0-9]+)", head, re.IGNORECASE)
        if found and len(body) == int(found[1]) and self._answer is not None:
            answer, self._received = self._received, b""
            self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("closed"))

    async def ask(self, request: bytes, answers: bytes = b"HTTP/1.1 200") -> bytes:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        answer = await self._answer
        assert answer.startswith(answers), answer
        return answer

    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


async def connect(bind: str) -> Connection:
    host, _, port = bind.rpartition(":")
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, int(port))
    return connection


def most_with_wrk(bind: str, folder: Path) -> float:
    """Pairs a second."""
    script = folder / "agents.lua"
    script.write_text(SCRIPT % {"keys": folder / "agents.txt", "body": BODY})
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{SECONDS}s",
        "-s",
        str(script),
        f"http://{bind}",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in told, told
    found = re.search(r"Requests/sec:\s+([0-9.]+)", told)
    assert found is not None, told
    return float(found[1]) / 2


def most_with_sockets(
    bind: str, pairs: list[tuple[bytes, bytes]], connections: int = CONNECTIONS
) -> float:
    async def load() -> int:
        waiting, done = deque(pairs), 0
        ending = perf_counter() + SECONDS

        async def work() -> None:
            nonlocal done
            connection = await connect(bind)
            while perf_counter() < ending:
                waiting.rotate(-1)
                for request in waiting[0]:
                    await connection.ask(request)
                done += 1
            connection.close()

        await asyncio.gather(*(work() for _ in range(connections)))
        return done

    return uvloop.run(load()) / SECONDS


def at_fixed_rate(bind: str, pairs: list[tuple[bytes, bytes]], rate: float) -> list[float]:
    """Seconds of each request, every agent on a connection of its own that stays open.

    A pair starts when it is due, whether earlier ones are answered or not, and its heartbeat's
    time counts from then; the poll follows the answer, as the agent does it.
    """

    async def load() -> list[float]:
        agents = [(await connect(bind), pair) for pair in pairs]
        took: list[float] = []

        async def come_by(number: int, due: float) -> None:
            connection, pair = agents[number % len(agents)]
            async with connection.turn:
                for request in pair:
                    await connection.ask(request)
                    now = perf_counter()
                    took.append(now - due)
                    due = now

        started, running = perf_counter(), set()
        for number in range(int(rate * STEADY_SECONDS)):
            due = started + number / rate
            if (early := due - perf_counter()) > 0:
                await asyncio.sleep(early)
            task = asyncio.create_task(come_by(number, due))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)
        for connection, _ in agents:
            connection.close()
        return took

    # The load's own garbage collection would count as the server's latency.
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(load())
    finally:
        gc.enable()


def waits(bind: str, agent: Agent) -> None:
    """The scene is what it should be: nothing to do."""
    client = ground.Client(bind, agent.key)
    status, _, body = client.request("GET", f"/api/v1/sync/pending?agent_id={agent.name}")
    assert (status, json.loads(body)) == (200, WAITS), body
    client.close()


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("1,000 agents: heartbeat and poll")
    load = "wrk" if shutil.which("wrk") else "sockets"
    with ground.ground(data, rows, catalogs=False) as made:
        agents = new_agents(made)
        (made.folder / "agents.txt").write_text(
            "".join(f"{agent.key} {agent.name}\n" for agent in agents)
        )
        with servers(made) as running:
            pairs = {
                name: [agent.pair(bind) for agent in agents] for name, (bind, _) in running.items()
            }
            for bind, _ in running.values():
                waits(bind, agents[0])
            database = made.postmaster()
            most: dict[str, list[float]] = {"ours": [], "floor": []}
            costs: dict[str, list[float]] = {"ours": [], "floor": []}
            for turn in range(-WARM_UP, rounds):
                for name in list(most) if turn % 2 else reversed(list(most)):
                    bind, process = running[name]
                    before = ground.cpu_seconds(process) + ground.cpu_seconds(database)
                    rate = (
                        most_with_wrk(bind, made.folder)
                        if load == "wrk"
                        else most_with_sockets(bind, pairs[name])
                    )
                    spent = ground.cpu_seconds(process) + ground.cpu_seconds(database) - before
                    if turn >= 0:
                        most[name].append(rate)
                        costs[name].append(spent / (rate * SECONDS) * 1000)
            for name in most:
                middle, high, cost = (
                    statistics.median(most[name]),
                    max(most[name]),
                    statistics.median(costs[name]),
                )
                told = f"{cost:.2f} ms CPU a pair with the database's (min {min(costs[name]):.2f})"
                report.note(
                    f"{name:<6} {middle:,.0f} pairs/s (max {high:,.0f}), {told}, load by {load}"
                )
            steady(report, running, pairs)
    ratio = statistics.median(
        ours / floor for ours, floor in zip(most["ours"], most["floor"], strict=True)
    )
    report.figure("heartbeat + poll a second / raw ASGI", ratio)
    cpu = statistics.median(
        floor / ours for ours, floor in zip(costs["ours"], costs["floor"], strict=True)
    )
    report.note(
        f"CPU of raw ASGI / CPU of a heartbeat + poll, each with the database's: {cpu:.2f} x"
    )
    return report


def steady(
    report: Report,
    running: dict[str, tuple[str, psutil.Process]],
    pairs: dict[str, list[tuple[bytes, bytes]]],
) -> None:
    carried = statistics.median(
        most_with_sockets(running["ours"][0], pairs["ours"], AGENTS) for _ in range(3)
    )
    rate = carried * SHARE
    for name, (bind, _) in running.items():
        turns = [sorted(at_fixed_rate(bind, pairs[name], rate)) for _ in range(5)]
        p50, p99 = (
            statistics.median(turn[int(len(turn) * share)] for turn in turns) * 1000
            for share in (0.5, 0.99)
        )
        worst = max(turn[int(len(turn) * 0.99)] for turn in turns) * 1000
        report.note(
            f"{name:<6} at {rate:,.0f} pairs/s: p50 {p50:.1f} ms,"
            f" p99 {p99:.1f} ms (worst of 5 turns {worst:.1f})"
        )
        if name == "ours":
            report.figure("p99 of a request at 70 % of the most, 1,000 connections", p99, "ms")
    report.note(
        f"{rate * EVERY:,.0f} agents carried with a pair every {EVERY} s at that rate;"
        f" {carried * EVERY:,.0f} at the most"
    )


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

"""`python bench/assistants.py [--rounds 300]`: calls of tools at /mcp against the same reads over
the API, with one client and with 50; a program of 200 calls against the same 200 reads; the start
of a program; the look-up of a token against that of a key; and the statements of a write that is
sent by a session that reads.

Both doors are asked in turn, over connections that stay open, by a client that costs next to
nothing.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import Awaitable
from pathlib import Path
from time import perf_counter

import httpx

import ground
import import_inventory
from cardsync.access import access_tokens
from cardsync.access.audience import audience
from cardsync.access.caller import KeyRing, caller_of, owner_of
from cardsync.asgi import create_app
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from ground import Ground, Report

# Behind our own modules: both folders have one that is called pages.
sys.path.append(str(ground.HERE.parent / "tests"))

from sent_statements import counting

CLIENTS = 50
CALLS = 200
NEW, OLD = "2026-07-28", "2025-11-25"
READS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("/api/lists", "lists_list", {}),
    ("/api/cards?search=price%3E5&per_page=50", "inventory_list_cards",
     {"search": "price>5", "per_page": 50}),
)  # fmt: skip


class Connection:
    """One kept-alive connection; `ask` sends the bytes of a request and returns the body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, bind: str) -> Connection:
        host, _, port = bind.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        [length] = [
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        body = await self._reader.readexactly(length)
        assert b" 200 " in head.partition(b"\r\n")[0], (head, body[:300])
        return body

    def close(self) -> None:
        self._writer.close()


def reading(bind: str, key: str, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


def calling(bind: str, key: str, tool: str, arguments: dict[str, object], version: str) -> bytes:
    params: dict[str, object] = {"name": tool, "arguments": arguments}
    more = ""
    if version == NEW:
        prefix = "io.modelcontextprotocol/"
        params["_meta"] = {f"{prefix}protocolVersion": NEW, f"{prefix}clientCapabilities": {}}
        more = f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"MCP-Protocol-Version: {version}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def timed(connection: Connection, request: bytes) -> float:
    started = perf_counter()
    body = await connection.ask(request)
    took = perf_counter() - started
    assert b'"isError":true' not in body, body[:500]
    return took


async def crowd(bind: str, request: bytes, rounds: int) -> list[float]:
    """The seconds of all answers to so many clients at once, each asking again and again."""
    connections = [await Connection.open(bind) for _ in range(CLIENTS)]

    async def one(connection: Connection) -> list[float]:
        return [await timed(connection, request) for _ in range(rounds)]

    found = await asyncio.gather(*map(one, connections))
    for connection in connections:
        connection.close()
    return [seconds for each in found for seconds in each]


async def compare(report: Report, bind: str, key: str, rounds: int) -> None:
    connection = await Connection.open(bind)
    for path, tool, arguments in READS:
        ways = {
            "API": reading(bind, key, path),
            NEW: calling(bind, key, tool, arguments, NEW),
            OLD: calling(bind, key, tool, arguments, OLD),
        }
        alone: dict[str, list[float]] = {way: [] for way in ways}
        together: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(rounds + 10):
            for way, request in ways.items():
                took = await timed(connection, request)
                if turn >= 10:
                    alone[way].append(took)
        for _ in range(5):
            for way, request in ways.items():
                together[way] += await crowd(bind, request, max(2, rounds // 50))
        for clients, times in ((1, alone), (CLIENTS, together)):
            middle = {way: statistics.median(took) for way, took in times.items()}
            told = ", ".join(f"{way} {seconds * 1000:.1f} ms" for way, seconds in middle.items())
            report.note(f"{tool}, {clients} at once, p50: {told}")
            for version in (NEW, OLD):
                what = f"{tool} by {version} / the read over the API, {clients} at once, p50"
                report.figure(what, middle[version] / middle["API"])
    connection.close()


async def programs(report: Report, bind: str, key: str, rounds: int) -> None:
    connection = await Connection.open(bind)
    api = reading(bind, key, "/api/lists")
    many = f"for n in range({CALLS}): lists_list()"
    program = calling(bind, key, "run", {"program": many}, OLD)
    least = calling(bind, key, "run", {"program": "1"}, OLD)
    cold = await timed(connection, least)
    whole, single, start = [], [], []
    for _ in range(max(3, rounds // 30)):
        whole.append(await timed(connection, program))
        single.append(sum([await timed(connection, api) for _ in range(CALLS)]))
        start += [await timed(connection, least) for _ in range(10)]
    connection.close()
    report.note(f"{CALLS} calls: {ground.spread(whole)}, the reads: {ground.spread(single)}")
    report.note(f"the first program of a process: {cold * 1000:.0f} ms")
    what = f"{CALLS} calls in one program / the same reads over the API, p50"
    report.figure(what, statistics.median(whole) / statistics.median(single))
    report.figure("a program's start with its request, p50", statistics.median(start) * 1000, "ms")


def refusal(report: Report, made: Ground, seller_id: int) -> None:
    async def count(database: Database) -> None:
        async with database.shared() as session:
            minted = await access_tokens.mint(
                session, seller_id, "bench", [access_tokens.READ], clock.now()
            )
        app = create_app(made.settings)
        async with app.lifespan():
            transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
            headers = {
                "Authorization": f"Bearer {minted.token}",
                "Accept": "application/json, text/event-stream",
            }
            params = {"name": "lists_create", "arguments": {"name": "x"}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            async with httpx.AsyncClient(
                transport=transport, base_url=made.settings.origin, headers=headers
            ) as http:
                await http.post("/mcp", json=message)
                async with counting(app.state.database) as counted:
                    answer = await http.post("/mcp", json=message)
        assert answer.status_code == 403, answer.text
        # Beside it, a connection prepares a statement once, and a process tells the others once a
        # second what was spent of the limits.
        sent = len([
            text for text in counted.sent
            if text.startswith(("Query", "Execute"))
            and "PREPARE" not in text
            and "rate_limit" not in text
        ])  # fmt: skip
        report.figure("statements of a write in read mode", sent, "")

    made.in_database(count)


def introspection(report: Report, made: Ground, seller_id: int, api_key: str, rounds: int) -> None:
    """Compare finding the caller of a token with finding the caller of a key: one indexed read."""

    async def count(database: Database) -> None:
        now = clock.now()
        async with database.shared() as session:
            minted = await access_tokens.mint(
                session, seller_id, "bench", access_tokens.SCOPES, now
            )
        of_key = await owner_of(KeyRing(database), f"Bearer {api_key}")
        ways = {
            "key": lambda: caller_of(database, *of_key),
            "token": lambda: access_tokens.caller_with_token(
                database, seller_id, minted.token_id, audience(made.settings, None)
            ),
        }
        for clients in (1, CLIENTS):
            took: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, ask in ways.items():
                    started = perf_counter()
                    for _ in range(max(1, 20 // clients)):
                        await asyncio.gather(*(ask() for _ in range(clients)))
                    took[way].append(perf_counter() - started)
            ratios = [token / key for key, token in zip(*took.values(), strict=True)]
            each = statistics.median(took["token"]) / (clients * max(1, 20 // clients))
            report.note(f"tokens found per second, {clients} at once: {1 / each:,.0f}")
            what = f"a token's caller / a key's, {clients} at once, median of pairs"
            report.figure(what, statistics.median(ratios))

    made.in_database(count)


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Assistants")
    with ground.ground(data, min(rows, 20_000), catalogs=False) as made:
        seller = made.new_seller()
        with ground.service(made, workers=1):
            bind = made.settings.bind
            import_inventory.upload(made, seller, made.inventory.read_bytes())
            client = ground.Client(bind, seller.api_key)
            for number in range(20):
                body = json.dumps({"name": f"List {number}"}).encode()
                client.request("POST", "/api/lists", body, Content_Type="application/json")
            run(compare(report, bind, seller.api_key, rounds))
            run(programs(report, bind, seller.api_key, rounds))
        introspection(report, made, seller.seller_id, seller.api_key, rounds)
        refusal(report, made, seller.seller_id)
    return report


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        await work

    asyncio.run(main())


if __name__ == "__main__":
    options = ground.arguments(__doc__, rounds=300)
    measure(options.data, options.rows, options.rounds).show()

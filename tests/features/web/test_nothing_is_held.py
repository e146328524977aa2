"""A request that is refused or left holds nothing afterwards: no slot, no connection, no transaction.
The cases follow from the routes, so a new parameter has one.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from litestar.routes import HTTPRoute
from sqlalchemy import text

from browsers import signed_in
from cardsync.platform.database.session import Database
from requests_of_routes import BODIES, DOCUMENT
from waiting import eventually

# The libraries' own words for what they cannot read.
WORDS_OF_OTHERS = re.compile(
    r"Expected `|, got `|Validation failed|Object missing|JSON is malformed"
)
# No flag, number, day or id; nothing at all; and a number that fits nowhere.
BAD = ("yes", "", "9" * 30)
BAD_BODIES = (
    b"",
    b"{",
    b"[1]",
    b'"x"',
    b"null",
    b'{"revision": [], "name": {}, "ids": 1}',
    b"\xff",
)
JSON = {"Content-Type": "application/json"}


def held(database: Database) -> dict[str, int]:
    """What is taken of a process's slots and connections."""
    lines = list(database.slots._of.values())
    free = sum(slots._value for line in lines for slots in line.slots)
    taken = {"slots": sum(database.slots.most) * len(lines) - free}
    taken["sessions"] = database.engine.pool.checkedout()  # type: ignore[attr-defined]
    for name, pool in (("hot", database.hot), ("readings", database.readings.pool)):
        stats = pool.get_stats()
        taken[name] = stats["pool_size"] - stats["pool_available"]
    return taken


async def holds_nothing(database: Database, what: str) -> None:
    """A flush of the process may hold a connection for a moment."""
    await eventually(lambda: not any(held(database).values()), f"{what} to leave nothing", 5)


def _a_value(component: Any) -> str:
    if isinstance(component, str):
        return component
    return "999999999" if component.type is int else "premium"


def bad_requests(routes: list[Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A bad value for every parameter and header of every route, and bad bodies where one is read:
    the route, its address, and what is sent.
    """
    for route in routes:
        if not isinstance(route, HTTPRoute):
            continue
        address = "/" + "/".join(map(_a_value, route.path_components))
        for method, (_, model) in route.route_handler_map.items():
            if method in ("HEAD", "OPTIONS"):
                continue
            name = f"{method} {route.path_format}"
            described = DOCUMENT["paths"].get(route.path_format, {}).get(method.lower(), {})
            body = {"json": BODIES[name]} if name in BODIES else {}
            places = {
                "params": model.expected_query_params,
                "headers": model.expected_header_params,
            }
            for place, taken in places.items():
                for parameter in sorted(each.field_alias for each in taken):
                    for value in BAD:
                        yield name, address, {place: {parameter: value}, **body}
            if "data" in model.expected_reserved_kwargs or "requestBody" in described:
                for content in BAD_BODIES:
                    yield name, address, {"content": content, "headers": JSON}


async def test_a_request_that_cannot_be_read_leaves_nothing_held(service, a_seller):
    """It alone sends a bad value for every parameter of every route, and bad bodies, about 1,000
    requests: what one of them would hold, no other request gets back.
    """
    seller = await a_seller()
    browser = await signed_in(seller)
    database = service.app.state.database
    wrong = []
    for name, address, sent in bad_requests(service.app.routes):
        method = name.split(" ")[0]
        answer = await seller.http.request(method, address, **sent)
        if answer.status_code in (401, 403):
            answer = await browser.send(method, address, **sent)
        said = f"{name} {sent}: {answer.status_code} {answer.text[:300]}"
        if answer.status_code >= 500 or WORDS_OF_OTHERS.search(answer.text):
            wrong.append(said)
        await holds_nothing(database, said)
    assert not wrong, "\n".join(wrong)


# A route of each way to the database: a session, a bounded one, a reading, a poll, a body that is
# read in parts, and a form of a page.
LEFT = {
    "POST /api/lists": b'{"name": "Binder"}',
    "POST /api/pricing/rules?confirm=false": b'{"name": "Dear", "query": "price>5"}',
    "GET /api/cards?search=bolt": b"",
    "GET /api/orders": b"",
    "GET /api/v1/sync/pending": b"",
    "POST /api/v1/sync/orders": b'[{"order_number": "A-1", "order_date": "2026-11-01"}]' * 50,
    "POST /api/pull_sessions": b"{}",
}


class Client:
    """A client that sends its body in two parts, and then nothing, or that it left."""

    def __init__(self, body: bytes, leaves_after: int) -> None:
        half = len(body) // 2
        self._parts = [body[:half], body[half:]][:leaves_after]
        self._leaves = leaves_after <= 2

    async def receive(self) -> dict[str, Any]:
        if self._parts:
            more = len(self._parts) > 1 or self._leaves
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": more}
        if self._leaves:
            return {"type": "http.disconnect"}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Any) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("route", LEFT)
async def test_a_client_who_leaves_leaves_nothing_held(service, a_seller, route):
    """It alone ends a request at every step of its work: in the middle of the body, and after each
    of the loop's first turns.
    """
    seller = await a_seller()
    database = service.app.state.database
    method, _, target = route.partition(" ")
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (b"authorization", f"Bearer {seller.api_key}".encode()),
            (b"content-type", b"application/json"),
            (b"host", b"127.0.0.1"),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "root_path": "",
        "extensions": {},
    }
    for leaves_after in (0, 1):
        client = Client(LEFT[route], leaves_after)
        await service.app({**scope, "state": {}}, client.receive, client.send)
        await holds_nothing(database, f"{route}, left after part {leaves_after}")
    ended = 0
    for turns in range(0, 400, 3):
        client = Client(LEFT[route], 3)
        answering = asyncio.create_task(
            service.app({**scope, "state": {}}, client.receive, client.send)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        ended += answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        await holds_nothing(database, f"{route}, left after {turns} turns")
    assert ended > 0


async def test_a_request_that_leaves_a_connection_in_the_making_leaves_no_backend(owner_url):
    """It alone looks at the server: a connection that nobody has is not among a pool's figures."""
    before = "AND pid <> pg_backend_pid() AND query = '' AND datname = current_database()"
    counted = (
        f"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' {before}"
    )
    gc.collect()
    gc.disable()
    try:
        for turns in range(80):
            async with Database.open(owner_url, pool=1, hot_pool=1) as database:

                async def read(database: Database = database) -> None:
                    async with database.sessions() as session:
                        await session.execute(text("SELECT 1"))

                reading = asyncio.create_task(read())
                for _ in range(turns):
                    await asyncio.sleep(0)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        async with await psycopg.AsyncConnection.connect(owner_url, autocommit=True) as looking:

            async def none_is_left() -> bool:
                return (await (await looking.execute(counted)).fetchone()) == (0,)

            await eventually(none_is_left, "all backends to end", 5)
    finally:
        gc.enable()

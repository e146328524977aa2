"""One seller's simultaneous requests leave connections for all others, whatever they ask for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from sqlalchemy import event, text

import cardsync
from browsers import Browser, signed_in
from builders import Seller, SellerBuilder, Service, a_row, a_shop, an_order
from cardsync.asgi import create_app
from cardsync.platform.database import connections, seller_slots
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.sales.orders import accept_orders
from requests_of_routes import BODIES

AT_ONCE = 60
OTHERS = ("/today", "/settings/shop", "/cards", "/orders", "/pricing", "/pricing/presets")
# Two end what the test stands on, and the look at the health is the process's own.
NOT_ASKED = {"DELETE /api/session", "POST /sign-out", "GET /readyz"}


EXPORTS = (
    "/api/cards/export.csv",
    "/api/orders/export.csv",
    "/api/customers/export.csv",
    "/api/lists/export.csv",
    "/api/v1/agent/activity/export.csv",
    "/api/pricing/runs/export.csv",
    "/api/export/everything",
)
SOURCE = Path(cardsync.__file__).parent


@pytest.fixture(scope="module")
async def quiet(service, settings, alive):
    """An application that does nothing of its own accord: each connection is a request's."""
    app = create_app(
        settings.model_copy(
            update=dict.fromkeys(
                (
                    "last_seen_flush_seconds",
                    "rate_limit_exchange_seconds",
                    "release_refresh_seconds",
                ),
                3600,
            )
        )
    )
    async with alive(app):
        yield replace(service, app=app)


@dataclass
class Shop:
    """A seller with a card, and its owner's browser: both use the quiet application."""

    seller: Seller
    browser: Browser


async def in_shop(a_seller: SellerBuilder, quiet: Service) -> Shop:
    made = await a_shop(a_seller, a_row(1, market="2.00"))
    http = quiet.client(Authorization=f"Bearer {made.api_key}")
    seller = replace(made, service=quiet, http=http)
    browser = await signed_in(seller)
    # The first use names the browser, before anything is known of the seller.
    await browser.get("/api/session")
    return Shop(seller, browser)


@contextmanager
def checkouts(database: Database) -> Iterator[list[int]]:
    """The numbers of connections that were taken while the block runs, in the order of taking."""
    taken: list[int] = []
    before = database.readings.pool.get_stats().get("requests_num", 0)

    def note(*_: Any) -> None:
        taken.append(1)

    pool = database.engine.sync_engine.pool
    event.listen(pool, "checkout", note)
    try:
        yield taken
    finally:
        event.remove(pool, "checkout", note)
        taken += [1] * (database.readings.pool.get_stats().get("requests_num", 0) - before)


@asynccontextmanager
async def begun(shop: Shop, path: str) -> AsyncIterator[None]:
    """Ask for a file, and read nothing behind the first part of its body."""
    request = shop.browser.http.build_request("GET", path)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": ("test", 80),
        "client": ("127.0.0.1", 1),
    }
    first, left = asyncio.Event(), asyncio.Event()
    statuses: list[Any] = []
    body = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in body:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status"))
        if message["type"] == "http.response.body":
            first.set()
            await asyncio.Event().wait()

    asking = asyncio.create_task(shop.seller.service.app(scope, receive, send))
    try:
        async with asyncio.timeout(30):
            await first.wait()
        assert statuses[0] == 200
        yield
    finally:
        left.set()
        await asking


@asynccontextmanager
async def all_slots(database: Database, seller_id: int) -> AsyncIterator[None]:
    """Hold every slot of the seller, as its other requests might."""
    async with AsyncExitStack() as held:
        for work in (Work.SHORT, Work.PRICES_ALL):
            for _ in range(database.slots.most[work]):
                with seller_slots.answering():
                    await held.enter_async_context(database.slots.of(seller_id, work))
        yield


async def settled(
    database: Database, seller_id: int, tasks: Sequence[asyncio.Task[Any]], running: int = 0
) -> None:
    """Wait until each request has its answer or waits for a slot, apart from those that run."""

    def over() -> int:
        return sum(task.done() for task in tasks)

    def waiting() -> int:
        return sum(map(database.slots.waiting, (seller_id, seller_slots.NOBODY)))

    async with asyncio.timeout(60):
        while over() + waiting() + running < len(tasks):
            await asyncio.sleep(0.01)


async def test_sixty_presets_of_one_seller_leave_the_others_their_pages(a_seller, quiet):
    greedy, other = await in_shop(a_seller, quiet), await in_shop(a_seller, quiet)
    database: Database = quiet.app.state.database
    held = "SELECT 1 FROM sync_state WHERE seller_id = :id FOR UPDATE"
    seller_id = greedy.seller.id
    async with quiet.database.tenant(seller_id) as session:
        # A preview waits for the lock of this row, so none is over before the others began.
        await session.execute(text(held), {"id": seller_id})
        asked = [
            asyncio.create_task(greedy.seller.get("/api/pricing/presets")) for _ in range(AT_ONCE)
        ]
        await settled(database, seller_id, asked, running=1)
        answers = [await other.browser.get(path) for path in OTHERS]
        assert [answer.status_code for answer in answers] == [200] * len(OTHERS)
        # Its own short requests have slots, too.
        assert (await greedy.browser.get("/settings/shop")).status_code == 200
        assert database.slots.waiting(seller_id) == AT_ONCE - 1
        for task in asked[1:]:
            task.cancel()
        await asyncio.gather(*asked[1:], return_exceptions=True)
    assert (await asked[0]).status_code == 200


async def test_many_uploads_of_orders_let_another_seller_have_a_turn(a_seller, quiet):
    """One body is checked at a time, whoever sent it."""
    greedy, other = await in_shop(a_seller, quiet), await in_shop(a_seller, quiet)
    turns = accept_orders._checking
    sent: list[asyncio.Task[Any]] = []

    async def waiting(number: int) -> None:
        async with asyncio.timeout(30):
            while turns.waiting < number:
                await asyncio.sleep(0.01)

    with seller_slots.answering():
        seller_slots.asked_by(greedy.seller.id)
        async with turns.turn():
            sent += [asyncio.create_task(a_body(greedy)) for _ in range(AT_ONCE)]
            await waiting(AT_ONCE)
            sent.append(asyncio.create_task(a_body(other)))
            await waiting(AT_ONCE + 1)
    assert await sent[-1] == 202
    assert sum(task.done() for task in sent) < AT_ONCE // 2
    assert set(await asyncio.gather(*sent)) == {202}


async def a_body(shop: Shop) -> int:
    return (await shop.seller.send("/orders", [an_order()])).status_code


def requests_of(app: Litestar) -> Iterator[tuple[str, str, str, bool]]:
    """Yield a request of every route that knows its caller: the route, its method, its path, and
    whether it takes a session.
    """
    for route in app.routes:
        for handler in getattr(route, "route_handlers", []):
            for method in sorted(handler.http_methods - {"HEAD", "OPTIONS"}):
                name = f"{method} {re.sub(r':[a-z]+}', '}', route.path)}"
                path = re.sub(r"{\w+:int}", "1", route.path)
                path = re.sub(r"{\w+(:\w+)?}", "premium", path)
                if name not in NOT_ASKED:
                    yield name, method, path, "callers" in handler.opt


async def sent(shop: Shop, route: str, method: str, path: str, session: bool) -> int:
    body = {} if method == "GET" else {"json": BODIES.get(route, {})}
    send = shop.browser.send if session else shop.seller.http.request
    return (await send(method, path, **body)).status_code


async def test_every_route_takes_its_connections_from_slots(a_seller, quiet, monkeypatch):
    """Requests without a caller, such as a sign-in, have slots of their own."""
    # A slow machine takes longer to begin hundreds of requests than the first of them may wait.
    monkeypatch.setattr(seller_slots, "WAIT_SECONDS", 300)
    greedy, other = await in_shop(a_seller, quiet), await in_shop(a_seller, quiet)
    database: Database = quiet.app.state.database
    wanted = list(requests_of(quiet.app))
    async with all_slots(database, greedy.seller.id), all_slots(database, seller_slots.NOBODY):
        with checkouts(database) as taken:
            asked = [asyncio.create_task(sent(greedy, *one)) for one in wanted]
            await settled(database, greedy.seller.id, asked)
        assert taken == []
        assert database.slots.waiting(greedy.seller.id) > len(wanted) // 2
        answers = [await other.browser.get(path) for path in OTHERS]
        assert [answer.status_code for answer in answers] == [200] * len(OTHERS)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def test_nothing_but_the_database_package_takes_connections_of_the_pools():
    """The few connections of polls are shared by all sellers: a message carries the reads of many."""
    takes = re.compile(r"database\.(sessions|hot|engine|readings\.pool)\b")
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if takes.search(path.read_text()) and path.parent != SOURCE / "database"
    }
    assert found == {"access/caller.py", "access/rate_limits/buckets.py"}


async def test_a_request_that_finds_no_slot_is_told_to_come_again(a_seller, quiet, monkeypatch):
    monkeypatch.setattr(seller_slots, "WAIT_SECONDS", 0)
    shop = await in_shop(a_seller, quiet)
    async with all_slots(quiet.app.state.database, shop.seller.id):
        answer = await shop.seller.get("/api/pricing/rules")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["error"] == (
        "other requests from this account are running; try again in a few seconds"
    )
    assert (await shop.seller.get("/api/pricing/rules")).status_code == 200


async def test_exports_that_nobody_reads_hold_no_slot(a_seller, quiet):
    shop = await in_shop(a_seller, quiet)
    database: Database = quiet.app.state.database
    for export in EXPORTS:
        async with AsyncExitStack() as unread:
            # A seller has one archive at a time: its made part is on the disk.
            is_archive = export == "/api/export/everything"
            for _ in range(1 if is_archive else 2 * database.slots.most[Work.SHORT]):
                await unread.enter_async_context(begun(shop, export))
            assert (await shop.seller.get("/api/pricing/rules")).status_code == 200


async def test_a_file_that_was_begun_waits_for_its_next_part(monkeypatch):
    monkeypatch.setattr(seller_slots, "WAIT_SECONDS", 0)
    slots = seller_slots.Slots(pool=8, read_pool=3)
    came: list[str] = []

    async def next_part() -> None:
        with seller_slots.answering(), connections.until(connections.Deadline(inf)):
            async with slots.of(1, Work.LONG):
                came.append("part")

    with seller_slots.answering():
        async with AsyncExitStack() as held:
            for _ in range(slots.most[Work.LONG]):
                with seller_slots.answering():
                    await held.enter_async_context(slots.of(1, Work.LONG))
            reading = asyncio.create_task(next_part())
            while not slots.waiting(1):
                await asyncio.sleep(0)
            assert came == []
    await reading
    assert came == ["part"]

"""Every request has an end: bodies that hardly come or never end, answers that do not begin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from litestar import get
from litestar.response import Stream

from builders import a_client
from cardsync.access.patience import POLLED
from cardsync.asgi import create_app
from cardsync.platform.database.copy import read_bytes
from cardsync.platform.database.session import Database


@get("/stuck")
async def stuck() -> None:
    await asyncio.sleep(60)


@get("/streamed")
async def streamed() -> Stream:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(5):
            await asyncio.sleep(0.2)
            yield b"part "

    return Stream(parts())


@get("/copied")
async def copied(database: Database, how: str) -> None:
    async with database.shared() as session:
        await read_bytes(session, f"COPY ({COPIES[how]}) TO STDOUT")


# Of the first one nothing comes before it ends, and of the second one much has come by then.
COPIES = {
    "silent": "SELECT pg_sleep(30)",
    "flowing": "SELECT repeat('x', 10000), pg_sleep(0.01) FROM generate_series(1, 3000)",
}


@pytest.fixture(scope="module")
async def impatient(settings, alive):
    app = create_app(
        settings.model_copy(
            update={
                "request_seconds": 0.6,
                "polled_seconds": 0.3,
                "body_slow_seconds": 0.5,
                "body_seconds": 2,
            }
        )
    )
    app.register(stuck)
    app.register(streamed)
    app.register(copied)
    async with (
        alive(app),
        a_client(app, timeout=30) as http,
    ):
        yield http


def bearer(seller):
    return {"Authorization": f"Bearer {seller.api_key}", "Content-Type": "application/json"}


async def dripping(parts: int, size: int, pause: float):
    yield b'{"version": '
    for _ in range(parts):
        await asyncio.sleep(pause)
        yield b" " * size
    yield b'"1"}'


@pytest.mark.day
async def test_an_answer_that_does_not_begin_in_its_time_is_unavailable(impatient):
    began = time.monotonic()
    answer = await impatient.get("/stuck")
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
        503,
        "service_unavailable",
        "5",
    )
    assert "X-Request-Id" in answer.headers
    assert 0.5 < time.monotonic() - began < 5


@pytest.mark.parametrize("how", COPIES)
async def test_a_request_that_ends_in_the_middle_of_a_copy_leaves_no_connection_in_it(
    impatient, how, caplog
):
    answers = [await impatient.get("/copied", params={"how": how}) for _ in range(2)]
    for answer in answers:
        assert answer.status_code == 503
        # Not that the database is away, which would be another sentence.
        assert answer.json()["error"] == "this took too long to answer; try again"
    assert [record.getMessage() for record in caplog.records if record.levelno >= 30] == []
    assert (await impatient.get("/readyz")).json()["checks"]["database"] == "ok"


@pytest.mark.day
async def test_an_answer_that_has_begun_takes_as_long_as_it_takes(impatient):
    answer = await impatient.get("/streamed")
    assert (answer.status_code, answer.text) == (200, "part " * 5)


@pytest.mark.day
async def test_the_time_of_the_body_is_not_the_answers(settings, alive, a_seller):
    seller = await a_seller()
    app = create_app(settings.model_copy(update={"request_seconds": 2}))
    http = a_client(app)
    async with alive(app), http:
        body = dripping(25, 150, 0.1)
        answer = await http.post("/api/v1/heartbeat", content=body, headers=bearer(seller))
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        (dripping(1, 10, 60), 0.4, 3),
        (dripping(600, 1, 0.05), 0.4, 3),
        # Fast at first, and then not at all: the window that is full gives it one more.
        (dripping(2, 2000, 20), 0.4, 5),
        (dripping(600, 200, 0.1), 1.9, 6),
    ],
    ids=["silent", "slow", "stalled", "endless"],
)
async def test_a_body_that_hardly_comes_or_never_ends_is_a_bad_request(
    impatient, a_seller, body, least, most
):
    seller = await a_seller()
    began = time.monotonic()
    answer = await impatient.post("/api/v1/heartbeat", content=body, headers=bearer(seller))
    assert (answer.status_code, answer.json()["code"], answer.headers["Connection"]) == (
        400,
        "bad_request",
        "close",
    )
    assert least < time.monotonic() - began < most


async def test_what_agents_poll_is_told_sooner(service):
    polled = {
        route.path
        for route in service.app.routes
        for handler in getattr(route, "route_handlers", [])
        if POLLED.items() <= handler.opt.items()
    }
    assert polled == {
        "/api/v1/heartbeat",
        "/api/v1/sync/pending",
        "/api/v1/status",
        "/api/v1/uploads/{upload_id:int}",
    }

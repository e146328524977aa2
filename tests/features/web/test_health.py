"""/healthz and /readyz: alive, and whether everything it depends on is there."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest

from cardsync.asgi import create_app
from cardsync.platform.database.urls import libpq_url


async def test_healthz_says_that_the_process_lives(service):
    async with service.client() as http:
        answer = await http.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def ready(service, query: str = "") -> tuple[int, dict]:
    async with service.client() as http:
        answer = await http.get(f"/readyz{query}")
    return answer.status_code, answer.json()


async def test_readyz_names_everything_that_it_depends_on(service):
    checks = dict.fromkeys(("database", "role", "migrations", "queue", "object_store"), "ok")
    assert await ready(service) == (200, {"status": "ok", "checks": checks})


@pytest.fixture
def owner(owner_url):
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        yield connection


@pytest.fixture
def at(owner) -> Iterator[Callable[[str], None]]:
    """Moves the schema's mark; it is put back."""
    [head] = owner.execute("SELECT version_num FROM alembic_version").fetchone()

    def move(revision: str) -> None:
        owner.execute("UPDATE alembic_version SET version_num = %s", [revision])

    yield move
    move(head)


async def test_readyz_notices_a_schema_of_an_older_version(service, at):
    at("0001")
    status, body = await ready(service)
    assert (status, body["status"], body["checks"]["migrations"]) == (503, "unavailable", "behind")


async def test_who_serves_while_newer_hosts_come_stays_ready(service, at):
    """The first of them migrates, and the others serve until it is their turn."""
    at("9999")
    status, body = await ready(service)
    assert (status, body["checks"]["migrations"]) == (200, "ok")


async def test_a_probe_may_leave_out_the_object_store(service, settings, alive, tmp_path):
    """All hosts share it: a balancer that looked at it would send nobody anywhere."""
    missing = tmp_path / "objects"
    missing.write_text("no folder")
    away = settings.model_copy(update={"object_store_url": None, "data_dir": tmp_path})
    app = create_app(away)
    async with alive(app):
        there = replace(service, app=app)
        status, body = await ready(there)
        assert (status, body["checks"]["object_store"]) == (503, "unavailable")
        status, body = await ready(there, "?exclude=object_store")
        assert (status, body["status"], body["checks"]["object_store"]) == (
            200,
            "ok",
            "unavailable",
        )
        assert (await ready(there, "?exclude=database"))[0] == 422


async def test_readyz_notices_a_missing_queue(service, owner):
    owner.execute("ALTER TABLE procrastinate_jobs RENAME TO procrastinate_jobs_away")
    try:
        status, body = await ready(service)
    finally:
        owner.execute("ALTER TABLE procrastinate_jobs_away RENAME TO procrastinate_jobs")
    assert (status, body["checks"]["queue"], body["checks"]["migrations"]) == (
        503,
        "unavailable",
        "ok",
    )

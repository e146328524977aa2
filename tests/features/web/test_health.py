"""/healthz and /readyz: alive, and whether everything it depends on is there."""

import psycopg
import pytest

from cardsync.database.urls import libpq_url


async def test_healthz_says_that_the_process_lives(service):
    async with service.client() as http:
        answer = await http.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def ready(service) -> tuple[int, dict]:
    async with service.client() as http:
        answer = await http.get("/readyz")
    return answer.status_code, answer.json()


async def test_readyz_names_everything_that_it_depends_on(service):
    checks = dict.fromkeys(("database", "role", "migrations", "queue", "object_store"), "ok")
    assert await ready(service) == (200, {"status": "ok", "checks": checks})


@pytest.fixture
def owner(owner_url):
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        yield connection


async def test_readyz_notices_a_schema_of_another_version(service, owner):
    [head] = owner.execute("SELECT version_num FROM alembic_version").fetchone()
    owner.execute("UPDATE alembic_version SET version_num = 'older'")
    try:
        status, body = await ready(service)
    finally:
        owner.execute("UPDATE alembic_version SET version_num = %s", [head])
    assert (status, body["status"], body["checks"]["migrations"]) == (503, "unavailable", "behind")


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

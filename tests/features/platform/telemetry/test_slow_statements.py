"""Slow statements: each is one line of the log and one count, without its values, and with the ids
of its request.
"""

from __future__ import annotations

from math import inf

import polars as pl
import pytest
from prometheus_client import REGISTRY
from sqlalchemy import text
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

import loggers
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.session import Database, in_one_message

SLEEPS = "SELECT pg_sleep(0.3), 'secret' AS x, CAST(:given AS text)"


@pytest.fixture(autouse=True)
def _loggers_of_now(monkeypatch):
    loggers.renewed(monkeypatch)


@pytest.fixture
async def database(settings):
    async with Database.open(settings.database_url, pool=1, hot_pool=1, slow=0.25) as opened:
        yield opened


def slow_of(logs):
    return [one for one in logs if one["event"] == "slow_statement"]


def counted():
    return REGISTRY.get_sample_value("cardsync_slow_statements_total") or 0


async def by_session(database):
    async with database.tenant(7) as session:
        await session.execute(text(SLEEPS), {"given": "secret"})


async def by_reading(database):
    async with database.readings.of(7, 5) as reading:
        await reading.rows(SLEEPS, {"given": "secret"})


async def in_a_pipeline(database):
    async with database.tenant(7) as session:
        await in_one_message(session, ["SELECT 1", SLEEPS], {"given": "secret"})


@pytest.mark.parametrize("run", [by_session, by_reading, in_a_pipeline])
async def test_a_slow_statement_is_logged_once_without_its_values(database, run):
    before = counted()
    with (
        bound_contextvars(request_id="asked", seller_id=7),
        capture_logs([merge_contextvars]) as logs,
    ):
        await run(database)
    [line] = slow_of(logs)
    assert "SELECT pg_sleep(?), ? AS x" in line["statement"]
    assert line["ms"] >= 250
    assert (line["request_id"], line["seller_id"]) == ("asked", 7)
    assert "secret" not in str(line)
    assert counted() == before + 1


async def test_a_quick_statement_is_not_logged(database):
    with capture_logs() as logs:
        async with database.tenant(7) as session:
            await session.execute(text("SELECT 1"))
    assert slow_of(logs) == []


SLEPT = dict.fromkeys(("said", "slept"), pl.String)


async def test_a_slow_copy_is_logged_by_its_table_alone(database):
    with capture_logs() as logs:
        async with database.tenant(7) as session:
            await read_rows(session, "SELECT 'secret', pg_sleep(0.3) FROM (SELECT 1) AS one", SLEPT)
    [line] = slow_of(logs)
    assert line["statement"].startswith("COPY ")
    assert "secret" not in line["statement"]


def test_zero_means_none(settings):
    assert settings.model_copy(update={"slow_statement_ms": 0}).slow_seconds == inf
    assert settings.slow_seconds == 1

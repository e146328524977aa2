"""Migrations by real processes: two at once, beside others who use the tables, and kill -9 in the
middle. What blocks a migration is a session of ours, so each process is where the test wants it.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.system.processes import until

from cardsync.platform.database.locks import Lock, key_of
from cardsync.platform.database.migrate import head_revision, migrate
from cardsync.platform.database.urls import libpq_url
from released_schemas import DUMPS, database_of
from schedule import count

MIGRATE = """
import sys
from cardsync.platform.database.migrate import migrate
print("begins", flush=True)
migrate(sys.argv[1], lambda line: print(line, flush=True))
print("is at the head", flush=True)
"""
# The second migration after the dump changes this table.
TABLE = "product"
BEFORE = "0069"
WAITING = """
    SELECT count(*) FROM pg_locks
     WHERE relation = 'product'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted
"""


@pytest.fixture
def old(owner_url: str) -> Iterator[str]:
    with database_of(owner_url, DUMPS[0]) as url:
        yield url


@pytest.fixture
def migrating(old: str) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a process that migrates the old database."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", MIGRATE, old]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == "begins\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def revision(url: str) -> str:
    with psycopg.connect(libpq_url(url, role=None)) as connection:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert found is not None
        return str(found[0])


def waits(url: str) -> bool:
    with psycopg.connect(libpq_url(url, role=None)) as connection:
        found = connection.execute(WAITING).fetchone()
        return found is not None and found[0] > 0


def test_of_two_at_once_one_migrates_and_both_end_well(
    old: str, migrating: Callable[[], subprocess.Popen[str]]
) -> None:
    """A reader of one of the tables is there first, so both processes are under way at once."""
    with psycopg.connect(libpq_url(old, role=None)) as reader:
        reader.execute(f"SELECT FROM {TABLE} LIMIT 1")
        two = [migrating(), migrating()]
        until(lambda: waits(old), "a migration that waits for the table")
        assert revision(old) == BEFORE
    said = [process.communicate(timeout=120)[0] for process in two]
    assert [process.returncode for process in two] == [0, 0]
    assert all(line.endswith("is at the head\n") for line in said), said
    assert sum("another process is migrating" in line for line in said) <= 1
    assert revision(old) == head_revision()


@pytest.mark.night
def test_a_killed_migration_is_continued_by_the_next(
    old: str, migrating: Callable[[], subprocess.Popen[str]]
) -> None:
    with psycopg.connect(libpq_url(old, role=None)) as reader:
        reader.execute(f"SELECT FROM {TABLE} LIMIT 1")
        first, second = migrating(), migrating()
        until(lambda: waits(old), "a migration that waits for the table")
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert revision(old) == BEFORE
    assert second.communicate(timeout=120)[0].endswith("is at the head\n")
    assert revision(old) == head_revision()


@pytest.mark.night
def test_who_asks_for_the_table_next_waits_only_briefly(
    old: str, migrating: Callable[[], subprocess.Popen[str]]
) -> None:
    """A long transaction has the table, a migration wants it, and others go on meanwhile."""
    with psycopg.connect(libpq_url(old, role=None)) as reader:
        reader.execute(f"SELECT FROM {TABLE} LIMIT 1")
        process = migrating()
        until(lambda: waits(old), "a migration that waits for the table")
        with psycopg.connect(libpq_url(old, role=None)) as shop:
            shop.execute("SET statement_timeout = '60s'")
            assert shop.execute(f"SELECT FROM {TABLE} LIMIT 1").rowcount == 1
        assert process.stdout is not None
        assert "a table that is to change is in use" in process.stdout.readline()
    assert process.communicate(timeout=120)[0].endswith("is at the head\n")


def test_a_table_that_never_gets_free_is_told_in_a_line(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOCK_SECONDS", 0.1), ("PAUSE_SECONDS", 0.1), ("TRIES", 2)):
        monkeypatch.setattr(f"cardsync.platform.database.migrate.{name}", value)
    with psycopg.connect(libpq_url(old, role=None)) as reader:
        reader.execute(f"SELECT FROM {TABLE} LIMIT 1")
        with pytest.raises(RuntimeError, match="other sessions keep the table") as told:
            migrate(old)
    assert "\n" not in str(told.value)
    assert revision(old) == BEFORE
    migrate(old)
    assert revision(old) == head_revision()


@pytest.mark.night
def test_an_index_is_built_concurrently_while_another_process_waits(
    old: str, migrating: Callable[[], subprocess.Popen[str]]
) -> None:
    """The build waits for every statement that is under way, so the other may not wait in one."""
    with psycopg.connect(libpq_url(old, role=None), autocommit=True) as first:
        first.execute(f"SELECT pg_advisory_lock({key_of(Lock.SCHEMA)})")
        second = migrating()
        assert second.stdout is not None
        assert "another process is migrating the database" in second.stdout.readline()
        first.execute("SET lock_timeout = '30s'")
        first.execute(f"CREATE INDEX CONCURRENTLY built ON {TABLE} (set_name)")
    assert second.communicate(timeout=120)[0].endswith("is at the head\n")


@pytest.mark.night
def test_kills_at_random_moments(owner_url: str) -> None:
    for _ in range(count("MIGRATION_KILLS", 40, 3)):
        with database_of(owner_url, DUMPS[0]) as url:
            process = subprocess.Popen([sys.executable, "-c", MIGRATE, url])
            time.sleep(random.uniform(0.2, 2.5))
            process.kill()
            process.wait()
            migrate(url)
            assert revision(url) == head_revision()

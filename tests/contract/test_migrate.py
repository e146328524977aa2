"""Migrations as a start sees them: the newest is told by its name, and a database that cannot be used by a sentence."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

from cardsync.database_urls import libpq_url
from cardsync.migrate import check, head_revision, migrate


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        yield connection


def test_the_newest_migrations_name_is_alembics_head() -> None:
    scripts = ScriptDirectory(str(Path(__file__).parents[2] / "migrations"))
    assert scripts.get_heads() == [head_revision()]
    assert all(Path(script.path).name.startswith(f"{script.revision}_") for script in scripts.walk_revisions())


@pytest.fixture
def at(owner: psycopg.Connection) -> Iterator[Callable[[str], None]]:
    """Moves the database to a revision, and back in the end."""
    yield lambda revision: owner.execute("UPDATE alembic_version SET version_num = %s", [revision])
    owner.execute("UPDATE alembic_version SET version_num = %s", [head_revision()])


def test_a_database_of_a_newer_program_is_left_alone(owner_url: str, at: Callable[[str], None]) -> None:
    at("9999")
    with pytest.raises(RuntimeError, match=r"the database is at 9999, .* it takes a newer cardsync"):
        migrate(owner_url)


def test_a_worker_of_its_own_takes_a_database_of_this_program(owner_url: str, at: Callable[[str], None]) -> None:
    check(owner_url)
    at("0001")
    with pytest.raises(RuntimeError, match=r"the database is at 0001, this program needs .* see `cardsync migrate`"):
        check(owner_url)


@pytest.mark.parametrize("look", [migrate, check])
def test_a_database_that_is_away_is_told_in_a_line(look: Callable[[str], None]) -> None:
    with pytest.raises(RuntimeError, match="the database cannot be reached, see CARDSYNC_DATABASE_URL") as told:
        look("postgresql://somebody:secret@127.0.0.1:1/nothing")
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


def test_a_database_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.migrate.CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RuntimeError, match="cannot be reached"):
        migrate(f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing")


def test_how_long_to_wait_for_it_is_the_operators_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.migrate.CONNECT_SECONDS", 3600)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RuntimeError, match="cannot be reached"):
        migrate(f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing?connect_timeout=2")


def test_a_revision_of_nobody_is_told_in_a_line(owner_url: str, at: Callable[[str], None]) -> None:
    at("0005x")
    with pytest.raises(RuntimeError, match=r"cannot be brought to .*0005x") as told:
        migrate(owner_url)
    assert "\n" not in str(told.value)


def test_a_table_that_may_not_be_read_is_told_in_a_line(owner_url: str, owner: psycopg.Connection) -> None:
    owner.execute("REVOKE SELECT ON alembic_version FROM cardsync_app")
    try:
        with pytest.raises(RuntimeError, match="the database cannot be used: permission denied"):
            check(owner_url)
    finally:
        owner.execute("GRANT SELECT ON alembic_version TO cardsync_app")

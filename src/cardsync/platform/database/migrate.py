"""Migrates a database to the current schema as the role that owns it, while other processes use it.

Two processes may migrate at the same time: an advisory lock serializes them, and the second has
nothing left to do. Each migration is its own transaction. A migration waits only briefly for a
table lock, because later statements queue behind it, and is then retried. A start without a
migration, the usual case, loads neither Alembic nor SQLAlchemy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from cardsync.platform.database.urls import APP_ROLE, connect, engine_url, libpq_url, patience

# Seconds that a migration waits for a table lock, and the number of retries with their pause.
LOCK_SECONDS = 3.0
PAUSE_SECONDS = 3.0
TRIES = 50
_TURN_SECONDS = 0.1

Say = Callable[[str], None]


class DatabaseAway(RuntimeError):
    """The database does not answer, or refuses the sign-in."""


def _folder() -> Path:
    packaged = Path(__file__).parents[2] / "_migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[4] / "migrations"


@cache
def head_revision() -> str:
    """Return the ID of this program's newest migration; a migration's file name begins with
    its ID.
    """
    return max(path.name.partition("_")[0] for path in (_folder() / "versions").glob("[0-9]*_*.py"))


def migrate(url: str, say: Say = lambda _: None) -> None:
    """Upgrade to `head_revision`. `url` must sign in as a role that owns the tables and may create
    roles. The URL must connect to the server itself, not to a pooler, because the lock and the
    settings belong to the session.

    Raises RuntimeError if the database cannot be reached or changed, or if a newer program has
    migrated it further.
    """
    plain = libpq_url(url, role=None)
    if _revision(plain, role=None) != head_revision():
        _upgrade(plain, say)


def keep_seal(url: str, seal: bytes) -> None:
    """Let processes with this seal create members and credentials (`access/sealed.py`). `url` signs
    in as the role that owns the tables. Each host with its own secret has its own seal.
    """
    with connect(url, role=None) as connection:
        connection.execute(
            "INSERT INTO identity_seal (seal, added_at) VALUES (%s, now()) ON CONFLICT DO NOTHING",
            (seal,),
        )


def drop_seals(url: str, seals: Sequence[bytes]) -> None:
    """Refuse processes with these seals from now on."""
    with connect(url, role=None) as connection:
        connection.execute("DELETE FROM identity_seal WHERE seal = ANY(%s)", (list(seals),))


def check(url: str) -> None:
    """Check that the database can be reached and is at `head_revision`. Raises DatabaseAway or
    another RuntimeError otherwise.
    """
    revision = _revision(url, role=APP_ROLE)
    if revision != head_revision():
        at = f"at {revision}" if revision else "empty"
        raise RuntimeError(
            f"the database is {at}, this program needs {head_revision()}: see `cardsync migrate`"
        )


def _revision(url: str, *, role: str | None) -> str | None:
    """Return the database's revision. Raises RuntimeError also if the revision is newer than this
    program.
    """
    try:
        with connect(url, role=role) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    except psycopg.OperationalError as e:
        raise DatabaseAway(
            "the database cannot be reached, see CARDSYNC_DATABASE_URL and"
            f" CARDSYNC_MIGRATION_DATABASE_URL: {_line(e)}"
        ) from e
    except psycopg.Error as e:
        raise RuntimeError(f"the database cannot be used: {_line(e)}") from e
    revision: str | None = row[0] if row else None
    if revision is not None and revision > head_revision():
        raise RuntimeError(
            f"the database is at {revision}, this program knows {head_revision()}:"
            " it takes a newer cardsync"
        )
    return revision


def _upgrade(url: str, say: Say) -> None:
    from alembic.util import CommandError
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(engine_url(url), connect_args=patience(url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            take_schema(connection.connection.driver_connection, say)
            # Another process may have migrated in the meantime, even further.
            if _revision(url, role=None) != head_revision():
                _migrate_online(connection, say)
    except (CommandError, DBAPIError) as e:
        raise RuntimeError(
            f"the database cannot be brought to {head_revision()}: {_reason(e)}"
        ) from e


def take_schema(connection: Any, say: Say) -> None:
    """Block all other changes of the schema until the connection ends. The lock is retried without
    waiting, because an index that is built concurrently waits for every running statement.
    """
    from cardsync.platform.database.locks import Lock, locked_by_connection

    attempt = 0
    while not locked_by_connection(connection, Lock.SCHEMA):
        if attempt % 100 == 30:
            say("another process is migrating the database; this one waits")
        attempt += 1
        time.sleep(_TURN_SECONDS)


def _migrate_online(connection: Any, say: Say) -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError

    # If a crash of the server loses a migration, the next start repeats it.
    settings = (
        f"lock_timeout = '{LOCK_SECONDS}s'",
        "statement_timeout = 0",
        "synchronous_commit = off",
        # A single server ignores these two settings. With the first, Citus changes a table's nodes
        # one after the other, because a migration may read and change a table in one transaction.
        "citus.multi_shard_modify_mode = 'sequential'",
        "citus.enable_unsafe_triggers = on",
    )
    for setting in settings:
        connection.exec_driver_sql(f"SET {setting}")
    connection.commit()
    config = Config()
    # Config interpolates %, which a folder's name may contain.
    config.set_main_option("script_location", str(_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    for left in reversed(range(TRIES)):
        try:
            command.upgrade(config, "head")
            return
        except DBAPIError as e:
            taken = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
            if not left or not isinstance(e.orig, taken):
                raise
            connection.rollback()
            say(f"a table that is to change is in use, trying again: {_reason(e)}")
            time.sleep(PAUSE_SECONDS)


def _reason(error: Exception) -> str:
    """Return one line about the failure, with a remedy if other sessions lock a table."""
    cause = getattr(error, "orig", None)
    if cause is None:
        return _line(error)[:1000]
    line = _line(f"{cause} in: {getattr(error, 'statement', None) or ''}")[:1000]
    if isinstance(cause, psycopg.errors.LockNotAvailable):
        line += "; other sessions keep the table: end them, or start again when they have ended"
    return line


def _line(error: object) -> str:
    return " ".join(str(error).split())


# The policy has no sub-select, so that it also works on tables spread over nodes by seller.
_POLICY = """
CREATE POLICY tenant ON {table}
 USING (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
 WITH CHECK (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
"""


def index_concurrently(
    name: str,
    table: str,
    columns: Sequence[str],
    *,
    unique: bool = False,
    where: str | None = None,
) -> None:
    """Build an index, with `where` of these rows only, while other transactions write. The build
    waits for these transactions without a limit, because nothing waits for the build. The remains
    of a killed build are dropped first.
    """
    from alembic import op

    with op.get_context().autocommit_block():
        patience = op.get_bind().exec_driver_sql("SHOW lock_timeout").scalar()
        op.execute("SET lock_timeout = 0")
        try:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.create_index(
                name,
                table,
                columns,
                unique=unique,
                postgresql_concurrently=True,
                postgresql_where=where,
            )
        finally:
            op.execute(f"SET lock_timeout = '{patience}'")


def tenant_table(table: str) -> list[str]:
    """Return the statements that put a migration's new table under row-level security and give the
    application's role access.
    """
    return [
        *shared_table(table),
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        _POLICY.format(table=table),
    ]


def shared_table(table: str) -> list[str]:
    """Return the statement that gives the application's role access to a new table of no seller.

    The grant names each table, because distributed tables accept no other form.
    """
    return [f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO cardsync_app"]

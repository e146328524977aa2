"""Restores a backup into a fresh database beside the database in use, checks it, and then switches.

Until the switch, which is one transaction, the old database does not change; afterwards it is kept
under another name. The next restore drops the remains of a killed restore.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cardsync.operations import pg_tools
from cardsync.operations.take_backup import (
    Say,
    UnderWay,
    link_or_copy,
    row_counts,
    seal_digests,
)
from cardsync.platform import clock, errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import Backup
from cardsync.platform.database.locks import Lock, locked_by_connection
from cardsync.platform.database.migrate import head_revision, migrate
from cardsync.platform.database.urls import BACKUP_ROLE, connect, libpq_url

_FRESH, _OLD = "restoring", "before"
# The database to which a connection can create and rename databases.
_MAINTENANCE: Final = "postgres"
_LOOKS: Final = 10
# The rows that a restore undoes: the table, the column of their time, and the seller's word for
# them.
_SINCE: Final = (
    ("upload", "received_at", "upload"),
    ("orders", "created_at", "order"),
    ("price_run", "started_at", "pricing run"),
    ("activity", "created_at", "recorded change"),
)
# A function that checks a restored database, given its address and the folder of its objects, and
# returns the fault or None.
Check = Callable[[str, Path], str | None]


@dataclass(frozen=True)
class Target:
    """The target of a restore: the owner's address of the database, the folder of the local
    objects, and the programs of PostgreSQL.
    """

    owner_url: str
    objects: Path | None
    tools: Path

    @property
    def database(self) -> str:
        return str(conninfo_to_dict(self.owner_url)["dbname"])


@dataclass(frozen=True)
class Undone:
    """Counts of the rows that are newer than a backup, by their name: a restore undoes them."""

    since: datetime
    counts: dict[str, int]
    cards_now: int
    cards_then: int

    def sentence(self) -> str:
        """Return the sentence that a person sees before the restore."""
        parts = [
            f"{count:,} {name}{'' if count == 1 else 's'}"
            for name, count in self.counts.items()
            if count
        ]
        listed = ", ".join(parts) if parts else "nothing that is counted"
        return (
            f"The backup was made on {self.since:%Y-%m-%d at %H:%M} UTC. Undone since then: {listed}. "
            f"Cards: {self.cards_now:,} now, {self.cards_then:,} then."
        )


def undone_by(target: Target, backup: Backup) -> Undone | None:
    """Return the changes that a restore would undo. Return None for an installation without
    a shop.
    """
    with _reading(target.owner_url) as connection:
        counts = {}
        for table, moment, name in _SINCE:
            statement = sql.SQL("SELECT count(*) FROM {} WHERE {} > %s").format(
                sql.Identifier(table), sql.Identifier(moment)
            )
            counts[name] = _one(connection, statement, backup.manifest.made_at)
        if not _one(connection, "SELECT count(*) FROM seller"):
            return None
        cards = _one(connection, "SELECT count(*) FROM card")
    then = backup.manifest.tables.get("card", 0)
    return Undone(backup.manifest.made_at, counts, cards, then)


def must_fit(target: Target, backup: Backup, *, foreign: bool) -> None:
    """Raise CommandError for a backup that this program or this installation cannot restore."""
    manifest = backup.manifest
    if manifest.format != backup_folder.FORMAT or manifest.revision > head_revision():
        raise errors.CommandError(
            f"{backup.name} was made by cardsync {manifest.program}: it takes a newer cardsync"
            " than this one"
        )
    server = pg_tools.server_version(libpq_url(target.owner_url, role=None))
    if manifest.server > server:
        raise errors.CommandError(
            f"{backup.name} was made on PostgreSQL {manifest.server}: this server is older"
            f" ({server})"
        )
    with _reading(target.owner_url) as connection:
        has_shop = _one(connection, "SELECT count(*) FROM seller") > 0
        ours = set(seal_digests(connection)) & set(manifest.seals)
    if has_shop and not ours and not foreign:
        raise errors.CommandError(
            f"{backup.name} is of another installation, and this one has a shop already: add"
            " --from-another-installation to replace it"
        )


def must_rest(target: Target) -> None:
    """Raise CommandError while other processes use the database: they would write to the old
    database.
    """
    with _maintenance(target) as connection:
        others = connection.execute(
            """
            SELECT count(*) FROM pg_stat_activity
             WHERE datname = %s AND backend_type IS DISTINCT FROM 'autovacuum worker'
            """,
            [target.database],
        ).fetchone()
    if others and others[0]:
        raise errors.CommandError(
            "cardsync is running on this database: stop it first, then restore, then start it again"
        )


def _await_rest(target: Target) -> None:
    """Wait until no other process uses the database, because a reader of metrics may be connected
    briefly.
    """
    for _ in range(_LOOKS):
        with suppress(errors.CommandError):
            must_rest(target)
            return
        threading.Event().wait(0.5)
    must_rest(target)


@contextmanager
def alone(target: Target) -> Iterator[None]:
    """Hold the lock of restores, so that databases of another restore are not taken for leftovers
    of a killed restore. Raises UnderWay.
    """
    with _maintenance(target) as connection:
        if not locked_by_connection(connection, Lock.RESTORE):
            raise UnderWay("another restore or rehearsal is under way: wait until it ends")
        yield


@contextmanager
def restored(target: Target, backup: Backup, say: Say, check: Check) -> Iterator[str]:
    """Yield the name of a fresh database that contains the backup and passed all checks; it is
    dropped afterwards unless it was switched to. The caller has the lock of `alone`. Raises
    CommandError.
    """
    name = f"{target.database}_{_FRESH}_{clock.now():%Y%m%d%H%M%S}"
    with _maintenance(target) as connection:
        _drop_leftovers(connection, target)
        named = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(named))
        try:
            yield from _loaded(target, backup, name, say, check)
        finally:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(named))


def _loaded(target: Target, backup: Backup, name: str, say: Say, check: Check) -> Iterator[str]:
    """Load the backup into the database of that name, and yield the name once it is checked."""
    url = _at(target.owner_url, name)
    say("loading the backup into a database of its own …")
    options = ("--no-owner", "--exit-on-error", "--jobs=2")
    dump = str(backup.path / backup_folder.DUMP)
    pg_tools.run(target.tools / "pg_restore", libpq_url(url, role=None), *options, dump)
    say("checking it …")
    must_be_whole(url, backup)
    migrate(url, say)
    fault = check(url, backup.path / backup_folder.OBJECTS)
    if fault:
        raise errors.CommandError(f"{backup.name} was restored, but {fault}")
    yield name


def must_be_whole(url: str, backup: Backup) -> None:
    """Raise CommandError unless a restored database has every row that was counted, and each
    seller's credits equal the sum of the ledger.
    """
    with _reading(url) as connection:
        found = row_counts(connection)
        for table, count in backup.manifest.tables.items():
            if found.get(table) != count:
                raise errors.CommandError(
                    f"{backup.name} was restored, but {table} has {found.get(table, 0):,} rows"
                    f" instead of {count:,}"
                )
        wrong = _one(
            connection,
            """
            SELECT count(*) FROM account a
             WHERE a.credit_balance <> coalesce((SELECT sum(t.amount) FROM credit_transaction t
                                                  WHERE t.seller_id = a.seller_id), 0)
            """,
        )
        if wrong:
            raise errors.CommandError(
                f"{backup.name} was restored, but the credits of {wrong:,} sellers are not what the"
                " ledger adds up to"
            )


def switch(target: Target, fresh: str) -> str:
    """Replace the old database by the fresh database; return the new name of the old database."""
    old = f"{target.database}_{_OLD}_{clock.now():%Y%m%d%H%M%S}"
    _await_rest(target)
    with _maintenance(target) as connection, connection.transaction():
        for name, becomes in ((target.database, old), (fresh, target.database)):
            connection.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(
                    sql.Identifier(name), sql.Identifier(becomes)
                )
            )
    return old


def restore_objects(target: Target, backup: Backup) -> int:
    """Link the backup's objects that are missing or have another size; return how many. Other
    objects, and objects that the backup has lost, are not changed.
    """
    if target.objects is None:
        return 0
    missing = 0
    for key, line in backup_folder.object_lines(backup).items():
        place, kept = target.objects / key, backup.path / backup_folder.OBJECTS / key
        if (place.exists() and place.stat().st_size == line.bytes) or not kept.exists():
            continue
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        link_or_copy(kept, place)
        missing += 1
    return missing


def restore_secret(backup: Backup, secret: Path) -> bool:
    """Replace the secret that a fresh installation has just made by the backup's secret; return
    whether the backup has a secret.
    """
    if backup.manifest.secret is None:
        return False
    draft = secret.with_name(f".{secret.name}-restored")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write((backup.path / backup_folder.SECRET).read_bytes())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(secret)
    return True


def drop_old(target: Target) -> list[str]:
    """Drop the databases that earlier restores replaced; return their names."""
    with _maintenance(target) as connection:
        names = _named(connection, f"{target.database}_{_OLD}_")
        for name in names:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))
    return names


def _drop_leftovers(connection: psycopg.Connection, target: Target) -> None:
    """Drop the databases of killed restores that have no connections."""
    for name in _named(connection, f"{target.database}_{_FRESH}_"):
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


def _named(connection: psycopg.Connection, begins: str) -> list[str]:
    rows = connection.execute(
        """
        SELECT d.datname FROM pg_database d WHERE starts_with(d.datname, %s)
           AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname)
        """,
        [begins],
    ).fetchall()
    return [name for (name,) in rows]


@contextmanager
def _maintenance(target: Target) -> Iterator[psycopg.Connection]:
    """Connect to another database of the server, for statements that cannot run inside this
    database.
    """
    with _connected(_at(target.owner_url, _MAINTENANCE), None) as connection:
        connection.autocommit = True
        yield connection


@contextmanager
def _reading(url: str) -> Iterator[psycopg.Connection]:
    """Connect as the role that reads the rows of all shops."""
    with _connected(url, BACKUP_ROLE) as connection:
        yield connection


@contextmanager
def _connected(url: str, role: str | None) -> Iterator[psycopg.Connection]:
    try:
        with connect(url, role=role) as connection:
            yield connection
    except psycopg.Error as e:
        words = " ".join(str(e).split())
        raise errors.CommandError(f"the backup cannot be restored: {words}") from e


def _at(url: str, database: str) -> str:
    return libpq_url(make_conninfo(url, dbname=database), role=None)


def _one(connection: psycopg.Connection, statement: sql.Composed | str, *values: object) -> int:
    found = connection.execute(statement, values or None).fetchone()
    assert found is not None
    return int(found[0])

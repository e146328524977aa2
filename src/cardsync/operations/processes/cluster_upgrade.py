"""Upgrades a cluster of an older PostgreSQL major version to the newest bundled one (pg_upgrade).

The new cluster is a copy in the folder `upgrade`, beside the old cluster. After its rows were
counted, two renames replace the old cluster, which is kept as `before-MAJOR-TIME`. After an earlier
failure the old cluster is still in use. The caller has the lock of the start.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from cardsync.operations.processes import postmaster
from cardsync.operations.processes.cluster_server import (
    SUPERUSER,
    create_cluster,
    last_lines,
    open_log,
    start_server,
    sync_folder,
)
from cardsync.operations.processes.embedded_host import (
    CLUSTER,
    PORT,
    Account,
    EmbeddedError,
    bundled,
    cluster_major,
    make_folder,
    runnable,
    socket_folder,
)
from cardsync.operations.processes.postmaster import Say
from cardsync.platform import clock
from cardsync.platform.database.urls import connect

WORK: Final = "upgrade"
BEFORE: Final = "before"
# This file is written last: it shows that the new cluster has everything that the old one had.
CHECKED: Final = "checked"
SPARE_BYTES: Final = 500_000_000
_TABLES: Final = """
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
# The row counts of each database's tables.
_Rows = dict[str, dict[str, int]]


def recover(home: Path) -> None:
    """Finish or undo a killed upgrade. After the first rename, the new cluster is put in place;
    before it, the old cluster is still in place.
    """
    work = home / WORK
    if not work.exists():
        return
    _end_processes(work)
    # No other process uses the server: an upgrade begins only while it is stopped.
    postmaster.stop(home / CLUSTER, lambda _: None)
    if not (home / CLUSTER).exists() and (work / CHECKED).exists():
        (work / CLUSTER).rename(home / CLUSTER)
        sync_folder(home)
    _remove(work)


def upgrade(home: Path, account: Account, say: Say) -> None:
    """Upgrade a cluster of an older bundled major version; if that fails, report why and leave it
    unchanged.
    """
    old, installs = cluster_major(home), bundled()
    new = max(installs)
    if old is None or old >= new or old not in installs:
        return
    if postmaster.living(home / CLUSTER) is not None:
        say(
            f"The database is on PostgreSQL {old}, and in use: it comes to {new} at the next start."
        )
        return
    work = home / WORK
    try:
        _must_have_room(home)
        make_folder(work, 0o700)
        account.own(work)
        before = runnable(installs[old], account)
        after = runnable(installs[new], account)
        _upgraded(home, work, before, after, account, say)
    except (EmbeddedError, OSError, psycopg.Error) as problem:
        _end_processes(work)
        _remove(work)
        if not (home / CLUSTER).exists():
            raise
        say(f"The database stays on PostgreSQL {old}, {new} was tried: {problem}")
        return
    except BaseException:  # after a signal, the next start removes the rest
        _end_processes(work)
        raise
    kept = home / f"{BEFORE}-{old}-{clock.now():%Y%m%d%H%M%S}"
    (home / CLUSTER).rename(kept)
    (work / CLUSTER).rename(home / CLUSTER)
    sync_folder(home)
    _remove(work)
    say(f"The database is on PostgreSQL {new}. The old one is kept in {kept}; delete it later.")


def _must_have_room(home: Path) -> None:
    files = (path for path in (home / CLUSTER).rglob("*") if path.is_file())
    needed = sum(path.stat().st_size for path in files) + SPARE_BYTES
    free = shutil.disk_usage(home).free
    if free < needed:
        raise EmbeddedError(
            f"it takes {needed / 1e6:,.0f} MB of room beside the database, and"
            f" {free / 1e6:,.0f} MB are free"
        )


def _upgraded(
    home: Path, work: Path, before: Path, after: Path, account: Account, say: Say
) -> None:
    """Make the new cluster in `work`, and check it. The old server runs first, which also recovers
    from a crash: pg_upgrade accepts only a clean cluster.
    """
    say(f"Upgrading the database from {_named(before)} to {_named(after)}: counting its rows …")
    start_server(home, before, account, say)
    try:
        rows, options = _counted(home, account), _options(home, account)
    finally:
        postmaster.stop(home / CLUSTER, say)
    create_cluster(work, after, account, *options)
    for name in ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf"):
        with suppress(FileNotFoundError):
            text = (home / CLUSTER / name).read_bytes()
            # The file is written in place, so that it keeps its owner and mode.
            (work / CLUSTER / name).write_bytes(text)
    for words, more in (("checking that it can be done", ["--check"]), ("copying the data", [])):
        say(f"Upgrading the database: {words} …")
        _run_pg_upgrade(home, work, before, after, account, more)
    say("Upgrading the database: starting the new one and counting its rows …")
    start_server(work, after, account, say)
    try:
        found = _counted(work, account)
    finally:
        postmaster.stop(work / CLUSTER, say)
    if found != rows:
        wrong = {name for name in rows if found.get(name) != rows[name]}
        raise EmbeddedError(f"the new database has other rows than the old one: {sorted(wrong)}")
    (work / CHECKED).touch()
    sync_folder(work)


def _named(install: Path) -> str:
    return next(
        f"PostgreSQL {major}" for major, path in bundled().items() if path.name == install.name
    )


def _run_pg_upgrade(
    home: Path, work: Path, before: Path, after: Path, account: Account, more: list[str]
) -> None:
    # pg_upgrade writes into its working directory.
    command = ["/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", str(work)]
    command += [str(after / "bin" / "pg_upgrade"), "--copy", "--username", SUPERUSER]
    command += ["--old-bindir", str(before / "bin"), "--new-bindir", str(after / "bin")]
    command += ["--old-datadir", str(home / CLUSTER), "--new-datadir", str(work / CLUSTER)]
    command += ["--socketdir", str(socket_folder(home, account)), *more]
    with open_log(work / "pg_upgrade.log") as output:
        code = account.spawn(command, output).wait()
    if code != 0:
        raise EmbeddedError(f"pg_upgrade failed:\n{last_lines(work / 'pg_upgrade.log')}")


def _counted(home: Path, account: Account) -> _Rows:
    with _connected(home, account, SUPERUSER) as connection:
        found = connection.execute("SELECT datname FROM pg_database WHERE datallowconn").fetchall()
    rows: _Rows = {}
    for (name,) in found:
        with _connected(home, account, name) as connection:
            tables = [table for (table,) in connection.execute(_TABLES)]
            rows[name] = {table: _rows(connection, table) for table in tables}
    return rows


def _rows(connection: psycopg.Connection, table: str) -> int:
    # The database quotes the name.
    found = connection.execute(sql.SQL(f"SELECT count(*) FROM {table}")).fetchone()
    assert found is not None
    return int(found[0])


def _options(home: Path, account: Account) -> list[str]:
    """Return the options of initdb with which the new cluster has the old one's settings."""
    with _connected(home, account, SUPERUSER) as connection:
        found = connection.execute("SHOW data_checksums").fetchone()
    return ["--data-checksums" if found == ("on",) else "--no-data-checksums"]


def _connected(home: Path, account: Account, database: str) -> psycopg.Connection:
    host = quote(os.fsencode(socket_folder(home, account)), safe="")
    name = quote(database, safe="")
    return connect(f"postgresql://{SUPERUSER}@/{name}?host={host}&port={PORT}", role=None)


def _end_processes(work: Path) -> None:
    """End leftover processes: pg_upgrade and its children survive a killed parent, and their
    working directory is this folder.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(work):
                process.kill()
                process.wait(10)


def _remove(work: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(os.fsdecode((work / "socket.path").read_bytes()), ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)

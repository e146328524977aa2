"""Runs the embedded PostgreSQL of a data folder, and returns the address of a running server.

`running` starts the server or adopts a running server, recovers it after a crash, and stops it when
the last user leaves. A process is a user while it holds a shared lock on `users.lock`. The lock
ends with its process, however that ends, so it can never be stale. Beside it in `<data
folder>/postgres` are `start.lock`, `cluster` (the database's own), `socket` and `log`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from cardsync.operations.processes import cluster_upgrade, postmaster
from cardsync.operations.processes.cluster_server import (
    SUPERUSER,
    StillRecovering,
    adopt,
    create_cluster,
    start_server,
)
from cardsync.operations.processes.embedded_host import (
    CLUSTER,
    PORT,
    EmbeddedError,
    choose_home,
    database_account,
    find_install,
    is_root,
)
from cardsync.operations.processes.postmaster import Say
from cardsync.platform.database.urls import APP_ROLE, connect

__all__ = ["EmbeddedError", "EmbeddedServer", "StillRecovering", "running"]

DATABASE = "cardsync"


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server.

    `data_dir` is the cluster's own folder. `moved` is true if the cluster is not in the requested
    folder.
    """

    data_dir: Path
    socket_dir: Path
    port: int
    moved: bool

    def url(self, dbname: str = DATABASE) -> str:
        """Return the application's address, whose role is bound by row-level security."""
        return self._url(APP_ROLE, dbname)

    def admin_url(self, dbname: str = DATABASE) -> str:
        """Return the superuser's address, only for migrations."""
        return self._url(SUPERUSER, dbname)

    def is_up(self) -> bool:
        """Return whether the main process lives; cheap enough to check twice a second."""
        return postmaster.is_up(self.data_dir)

    def _url(self, role: str, dbname: str) -> str:
        host = quote(os.fsencode(self.socket_dir), safe="")
        return f"postgresql://{role}@/{quote(dbname, safe='')}?host={host}&port={self.port}"


@contextmanager
def running(data_dir: Path, *, say: Say = lambda _: None) -> Iterator[EmbeddedServer]:
    """Run the server of `data_dir` while the block lasts. A second block, also inside the first,
    restarts a server that has crashed.
    """
    data_dir = data_dir.expanduser().resolve()
    with _plain_errors(data_dir):
        home = choose_home(data_dir)
        users = _open_lock(home / "users.lock")
    moved = home.parent != data_dir
    entered_by = os.getpid()
    leave_running = False
    try:
        with _plain_errors(home):
            server = _enter(home, users, moved, say)
        if moved:
            owner = database_account(home).name
            say(f"The database user {owner} cannot enter {data_dir}: the database is in {home}.")
        yield server
    except StillRecovering:
        leave_running = True
        raise
    finally:
        # A forked child that unwinds through this block must not stop its parent's server.
        if os.getpid() == entered_by and not leave_running:
            _leave(home, users, say)
        os.close(users)


@contextmanager
def _plain_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, psycopg.Error) as problem:
        raise EmbeddedError(
            f"The embedded PostgreSQL of {folder} cannot be used: {problem}"
        ) from problem


def _enter(home: Path, users: int, moved: bool, say: Say) -> EmbeddedServer:
    """Become a user and make sure that the server runs. With `start.lock`, only one process at a
    time starts the server. A process that stops the server has `users.lock` exclusively, and this
    process waits for that lock.
    """
    start = _open_lock(home / "start.lock")
    try:
        _await_lock(start, fcntl.LOCK_EX, say)
        _await_lock(users, fcntl.LOCK_SH, say)
        cluster_upgrade.recover(home)
        account = database_account(home)
        cluster_upgrade.upgrade(home, account, say)
        install = find_install(home, account)
        if not (home / CLUSTER).exists():
            create_cluster(home, install, account)
        sockets = adopt(home, say) or start_server(home, install, account, say)
        server = EmbeddedServer(
            data_dir=home / CLUSTER,
            socket_dir=sockets,
            port=PORT,
            moved=moved,
        )
        _ensure_role_and_database(server)
        return server
    finally:
        # Closing the file keeps the lock while a forked process has a copy of the descriptor.
        fcntl.flock(start, fcntl.LOCK_UN)
        os.close(start)


def _leave(home: Path, users: int, say: Say) -> None:
    """Stop the server if no other process uses it. Each user first releases its own shared lock, so
    that the last of several processes that leave at the same time gets the exclusive lock.
    """
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    try:
        postmaster.stop(home / CLUSTER, say)
    finally:
        fcntl.flock(users, fcntl.LOCK_UN)


def _open_lock(path: Path) -> int:
    """Open a lock file that is not inherited over exec: a server or another child that kept the
    descriptor would keep the lock.
    """
    lock = os.open(
        path,
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    # If root works in a user's folder, the user must be able to open the lock file later.
    if is_root():
        owner = path.parent.stat()
        os.fchown(lock, owner.st_uid, owner.st_gid)
    return lock


def _await_lock(lock: int, kind: int, say: Say) -> None:
    def taken() -> bool:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    postmaster.wait(
        taken, float("inf"), say, "Another cardsync process is starting or stopping PostgreSQL"
    )


def _ensure_role_and_database(server: EmbeddedServer) -> None:
    bound = "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION"
    is_bound = "rolcanlogin AND NOT (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication)"
    role = sql.Identifier(APP_ROLE)
    with connect(server.admin_url("postgres"), role=None, autocommit=True) as connection:
        found = connection.execute(
            f"SELECT {is_bound} FROM pg_roles WHERE rolname = %s", [APP_ROLE]
        ).fetchone()
        if found != (True,):
            verb = sql.SQL("ALTER" if found else "CREATE")
            connection.execute(sql.SQL("{} ROLE {} {}").format(verb, role, sql.SQL(bound)))
        if not connection.execute(
            "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
        ).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

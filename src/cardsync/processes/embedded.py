"""Runs the embedded PostgreSQL of a data folder, and gives the address of a server that is up.

`running` starts the server or adopts one that runs, recovers it after a crash, and stops it when
the last user leaves. A process is a user while it holds a shared lock on `users.lock`; the lock
ends with its process, however that ends, so nothing stale can remain. Beside it in `<data
folder>/postgres`: `start.lock`, `cluster` (the database's own), `socket`, `log`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import psycopg
from psycopg import sql

from cardsync.database.urls import APP_ROLE
from cardsync.processes import postmaster
from cardsync.processes.embedded_host import (
    CLUSTER,
    SOCKET_NAME,
    Account,
    EmbeddedError,
    choose_home,
    database_account,
    find_install,
    is_root,
    make_folder,
    socket_folder,
)
from cardsync.processes.postmaster import Say

__all__ = ["EmbeddedError", "EmbeddedServer", "StillRecovering", "running"]

SUPERUSER = "postgres"
DATABASE = "cardsync"
PORT = 5432  # no port is opened: it is the end of the socket's name, in a folder of our own

START_SECONDS = 300.0

# These settings are in postgresql.conf of a new cluster, where its owner may change them: sized
# for a laptop, durability kept. The log gets neither statements nor the values in them.
_SETTINGS = {
    "shared_buffers": "256MB",
    # Two who write at once fill less than this sooner than it reaches the disk, and then wait for
    # each other.
    "wal_buffers": "32MB",
    "effective_cache_size": "2GB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    # This build compresses slowly: it would take longer than all other work of a large import.
    "wal_compression": "off",
    "max_connections": "100",
    "huge_pages": "try",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
}


class StillRecovering(EmbeddedError):
    """The server is alive but did not get ready in time; it goes on, and a later start adopts
    it.
    """


@dataclass(frozen=True)
class EmbeddedServer:
    """A server that is up.

    `data_dir` is the cluster's own folder; `moved` says that it is not in the folder asked for.
    """

    data_dir: Path
    socket_dir: Path
    port: int
    moved: bool

    def url(self, dbname: str = DATABASE) -> str:
        """Return the application's address: a role that row-level security binds."""
        return self._url(APP_ROLE, dbname)

    def admin_url(self, dbname: str = DATABASE) -> str:
        """Return the superuser's address: for migrations only."""
        return self._url(SUPERUSER, dbname)

    def is_up(self) -> bool:
        """Whether its main process lives; cheap enough to ask twice a second."""
        return postmaster.is_up(self.data_dir)

    def _url(self, role: str, dbname: str) -> str:
        host = quote(os.fsencode(self.socket_dir), safe="")
        return f"postgresql://{role}@/{quote(dbname, safe='')}?host={host}&port={self.port}"


@contextmanager
def running(data_dir: Path, *, say: Say = lambda _: None) -> Iterator[EmbeddedServer]:
    """Run the server of `data_dir` for as long as the block lasts. Entered again (also inside
    itself) it revives a server that has crashed.
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
        # A forked child that unwinds through here must not stop its parent's server.
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
    """Become a user and see that the server is up. `start.lock` lets one process at a time start
    it; one that is about to stop it holds `users.lock` alone, which is waited for here."""
    start = _open_lock(home / "start.lock")
    try:
        _await_lock(start, fcntl.LOCK_EX, say)
        _await_lock(users, fcntl.LOCK_SH, say)
        account = database_account(home)
        install = find_install(home, account)
        if not (home / CLUSTER).exists():
            _create_cluster(home, install, account)
        sockets = _adopt(home, say) or _start(home, install, account, say)
        server = EmbeddedServer(
            data_dir=home / CLUSTER,
            socket_dir=sockets,
            port=PORT,
            moved=moved,
        )
        _ensure_role_and_database(server)
        return server
    finally:
        fcntl.flock(start, fcntl.LOCK_UN)  # closing is not enough if a fork has a copy
        os.close(start)


def _leave(home: Path, users: int, say: Say) -> None:
    """Stop the server if no other process uses it. Each user gives up its own share first, so that
    of several who leave at once the last one gets the lock.
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
    """Not inheritable over exec: a server or another child that kept the descriptor would keep
    the lock.
    """
    lock = os.open(
        path,
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    if is_root():  # root may be a guest in a user's folder, and the user comes back
        owner = path.parent.stat()
        os.fchown(lock, owner.st_uid, owner.st_gid)
    return lock


def _open_log(path: Path) -> BinaryIO:
    """Open an empty log for its owner alone: the server's messages may quote settings and paths.

    A log of an earlier version was open to all.
    """
    log = os.open(
        path,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    os.fchmod(log, 0o600)
    if is_root():
        owner = path.parent.stat()
        os.fchown(log, owner.st_uid, owner.st_gid)
    return os.fdopen(log, "wb")


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


def _create_cluster(home: Path, install: Path, account: Account) -> None:
    """Create the cluster under another name until it is complete, so that a half-finished one is
    never taken for a database.
    """
    for leftover in home.glob(f"{CLUSTER}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = account.own(Path(tempfile.mkdtemp(prefix=f"{CLUSTER}-", dir=home)))
    command = [
        str(install / "bin" / "initdb"),
        "--pgdata",
        str(fresh),
        "--username",
        SUPERUSER,
        "--no-instructions",
    ]
    command += [
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
    ]
    command += ["--auth-local=trust", "--auth-host=reject"]
    for name, value in _SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    with _open_log(home / "initdb.log") as output:
        code = account.spawn(command, output).wait()
    if code != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise EmbeddedError(f"initdb failed in {home}:\n{_last_lines(home / 'initdb.log')}")
    fresh.rename(home / CLUSTER)
    _sync_folder(home)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _adopt(home: Path, say: Say) -> Path | None:
    """Return the socket folder of the server that already runs, once it is ready; None if there is
    none, or no longer any.
    """
    cluster = home / CLUSTER

    def settled() -> bool:
        return postmaster.living(cluster) is None or postmaster.pid_file(cluster)[7:8] == ["ready"]

    if not postmaster.wait(settled, START_SECONDS, say, "PostgreSQL is recovering its data"):
        raise StillRecovering(_not_ready(home))
    if postmaster.living(cluster) is None:
        return None
    sockets = Path(postmaster.pid_file(cluster)[4])
    if not (
        sockets / SOCKET_NAME
    ).exists():  # a cleaner of temporary folders took it: nobody could ever connect
        postmaster.stop(cluster, say)
        return None
    return sockets


def _start(home: Path, install: Path, account: Account, say: Say) -> Path:
    cluster = home / CLUSTER
    sockets = socket_folder(home, account)
    postmaster.clear_remains(cluster, sockets, say)
    if not (home / "log").exists():
        make_folder(home / "log", 0o700)
        account.own(home / "log")
    quoted = str(sockets).replace('"', '""')
    options = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{quoted}"',
        "unix_socket_permissions": "0700",
    }
    options |= {"port": str(PORT), "log_directory": str(home / "log")}
    command = [str(install / "bin" / "postgres"), "-D", str(cluster)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with _open_log(home / "start.log") as output:  # only what is said before the log proper is open
        server = account.spawn(command, output)
    _await_ready(home, server, say)
    return sockets


def _await_ready(home: Path, server: subprocess.Popen[bytes], say: Say) -> None:
    def settled() -> bool:
        lines = postmaster.pid_file(home / CLUSTER)
        return server.poll() is not None or (
            lines[:1] == [str(server.pid)] and lines[7:8] == ["ready"]
        )

    try:
        ready = postmaster.wait(
            settled, START_SECONDS, say, "PostgreSQL is starting and recovering its data"
        )
    except BaseException:  # a signal while waiting: no server must stay behind unseen
        server.send_signal(signal.SIGINT)
        server.wait(postmaster.STOP_SECONDS)
        raise
    if server.poll() is not None:
        raise EmbeddedError(
            f"PostgreSQL did not start in {home}; its last words:\n{_last_words(home)}"
        )
    server.returncode = 0  # it outlives this object on purpose, which otherwise warns of that
    if not ready:
        raise StillRecovering(_not_ready(home))


def _not_ready(home: Path) -> str:
    return (
        f"PostgreSQL in {home} is still starting after {START_SECONDS:.0f} s and goes on; "
        f"start again later. Its last words:\n{_last_words(home)}"
    )


def _last_words(home: Path) -> str:
    logs = sorted((home / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
    return "\n".join(filter(None, map(_last_lines, [home / "start.log", *logs[-1:]])))


def _last_lines(path: Path) -> str:
    with suppress(FileNotFoundError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-10:])
    return ""


def _ensure_role_and_database(server: EmbeddedServer) -> None:
    bound = "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION"
    is_bound = "rolcanlogin AND NOT (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication)"
    role = sql.Identifier(APP_ROLE)
    with psycopg.connect(
        server.admin_url("postgres"),
        autocommit=True,
        connect_timeout=10,
    ) as connection:
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

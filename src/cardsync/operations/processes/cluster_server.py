"""Manages one PostgreSQL cluster in a folder: creates it, adopts its running server, or starts one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cardsync.operations.processes import postmaster
from cardsync.operations.processes.embedded_host import (
    CLUSTER,
    PORT,
    SOCKET_NAME,
    Account,
    EmbeddedError,
    is_root,
    make_folder,
    socket_folder,
)
from cardsync.operations.processes.postmaster import Say

SUPERUSER = "postgres"

START_SECONDS = 300.0

# The settings in a new cluster's postgresql.conf, which its owner may change. The settings suit a
# laptop, with full durability. The log contains neither statements nor their values.
_SETTINGS = {
    "shared_buffers": "256MB",
    # Two concurrent writers fill a smaller buffer before it reaches the disk, and then wait for
    # each other.
    "wal_buffers": "32MB",
    "effective_cache_size": "2GB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    # The bundled build compresses slowly: compression would take longer than all other work of a
    # large import.
    "wal_compression": "off",
    "max_connections": "200",
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
    """The server is running but did not become ready in time; a later start of the service adopts
    the server.
    """


def create_cluster(home: Path, install: Path, account: Account, *more: str) -> None:
    """Create the cluster under another name until it is complete, so that an unfinished cluster is
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
    command += ["--auth-local=trust", "--auth-host=reject", *more]
    for name, value in _SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    with open_log(home / "initdb.log") as output:
        code = account.spawn(command, output).wait()
    if code != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise EmbeddedError(f"initdb failed in {home}:\n{last_lines(home / 'initdb.log')}")
    fresh.rename(home / CLUSTER)
    sync_folder(home)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def adopt(home: Path, say: Say) -> Path | None:
    """Return the socket folder of the running server once it is ready. Return None if no server
    runs, or if the server stopped.
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
    ).exists():  # a cleaner of temporary folders deleted the socket: no client could connect
        postmaster.stop(cluster, say)
        return None
    return sockets


def start_server(home: Path, install: Path, account: Account, say: Say) -> Path:
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
    # This file gets the messages that PostgreSQL writes before it opens its own log.
    with open_log(home / "start.log") as output:
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
    except BaseException:  # a signal arrived while waiting: no unnoticed server may remain
        server.send_signal(signal.SIGINT)
        server.wait(postmaster.STOP_SECONDS)
        raise
    if server.poll() is not None:
        raise EmbeddedError(
            f"PostgreSQL did not start in {home}; its last words:\n{_last_words(home)}"
        )
    server.returncode = 0  # the server outlives this object on purpose: avoid the warning
    if not ready:
        raise StillRecovering(_not_ready(home))


def _not_ready(home: Path) -> str:
    return (
        f"PostgreSQL in {home} is still starting after {START_SECONDS:.0f} s and goes on; "
        f"start again later. Its last words:\n{_last_words(home)}"
    )


def _last_words(home: Path) -> str:
    logs = sorted((home / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
    return "\n".join(filter(None, map(last_lines, [home / "start.log", *logs[-1:]])))


def last_lines(path: Path) -> str:
    with suppress(FileNotFoundError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-10:])
    return ""


def open_log(path: Path) -> BinaryIO:
    """Open an empty log that only its owner can read: the server's messages may quote settings and
    paths.

    An earlier version left its log open to all.
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

"""A Citus cluster on this machine for the tests: a coordinator and workers, in one folder.

`python tests/citus_cluster.py start FOLDER` prints the coordinator's URL for CARDSYNC_TEST_CITUS_URL;
`stop FOLDER` ends it; `run COMMAND` does both around a command. It takes a server that has Citus:
CARDSYNC_TEST_CITUS_BIN names its programs, else Debian's newest with it is taken.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import psycopg

from cardsync.operations.distribute import Places, distribute
from cardsync.platform.database.migrate import migrate
from cardsync.platform.database.urls import libpq_url
from cardsync.tables import seller_tables, spread_tables, tables_everywhere

# The coordinator's port; the workers have the next ones.
PORT = int(os.environ.get("CARDSYNC_TEST_CITUS_PORT", "6432"))
WORKERS = 2
_SETTINGS = {
    "shared_preload_libraries": "citus",
    "listen_addresses": "127.0.0.1",
    "max_connections": 300,
    "max_prepared_transactions": 300,
    "shared_buffers": "256MB",
    # A test cluster is made anew: it need not outlive a crash of the machine.
    "fsync": "off",
    "max_locks_per_transaction": 1000,
    "citus.node_conninfo": "sslmode=disable",
    "citus.max_adaptive_executor_pool_size": 2,
    "citus.recover_2pc_interval": "5s",
    "wal_level": "logical",
}


# Few, since each is a table of its own for each of ours.
SHARDS = 4


def places() -> Places:
    """The places that the command takes."""
    spread = [table.name for table in spread_tables()]
    return Places(spread, [table.name for table in tables_everywhere()])


def programs() -> Path | None:
    """The folder of a PostgreSQL that has Citus."""
    named = os.environ.get("CARDSYNC_TEST_CITUS_BIN")
    places = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"))[::-1]
    return next((place for place in places if _has_citus(place)), None)


def _has_citus(place: Path) -> bool:
    config = place / "pg_config"
    if not config.exists():
        return False
    told = subprocess.run([config, "--sharedir"], capture_output=True, text=True, check=False)
    return (Path(told.stdout.strip()) / "extension" / "citus.control").exists()


def start(folder: Path) -> str:
    """Make the servers that are not there yet and start them; return the coordinator's URL."""
    place = programs()
    if place is None:
        raise SystemExit("no PostgreSQL with Citus is here: CARDSYNC_TEST_CITUS_BIN names one")
    folder.mkdir(parents=True, exist_ok=True)
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    for number in range(WORKERS + 1):
        data = folder / f"node{number}"
        if not data.exists():
            made = ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
            _run(place, user, *made, "--locale", "C.UTF-8")
            with (data / "postgresql.auto.conf").open("a") as settings:
                settings.writelines(f"{name} = '{value}'\n" for name, value in _SETTINGS.items())
        options = f"-p {PORT + number} -k {folder}"
        _run(place, user, "pg_ctl", "-D", data, "-l", folder / f"{number}.log", "-o", options,
             "-w", "start")  # fmt: skip
    return f"postgresql://postgres@127.0.0.1:{PORT}/postgres"


def stop(folder: Path) -> None:
    place = programs()
    user = "postgres" if os.geteuid() == 0 else None
    for data in folder.glob("node*"):
        assert place is not None
        _run(place, user, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _run(place: Path, user: str | None, program: str, *arguments: object) -> None:
    home = None if user is None else pwd.getpwnam(user).pw_dir
    with Path(os.devnull).open("w") as nowhere:
        subprocess.run(
            [str(place / program), *map(str, arguments)],
            user=user,
            cwd=home or "/",
            stdout=nowhere,
            check=True,
        )


def nodes_of(coordinator: str) -> list[str]:
    """The URLs of the coordinator and its workers, which have the ports after its own."""
    at = urlsplit(coordinator)
    assert at.port is not None
    place = f"{at.username}@{at.hostname}"
    return [
        urlunsplit(at._replace(netloc=f"{place}:{at.port + number}"))
        for number in range(WORKERS + 1)
    ]


def make_database(coordinator: str, name: str) -> str:
    """Make an empty database on all nodes, and join them; return its URL at the coordinator."""
    nodes = nodes_of(coordinator)
    made = [urlunsplit(urlsplit(node)._replace(path=f"/{name}")) for node in nodes]
    for node, url in zip(nodes, made, strict=True):
        _administer(node, f"CREATE DATABASE {name}")
        _administer(url, "CREATE EXTENSION citus")
    ports = [urlsplit(url).port for url in made]
    _administer(
        made[0],
        f"SELECT citus_set_coordinator_host('127.0.0.1', {ports[0]})",
        *(f"SELECT citus_add_node('127.0.0.1', {port})" for port in ports[1:]),
    )
    return made[0]


@contextmanager
def spread_database(coordinator: str, name: str) -> Iterator[str]:
    """A fresh database that is migrated and spread over the nodes; gone afterwards. With
    CARDSYNC_TEST_CITUS_KEEP=NAME it is NAME_… and made where it is missing, and kept for later runs.
    """
    kept = os.environ.get("CARDSYNC_TEST_CITUS_KEEP")
    if kept:
        kept = name = f"{kept}_{name.split('_')[0]}"
    url = urlunsplit(urlsplit(coordinator)._replace(path=f"/{name}"))
    try:
        if not (kept and _is_there(coordinator, kept)):
            make_database(coordinator, name)
        migrate(url)
        distribute(url, places(), SHARDS, lambda _: None, dry_run=False)
        _administer(url, f"ALTER DATABASE {name} SET synchronous_commit = off")
        yield url
    finally:
        if not kept:
            drop_database(coordinator, name)


def one_shard_alone(url: str) -> str:
    """The same address for the application: a statement that reaches several shards is an error.
    A plan for any seller, which is tried and dropped, would be one.
    """
    settings = ("citus.multi_task_query_log_level=error", "plan_cache_mode=force_custom_plan")
    return f"{url}?{urlencode({'options': ' '.join(f'-c {one}' for one in settings)}, quote_via=quote)}"


def _is_there(coordinator: str, name: str) -> bool:
    with psycopg.connect(libpq_url(coordinator, role=None)) as connection:
        asked = "SELECT FROM pg_database WHERE datname = %s"
        return connection.execute(asked, [name]).rowcount > 0


def empty(connection: psycopg.Connection[Any]) -> None:
    """Delete the rows of all sellers; emptying whole tables takes long here."""
    connection.execute("SET lock_timeout = '1s'")
    ours = [table.name for table in reversed(seller_tables())]
    for table in ("procrastinate_jobs", *ours):
        with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            connection.execute(f"DELETE FROM {table}")


def drop_database(coordinator: str, name: str) -> None:
    for node in nodes_of(coordinator):
        _administer(node, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _administer(url: str, *statements: str) -> None:
    with psycopg.connect(libpq_url(url, role=None), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def run(command: list[str]) -> int:
    """Run the command beside a cluster of its own, or say that there is none to be had."""
    if programs() is None:
        print("no PostgreSQL with Citus is here: nothing is run on a cluster")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="cardsync-cluster-"))
    try:
        environment = os.environ | {
            "CARDSYNC_TEST_CITUS_URL": start(folder),
            "CARDSYNC_TEST_BESIDE": ".venv/bin/python tests/citus_cluster.py run",
        }
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "start":
        print(start(Path(rest[0])))
    elif what == "stop":
        stop(Path(rest[0]))
    else:
        sys.exit(run(rest))

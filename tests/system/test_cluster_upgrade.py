"""A data folder of an older major version of PostgreSQL comes to the bundled one, with its rows;
whatever fails or is killed, one of the two is whole and in use.

Each test runs pg_upgrade itself, which takes seconds.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from tests.system.processes import a_folder, until

from cardsync.operations.processes import cluster_upgrade, embedded_host
from cardsync.operations.processes.cluster_server import SUPERUSER
from cardsync.operations.processes.embedded import running
from cardsync.operations.processes.embedded_host import (
    CLUSTER,
    bundled,
    choose_home,
    database_account,
)
from cardsync.platform.database.migrate import head_revision, migrate
from cardsync.platform.database.urls import libpq_url
from released_schemas import DUMPS, text_of
from schedule import count

OLD, NEW = min(bundled()), max(bundled())
START = """
import sys
from pathlib import Path
from cardsync.operations.processes.embedded import running
with running(Path(sys.argv[1]), say=lambda line: print(line, flush=True)):
    print("is up", flush=True)
"""
pytestmark = pytest.mark.skipif(OLD == NEW, reason="the wheel brings one version alone")


@pytest.fixture(scope="module")
def made_before() -> Iterator[Path]:
    """A stopped data folder of the older version, with the shop of the newest dump."""
    with a_folder() as folder, pytest.MonkeyPatch.context() as patch:
        data = folder / "data"
        home = choose_home(data)
        account = database_account(home)
        only_old(patch)
        # The older version knows no locales of its own.
        install = embedded_host.runnable(bundled()[OLD], account)
        fresh = home / "making"
        fresh.mkdir()
        account.own(fresh)
        command = [str(install / "bin" / "initdb"), "-D", str(fresh), "-U", SUPERUSER]
        with (home / "initdb.log").open("wb") as log:
            options = ["--encoding=UTF8", "--locale=C", "--auth=trust"]
            assert account.spawn([*command, *options], log).wait() == 0
        fresh.rename(home / CLUSTER)
        with running(data) as server, psycopg.connect(server.admin_url()) as connection:
            connection.execute("CREATE ROLE cardsync_backup NOSUPERUSER BYPASSRLS")
            connection.execute(text_of(DUMPS[-1]))
        patch.undo()
        yield data


@pytest.fixture
def data(made_before: Path) -> Iterator[Path]:
    with a_folder() as folder:
        subprocess.run(["cp", "-a", made_before, folder / "data"], check=True)
        yield folder / "data"


def only_old(patch: pytest.MonkeyPatch) -> None:
    """Run as a program whose wheel had the older version alone."""
    install = bundled()[OLD]
    for module in (embedded_host, cluster_upgrade):
        patch.setattr(module, "bundled", lambda: {OLD: install})


def version_of(data: Path) -> int:
    return int((data / "postgres" / CLUSTER / "PG_VERSION").read_text())


def is_whole(data: Path) -> int:
    """Start it; the shop is there and can be migrated. Returns the version that runs."""
    with running(data) as server:
        migrate(server.admin_url())
        with psycopg.connect(libpq_url(server.admin_url(), role=None)) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            assert found == (head_revision(),)
            cards = connection.execute("SELECT count(*) FROM card").fetchone()
            assert cards is not None
            assert cards[0] > 600
            return connection.info.server_version // 10_000


def left_by_upgrade(data: Path) -> list[Path]:
    return [path for path in (data / "postgres").iterdir() if path.name.startswith("before-")]


def test_the_next_start_upgrades_and_keeps_the_old_one(data: Path) -> None:
    said: list[str] = []
    with running(data, say=said.append) as server, psycopg.connect(server.url()) as connection:
        assert connection.info.server_version // 10_000 == NEW
    assert f"The database is on PostgreSQL {NEW}" in said[-1]
    assert len(said) > 3
    [kept] = left_by_upgrade(data)
    assert (kept / "PG_VERSION").read_text().strip() == str(OLD)
    assert not (data / "postgres" / cluster_upgrade.WORK).exists()
    assert is_whole(data) == NEW
    # The way back: the old folder in its place, and the program that wrote it.
    shutil.rmtree(data / "postgres" / CLUSTER)
    kept.rename(data / "postgres" / CLUSTER)
    with pytest.MonkeyPatch.context() as patch:
        only_old(patch)
        assert is_whole(data) == OLD


def test_a_full_disk_leaves_it_as_it_is(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_upgrade, "SPARE_BYTES", 1 << 60)
    said: list[str] = []
    with running(data, say=said.append) as server, psycopg.connect(server.url()) as connection:
        assert connection.info.server_version // 10_000 == OLD
    assert "stays on PostgreSQL" in said[-1]
    assert "MB of room" in said[-1]


@pytest.mark.night
def test_what_pg_upgrade_refuses_leaves_it_as_it_is(data: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        only_old(patch)
        with (
            running(data) as server,
            psycopg.connect(server.admin_url("postgres"), autocommit=True) as connection,
        ):
            # It wants to connect to each database but template0.
            connection.execute(
                "UPDATE pg_database SET datallowconn = false WHERE datname = 'template1'"
            )
    said: list[str] = []
    with (
        running(data, say=said.append) as server,
        psycopg.connect(server.admin_url("postgres")) as connection,
    ):
        assert connection.info.server_version // 10_000 == OLD
    assert "pg_upgrade failed" in said[-1], said
    assert not (data / "postgres" / cluster_upgrade.WORK).exists()


@pytest.mark.night
def test_a_server_in_use_is_upgraded_later(data: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        only_old(patch)
        with running(data):
            patch.undo()
            said: list[str] = []
            with running(data, say=said.append) as server:
                assert server.is_up()
            assert "in use" in said[0]
    assert is_whole(data) == NEW


def starting(data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START, str(data)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.night
def test_of_two_starts_at_once_one_upgrades(data: Path) -> None:
    two = [starting(data), starting(data)]
    said = [process.communicate(timeout=300)[0] for process in two]
    assert [process.returncode for process in two] == [0, 0], said
    assert sum("copying the data" in lines for lines in said) == 1
    assert len(left_by_upgrade(data)) == 1
    assert is_whole(data) == NEW


def killed_when(data: Path, ready: Callable[[], object]) -> None:
    with starting(data) as process:
        until(lambda: ready() or process.poll() is not None, "the moment of the kill")
        process.send_signal(signal.SIGKILL)


@pytest.mark.night
def test_killed_while_it_copies(data: Path) -> None:
    """The new cluster is under way, and pg_upgrade lives on without its parent."""
    work = data / "postgres" / cluster_upgrade.WORK
    killed_when(data, (work / "pg_upgrade.log").exists)
    assert work.exists()
    assert version_of(data) == OLD
    assert is_whole(data) == NEW
    assert not [p for p in psutil.process_iter(["name"]) if p.info["name"] == "pg_upgrade"]


@pytest.mark.night
def test_killed_between_the_two_renames(data: Path) -> None:
    """No moment in a process is so short, so the folders are put as it would leave them."""
    home = data / "postgres"
    with running(data):
        pass
    [kept] = left_by_upgrade(data)
    work = home / cluster_upgrade.WORK
    work.mkdir()
    (home / CLUSTER).rename(work / CLUSTER)
    (work / cluster_upgrade.CHECKED).touch()
    assert is_whole(data) == NEW
    assert kept.exists()
    assert not work.exists()


@pytest.mark.night
def test_killed_at_random_moments(data: Path) -> None:
    for _ in range(count("UPGRADE_KILLS", 25, 3)):
        with starting(data) as process:
            time.sleep(random.uniform(0, 12))
            process.kill()
    assert is_whole(data) == NEW

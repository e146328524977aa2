"""The embedded PostgreSQL with real processes: every way a user, a server or both can come and go.

As root the server runs as another account, which cannot enter pytest's own temporary folders:
these tests make theirs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from cardsync.operations.processes import cluster_server, embedded, embedded_host, postmaster
from cardsync.operations.processes.embedded import EmbeddedError, EmbeddedServer, running
from waiting import until

ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not ROOT, reason="only root runs the server as another account")

USER = """
import signal, sys
from pathlib import Path
from cardsync.operations.processes.embedded import running

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with running(Path(sys.argv[1]), say=lambda text: print(text, file=sys.stderr)) as server:
    try:
        print(server.admin_url(), flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        import psycopg
        with psycopg.connect(server.url()) as connection:
            print(connection.execute("SELECT 'still there'").fetchone()[0], flush=True)
"""

ROUNDS = """
import sys
from pathlib import Path
import psycopg
from cardsync.operations.processes.embedded import running

for _ in range(int(sys.argv[2])):
    with running(Path(sys.argv[1])) as server, psycopg.connect(server.url()) as connection:
        connection.execute("SELECT 1")
"""


def processes_below(folder: Path) -> list[psutil.Process]:
    def inside(process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return Path(process.cwd()).is_relative_to(folder)
        return False

    return [process for process in psutil.process_iter() if inside(process)]


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    for process in processes_below(path):
        with suppress(psutil.Error):
            process.kill()
    for record in path.rglob("socket.path"):
        shutil.rmtree(os.fsdecode(record.read_bytes()), ignore_errors=True)
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def system_dir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(embedded_host, "SYSTEM_DIR", folder / "system")
    return folder / "system"


@pytest.fixture(scope="module")
def made_before() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp"))
    path.chmod(0o755)
    try:
        with running(path / "data") as server, psycopg.connect(server.admin_url()) as connection:
            connection.execute("CREATE TABLE kept (n int)")
        yield path / "data"
    finally:
        shutil.rmtree(path)


@pytest.fixture
def data(folder: Path, made_before: Path) -> Path:
    """A data folder with a stopped database that has an empty table `kept`."""
    subprocess.run(["cp", "-a", made_before, folder / "data"], check=True)
    return folder / "data"


@pytest.fixture
def a_user() -> Iterator[Callable[[Path], User]]:
    started: list[User] = []

    def start(data_dir: Path) -> User:
        started.append(User(data_dir))
        return started[-1]

    yield start
    for user in started:
        with user.process:
            user.process.kill()


class User:
    """Another process inside `running`."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(120)

    def signal(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(120)


def server_pid(data_dir: Path) -> int | None:
    """The living server's process, found without the code under test."""
    cluster = data_dir / "postgres" / "cluster"
    for process in processes_below(cluster):
        with suppress(psutil.Error):
            if "-D" in process.cmdline():
                return process.pid
    return None


def is_stopped(data_dir: Path) -> bool:
    return (
        not (data_dir / "postgres/cluster/postmaster.pid").exists() and server_pid(data_dir) is None
    )


def keep(url: str, number: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO kept VALUES (%s)", [number])


def kept(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM kept ORDER BY n")]


# Where it lies


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "name",
    [
        'deep/er/and/my cards/it\'s "mine" $HOME `x`/Sammlung für Öl, Kärtchen',
        "x" * 120,
    ],
)
def test_any_folder_name_works(folder: Path, name: str):
    with running(folder / name) as server, psycopg.connect(server.url()) as connection:
        row = connection.execute(
            "SELECT current_user, lower('ÄÖ'), pg_encoding_to_char(encoding) FROM pg_database"
        ).fetchone()
        assert row == ("cardsync_app", "äö", "UTF8")
        assert not server.moved
        assert server.data_dir.is_relative_to(folder / name)
    assert is_stopped(folder / name)


@pytest.mark.night
def test_a_later_start_takes_less_than_two_seconds(data: Path):
    def seconds() -> float:
        begun = time.monotonic()
        with running(data) as server:
            assert kept(server.admin_url()) == []
        return time.monotonic() - begun

    # One of many does, also on a machine that others keep busy.
    assert any(seconds() < 2 for _ in range(20))


def half_made(folder: Path, a_user) -> Path:
    """A data folder whose first start was killed before its end; on a busy machine the kill may
    come too late, and another is tried.
    """
    for turn in range(10):
        postgres = folder / f"data{turn}" / "postgres"
        user = a_user(postgres.parent)
        until(
            lambda at=postgres: list(at.glob("cluster-*/base")) or (at / "cluster").exists(),
            "it",
            pause=0.01,
        )
        user.signal(signal.SIGKILL)
        if not (postgres / "cluster").exists():
            return postgres.parent
    raise AssertionError("no start was killed in time")


@pytest.mark.night
def test_a_half_finished_first_start_is_done_again(folder: Path, a_user):
    data = half_made(folder, a_user)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(folder) in part for part in process.cmdline()):
                process.kill()
    with running(data) as server, psycopg.connect(server.url()):
        assert not list(data.glob("postgres/cluster-*"))


def test_a_cluster_of_another_major_version_is_named(data: Path):
    (data / "postgres/cluster/PG_VERSION").write_text("9\n")
    with (
        pytest.raises(
            EmbeddedError,
            match=r"written by PostgreSQL 9, but this installation brings PostgreSQL .*18",
        ),
        running(data),
    ):
        pass


def test_a_failed_start_quotes_the_log(data: Path):
    with (data / "postgres/cluster/postgresql.conf").open("a") as conf:
        conf.write("\nno_such_setting = 1\n")
    with pytest.raises(EmbeddedError, match="no_such_setting"), running(data):
        pass
    assert is_stopped(data)


# Permissions


def test_the_application_role_cannot_bypass_row_security(data: Path):
    with running(data) as server, psycopg.connect(server.admin_url("postgres")) as admin:
        admin.execute("ALTER ROLE cardsync_app SUPERUSER BYPASSRLS")
    with running(data) as server, psycopg.connect(server.url()) as connection:
        flags = "rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolcanlogin"
        row = connection.execute(
            f"SELECT {flags} FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == (False, False, False, False, True)
        owner = connection.execute(
            "SELECT datdba::regrole::text FROM pg_database WHERE datname = 'cardsync'"
        ).fetchone()
        assert owner == ("postgres",)


def test_durability_is_kept_and_the_log_is_discreet(data: Path):
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "listen_addresses": "",
        "jit": "off",
    }
    with running(data) as server, psycopg.connect(server.url(), autocommit=True) as connection:
        assert {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in wanted} == wanted
        with suppress(psycopg.Error):
            connection.execute("SELECT 'a secret'::int, %s::int", ["another secret"])
        with suppress(psycopg.Error):
            connection.execute("SELECT nonsense, 'third secret'")
    log = "".join(path.read_text() for path in (data / "postgres/log").iterdir())
    assert "nonsense" in log
    assert "third secret" not in log
    assert "another secret" not in log


def test_no_port_is_open_and_the_socket_is_private(data: Path):
    with running(data) as server:
        assert psutil.Process(server_pid(data)).net_connections(kind="inet") == []
        found = server.socket_dir.stat()
        assert found.st_mode & 0o777 == 0o700
        assert found.st_uid == server.data_dir.stat().st_uid


@only_root
def test_other_users_cannot_connect(data: Path):
    with running(data) as server:
        psql = Path(psutil.Process(server_pid(data)).exe()).with_name("psql")
        command = [psql, server.url(), "-c", "SELECT 1"]
        mine = subprocess.run(command, capture_output=True, text=True, cwd="/")
        theirs = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd="/",
            user="nobody",
            group="nogroup",
            extra_groups=[],
        )
    assert mine.returncode == 0
    assert theirs.returncode != 0
    assert "Permission denied" in theirs.stderr


@pytest.mark.night
def test_a_socket_outside_is_remembered_and_verified(folder: Path):
    data_dir = folder / ("long" * 30)
    with running(data_dir) as server:
        first = server.socket_dir
        assert len(bytes(first)) < 100
    with running(data_dir) as server:
        assert server.socket_dir == first
    first.chmod(0o755)  # somebody else's doing
    try:
        with running(data_dir) as server, psycopg.connect(server.url()):
            assert server.socket_dir != first
    finally:
        first.rmdir()


@pytest.mark.night
def test_a_socket_folder_swept_away_is_made_again(folder: Path):
    data_dir = folder / ("long" * 30)
    with running(data_dir) as server:
        shutil.rmtree(server.socket_dir)
        with running(data_dir) as again, psycopg.connect(server.url()):
            assert again.socket_dir == server.socket_dir


# Coming and going


def test_the_last_of_several_users_stops_the_server(data: Path, a_user):
    other = a_user(data)
    url = other.line()
    pid = server_pid(data)
    with running(data) as server:
        assert server.admin_url() == url
        assert other.leave() == 0
        assert server_pid(data) == pid
        keep(url, 1)
    assert is_stopped(data)


def test_processes_that_start_at_the_same_moment_share_one_new_server(folder: Path, a_user):
    users = [a_user(folder / "data") for _ in range(3)]
    urls = {user.line() for user in users}
    assert len(urls) == 1
    with psycopg.connect(urls.pop()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert [user.leave() for user in users] == [0, 0, 0]
    assert is_stopped(folder / "data")


@pytest.mark.night
def test_starting_and_stopping_do_not_get_in_each_others_way(data: Path):
    command = [sys.executable, "-c", ROUNDS, str(data), "6"]
    crowd = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(user.communicate(timeout=300)[1], user.returncode) for user in crowd] == [("", 0)] * 3
    assert is_stopped(data)


def test_sigterm_of_the_user_stops_the_server(data: Path, a_user):
    user = a_user(data)
    assert user.line()
    assert user.signal(signal.SIGTERM) == 0
    assert is_stopped(data)


@pytest.mark.night
def test_ctrl_c_in_the_terminal_leaves_the_server_to_the_application(data: Path, a_user):
    user = a_user(data)
    assert user.line()
    os.killpg(user.process.pid, signal.SIGINT)
    assert user.line() == "still there"
    assert user.process.wait(120) == 0
    assert is_stopped(data)


def test_a_forked_child_does_not_stop_its_parents_server(data: Path):
    child = -1
    with suppress(SystemExit), running(data) as server:
        child = os.fork()
        if child == 0:
            sys.exit()
        os.waitpid(child, 0)
        assert kept(server.admin_url()) == []
    if child == 0:
        os._exit(0)
    assert is_stopped(data)


# Crashes


def test_a_server_whose_user_was_killed_is_adopted(data: Path, a_user):
    user = a_user(data)
    keep(user.line(), 1)
    pid = server_pid(data)
    user.signal(signal.SIGKILL)
    assert server_pid(data) == pid
    with running(data) as server:
        assert server_pid(data) == pid
        assert kept(server.admin_url()) == [1]
    assert is_stopped(data)


@pytest.mark.night
def test_a_killed_server_is_started_again_beside_its_user(data: Path, a_user):
    user = a_user(data)  # stays the parent of the dead server, which nobody reaps
    url = user.line()
    keep(url, 1)
    os.kill(server_pid(data), signal.SIGKILL)
    with running(data) as server:
        assert server.admin_url() == url
        assert kept(url) == [1]
    assert server_pid(data) is not None
    assert user.leave() == 0
    assert is_stopped(data)


def test_entering_again_revives_a_killed_server(data: Path):
    with running(data) as server:
        keep(server.admin_url(), 1)
        os.kill(server_pid(data), signal.SIGKILL)
        with running(data):
            pass
        assert kept(server.admin_url()) == [1]
    assert is_stopped(data)


def test_everything_killed_under_load_keeps_what_was_acknowledged(data: Path, a_user):
    user = a_user(data)
    url = user.line()
    acknowledged: list[int] = []

    def load() -> None:
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            while True:
                connection.execute("INSERT INTO kept VALUES (%s)", [len(acknowledged)])
                acknowledged.append(len(acknowledged))

    thread = threading.Thread(target=load)
    thread.start()
    until(lambda: len(acknowledged) > 100, "enough", pause=0.01)
    user.signal(signal.SIGKILL)
    for process in processes_below(data):
        with suppress(psutil.Error):
            process.kill()
    thread.join()
    with running(data) as server:
        assert set(acknowledged) <= set(kept(server.admin_url()))
    assert is_stopped(data)


@pytest.mark.night
def test_backends_that_outlive_their_server_end_and_foreign_ones_do_not(
    data: Path, folder: Path, made_before: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postmaster, "REMAINS_SECONDS", (0.3, 0.5, 10.0))
    subprocess.run(["cp", "-a", made_before, folder / "foreign"], check=True)
    with (
        running(folder / "foreign") as foreign,
        psycopg.connect(foreign.url()) as untouched,
        running(data) as server,
    ):
        busy, stuck = (psycopg.connect(server.url()) for _ in range(2))
        orphans = [psutil.Process(connection.info.backend_pid) for connection in (busy, stuck)]
        busy.pgconn.send_query(b"DO 'BEGIN LOOP END LOOP; END'")
        orphans[1].suspend()
        os.kill(server_pid(data), signal.SIGKILL)
        with running(data):
            assert not any(orphan in processes_below(data) for orphan in orphans)
            keep(server.admin_url(), 1)
        assert untouched.execute("SELECT 1").fetchone() == (1,)
        busy.close()
        stuck.close()


def test_a_number_that_another_process_got_is_not_taken_for_the_server(data: Path):
    stale = f"{os.getpid()}\n{data}/postgres/cluster\n1\n5432\n/tmp\n\n1 1\nready\n"
    (data / "postgres/cluster/postmaster.pid").write_text(stale)
    with running(data) as server:
        assert kept(server.admin_url()) == []
    assert is_stopped(data)


@pytest.mark.night
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(0.3, id="short"),
        pytest.param(2.5, id="over ten seconds", marks=pytest.mark.night),
    ],
)
def test_a_long_recovery_is_waited_for_and_told(data: Path, monkeypatch, step: float):
    monkeypatch.setattr(postmaster, "REPORT_SECONDS", step)
    with (data / "postgres/cluster/postgresql.conf").open("a") as conf:
        conf.write(f"\nhot_standby = off\nrestore_command = 'sleep {step}; false'\n")
    (data / "postgres/cluster/recovery.signal").touch()
    told: list[str] = []
    begun = time.monotonic()
    with running(data, say=told.append) as server:
        assert time.monotonic() - begun > 4 * step
        assert kept(server.admin_url()) == []
    assert any("recovering" in text for text in told)


@pytest.mark.night
def test_a_recovery_beyond_the_limit_goes_on_and_is_adopted_later(data: Path, monkeypatch):
    with (data / "postgres/cluster/postgresql.conf").open("a") as conf:
        conf.write("\nhot_standby = off\nrestore_command = 'sleep 0.5; false'\n")
    (data / "postgres/cluster/recovery.signal").touch()
    with monkeypatch.context() as patch:
        patch.setattr(cluster_server, "START_SECONDS", 0.5)
        with pytest.raises(embedded.StillRecovering, match="start again later"), running(data):
            pass
    pid = server_pid(data)
    assert pid is not None
    with running(data):
        assert server_pid(data) == pid
    assert is_stopped(data)


# As root


def modes(*folders: Path) -> list[tuple[int, int]]:
    return [(folder.stat().st_mode, folder.stat().st_uid) for folder in folders]


@only_root
def test_root_runs_the_server_as_somebody_without_rights(data: Path):
    with running(data) as server:
        assert server.data_dir.stat().st_uid != 0
        assert set(psutil.Process(server_pid(data)).uids()) == {server.data_dir.stat().st_uid}
        assert "PYTEST_CURRENT_TEST" not in psutil.Process(server_pid(data)).environ()


def in_private_folder(folder: Path, data_dir: Path, told: list[str]) -> EmbeddedServer:
    with running(data_dir, say=told.append) as server, psycopg.connect(server.url()):
        return server


@pytest.mark.night
@only_root
def test_a_folder_that_the_database_user_cannot_enter_is_left_alone(folder: Path, system_dir: Path):
    private = folder / "private"
    (private / "data").mkdir(parents=True)
    private.chmod(0o700)
    before = modes(folder, private, private / "data")
    told: list[str] = []
    server = in_private_folder(folder, private / "data", told)
    assert server.moved
    assert server.data_dir.is_relative_to(system_dir)
    assert str(server.data_dir.parent) in told[-1]
    assert list((private / "data").iterdir()) == []
    assert modes(folder, private, private / "data") == before
    private.chmod(0o755)
    assert (
        in_private_folder(folder, private / "data", told).data_dir == server.data_dir
    )  # it stays where the data is


@only_root
def test_a_database_that_became_unreachable_is_not_replaced_by_an_empty_one(data: Path):
    data.chmod(0o700)
    with pytest.raises(EmbeddedError, match="cannot enter that folder"), running(data):
        pass


@only_root
@pytest.mark.night
def test_programs_that_the_database_user_cannot_reach_are_copied_once(
    data: Path, folder: Path, system_dir: Path, monkeypatch
):
    install = embedded_host.bundled()[18]
    wheel = install.parent
    private = folder / "private"
    private.mkdir(0o700)
    for part in (wheel, wheel.with_name(f"{wheel.name}.libs")):
        subprocess.run(["cp", "-a", part, private / part.name], check=True)
    subprocess.run(["chmod", "-R", "go-rwx", private], check=True)
    unreachable = {18: private / wheel.name / install.name}
    monkeypatch.setattr(embedded_host, "bundled", lambda: unreachable)
    for _ in range(2):
        with running(data):
            assert Path(psutil.Process(server_pid(data)).exe()).is_relative_to(system_dir)
        assert len(list(system_dir.iterdir())) == 1
    with running(folder / "new") as server, psycopg.connect(server.url()):
        assert not server.moved
    assert private.stat().st_mode & 0o777 == 0o700

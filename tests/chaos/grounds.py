"""A server with proxies between it and its database and object store, two processes of each kind,
and the faults that can be put on it. `heal` of a fault needs nobody's hand but an init's.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
from tests.chaos.proxy import FAULTS, Proxy
from tests.s3_server import s3_server
from tests.system.processes import Server, kill, made_before

from cardsync.operations.processes import embedded

DISK_BYTES = 100_000_000
# A module of this folder moves the clock of each process.
WRONG_CLOCK = Path(__file__).with_name("wrong_clock")
PROCESSES = 2
JUMPS = {
    "an hour ahead": 3_600,
    "an hour behind": -3_600,
    "three days ahead": 259_200,
    "forty days ahead": 3_456_000,
}
Fault = Callable[["Ground", float], AbstractContextManager[None]]


class Ground(Server):
    """`cardsync serve` with its database, and a bucket or a small disk, behind proxies."""

    def __init__(
        self, stack: ExitStack, folder: Path, *, bucket: bool = False, clock: bool = False
    ) -> None:
        self.disk = stack.enter_context(a_small_disk())
        home = folder / "data"
        subprocess.run(["cp", "-a", made_before(), home], check=True)
        database = stack.enter_context(embedded.running(home))
        self.database = Proxy(database.socket_dir / f".s.PGSQL.{database.port}")
        self.store: Proxy | None = None
        stack.callback(self.database.close)
        settings, env = self._settings(database), dict[str, str]()
        if bucket:
            env = stack.enter_context(s3_server(folder))
            self.store = Proxy(int(urlsplit(env["AWS_ENDPOINT"]).port or 0))
            stack.callback(self.store.close)
            env["AWS_ENDPOINT"] = f"http://127.0.0.1:{self.store.port}"
            settings["OBJECT_STORE_URL"] = "s3://chaos/shop"
        super().__init__(folder, **settings)
        self.clock = folder / "clock"
        self.set_clock(0)
        # What is spooled before it goes to a bucket is on the small disk, too.
        self.env |= env | {"TMPDIR": str(self.disk)} | (self._jumping() if clock else {})

    def _settings(self, database: embedded.EmbeddedServer) -> dict[str, str]:
        name, admin = (
            unquote(urlsplit(url).path.strip("/")) for url in (database.url(), database.admin_url())
        )
        assert name == admin
        return {
            "DATA_DIR": str(self.disk / "data"),
            "DATABASE_URL": f"postgresql://cardsync_app@127.0.0.1:{self.database.port}/{name}",
            "MIGRATION_DATABASE_URL": database.admin_url(),
            "WEB_WORKERS": str(PROCESSES),
            "JOB_WORKERS": str(PROCESSES),
            "SLAB_ROWS": "15",
            "POLLED_SECONDS": "3",
            "REQUEST_SECONDS": "8",
        }

    def _jumping(self) -> dict[str, str]:
        path = f"{WRONG_CLOCK}{os.pathsep}{self.env.get('PYTHONPATH', '')}"
        return {"PYTHONPATH": path, "CHAOS_CLOCK": str(self.clock)}

    def start(self) -> None:
        super().start()
        # The tests make sellers by the secret of the folder that has the database.
        shutil.copy(self.disk / "data" / "secret.key", self.data_dir)

    def set_clock(self, seconds: int) -> None:
        draft = self.clock.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.rename(self.clock)


@contextmanager
def a_small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cs-chaos-", dir="/tmp"))
    options = f"size={DISK_BYTES},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def suspended(processes: list[psutil.Process]) -> Iterator[None]:
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()


@contextmanager
def _database(ground: Ground, seconds: float, *, fault: str) -> Iterator[None]:
    with ground.database.faulty(fault):  # type: ignore[arg-type]
        time.sleep(seconds)
        yield


@contextmanager
def _store(ground: Ground, seconds: float, *, fault: str) -> Iterator[None]:
    assert ground.store is not None
    with ground.store.faulty(fault):  # type: ignore[arg-type]
        time.sleep(seconds)
        yield


@contextmanager
def _database_killed(ground: Ground, seconds: float) -> Iterator[None]:
    """An init starts it again after a while."""
    kill(*ground.postgres())
    time.sleep(seconds)
    yield
    with embedded.running(ground.data_dir):
        pass


@contextmanager
def _backend_killed(ground: Ground, seconds: float) -> Iterator[None]:
    """The others end, too, and the server recovers by itself."""
    backends = [one for one in ground.postgres() if "127.0.0.1" in "".join(one.cmdline())]
    kill(random.choice(backends or ground.postgres()[1:]))
    time.sleep(seconds / 4)
    yield


@contextmanager
def _database_stopped(ground: Ground, seconds: float) -> Iterator[None]:
    with suspended(ground.postgres()):
        time.sleep(seconds)
        yield


@contextmanager
def _killed(ground: Ground, seconds: float, *, kind: str) -> Iterator[None]:
    # granian ends all of its processes where one dies young: its main process is never alone.
    kill(random.choice(ground.children(kind) or [ground.supervisor()]))
    time.sleep(seconds / 4)
    yield


@contextmanager
def _stopped(ground: Ground, seconds: float, *, kind: str) -> Iterator[None]:
    processes = ground.children(kind)
    with suspended(random.sample(processes, random.randint(1, len(processes)))):
        time.sleep(seconds)
        yield


@contextmanager
def _all_killed(ground: Ground, seconds: float) -> Iterator[None]:
    kill(*ground.children("web"), *ground.children("worker"))
    time.sleep(seconds / 4)
    yield


@contextmanager
def _disk_full(ground: Ground, seconds: float) -> Iterator[None]:
    filler = ground.disk / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    try:
        time.sleep(seconds)
        yield
    finally:
        filler.unlink()


@contextmanager
def _clock_jump(ground: Ground, seconds: float, *, jump: int) -> Iterator[None]:
    """A wrong time comes, and a worker dies with what it holds; then the right time comes back."""
    ground.set_clock(jump)
    try:
        time.sleep(seconds / 2)
        kill(*ground.children("worker"))
        time.sleep(seconds / 2)
        yield
    finally:
        ground.set_clock(0)


LOCAL: dict[str, Fault] = {
    **{f"database, {fault}": partial(_database, fault=fault) for fault in FAULTS},
    "database killed": _database_killed,
    "a backend killed": _backend_killed,
    "database stopped": _database_stopped,
    "web killed": partial(_killed, kind="web"),
    "worker killed": partial(_killed, kind="worker"),
    "web stopped": partial(_stopped, kind="web"),
    "worker stopped": partial(_stopped, kind="worker"),
    "all killed": _all_killed,
    "disk full": _disk_full,
}
BUCKET: dict[str, Fault] = {
    **{f"store, {fault}": partial(_store, fault=fault) for fault in FAULTS},
    "bucket, disk full": _disk_full,
    "bucket, database half_open": partial(_database, fault="half_open"),
}
CLOCK: dict[str, Fault] = {
    f"clock {name}": partial(_clock_jump, jump=jump) for name, jump in JUMPS.items()
}

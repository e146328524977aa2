"""Real processes: a server of our own with its data folder and ports, sellers in it, and what is
left when it is gone.

Waiting is always for a condition with a deadline (`until`). `Server` is a context manager that
leaves no process behind.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx
import psutil
import psycopg
from psycopg.rows import dict_row

from builders import uncap
from cardsync.operations.processes import embedded
from cardsync.platform.database.migrate import migrate
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import APP_ROLE, libpq_url
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import sellers
from one_run import one_at_a_time
from waiting import until

T = TypeVar("T")
PROGRAM = [sys.executable, "-m", "cardsync"]
START_SECONDS = 180
UPLOADED = ("done", "failed", "cancelled", "awaiting_review", "discarded")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def a_folder() -> Iterator[Path]:
    """A folder that the database's own user can enter, unlike pytest's; with it goes every
    process that works in it.
    """
    path = Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        for process in processes_of(path):
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes_of(path), 60)
        for record in path.rglob("socket.path"):
            shutil.rmtree(os.fsdecode(record.read_bytes()), ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)


@cache
def made_before() -> Path:
    """A data folder with a migrated database and nothing in it: what most servers here begin
    with. The first process of a test run makes it for all.
    """
    path = Path(os.environ["CARDSYNC_TEST_DIR"]) / "made"
    with one_at_a_time("made"):
        if not (path / "ready").exists():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            path.chmod(0o755)
            with embedded.running(path / "data") as server:
                migrate(server.admin_url())
            (path / "ready").touch()
    return path / "data"


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every living process that names the folder in its command line or environment, or works in
    it.
    """
    mine = os.getpid()

    def belongs(process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            if process.pid == mine or process.status() == psutil.STATUS_ZOMBIE:
                return False
            named = [
                *process.cmdline(),
                process.environ().get("CARDSYNC_DATA_DIR", ""),
                process.cwd(),
            ]
            return any(str(folder) in text for text in named)
        return False

    return [process for process in psutil.process_iter() if belongs(process)]


def is_postgres(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.name() == "postgres")
    return False


def told(processes: list[psutil.Process]) -> list[str]:
    lines = []
    for process in processes:
        with suppress(psutil.Error):
            lines.append(f"{process.pid} {' '.join(process.cmdline())[:120]}")
    return lines


def kill(*processes: psutil.Process) -> None:
    """kill -9, all at once, and wait until they are gone."""
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()  # none of them sees another die
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass
class Seller:
    """A seller of a server, over HTTP."""

    server: Server
    id: int
    api_key: str
    email: str = ""
    password: str = ""

    def http(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return httpx.Client(base_url=self.server.url, headers=headers, timeout=90, verify=False)

    def upload(self, data: bytes, exported_at: str | None = None) -> int:
        headers = {"Content-Type": "application/gzip"} | (
            {"X-Exported-At": exported_at} if exported_at else {}
        )
        with self.http() as http:
            answer = http.post("/api/v1/sync", content=gzip.compress(data, 1), headers=headers)
        assert answer.status_code == 202, answer.text
        return int(answer.json()["upload_id"])

    def get(self, path: str) -> httpx.Response:
        with self.http() as http:
            return http.get(path)

    def report(self, upload_id: int) -> dict[str, Any]:
        answer = self.get(f"/api/v1/uploads/{upload_id}")
        assert answer.status_code == 200, answer.text
        report: dict[str, Any] = answer.json()
        return report

    def finished(self, upload_id: int, seconds: float = 180) -> dict[str, Any]:
        """The upload's report, once it is worked off; the server may come and go meanwhile."""

        def ended() -> dict[str, Any] | None:
            with suppress(httpx.TransportError):
                answer = self.get(f"/api/v1/uploads/{upload_id}")
                if answer.status_code < 500:
                    assert answer.status_code == 200, answer.text
                    return answer.json() if answer.json()["state"] in UPLOADED else None
            return None

        return until(
            ended,
            lambda: f"upload {upload_id}; the server says:\n{self.server.said()[-3000:]}",
            seconds,
        )

    def sql(self, query: str, **values: Any) -> list[dict[str, Any]]:
        return self.server.sql(query, seller=self.id, **values)


class Addresses(Protocol):
    """The addresses of a database: as the application, and as the superuser."""

    def url(self) -> str: ...

    def admin_url(self) -> str: ...


class Server:
    """`cardsync serve` in a process of its own."""

    def __init__(self, folder: Path, data_dir: Path | None = None, **settings: str) -> None:
        # With a named data folder, the server makes it itself.
        self.folder, self.data_dir, self.prepared = (
            folder,
            data_dir or folder / "data",
            data_dir is None,
        )
        self.port, self.metrics_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "serve.log"
        given = {
            "DATA_DIR": str(self.data_dir),
            "BIND": f"127.0.0.1:{self.port}",
            "METRICS_BIND": f"127.0.0.1:{self.metrics_port}",
            "LEASE_SECONDS": "2",
            "SLAB_ROWS": "20",
            "SWEEP_SECONDS": "0.5",
            # Tests that wait for something ask often.
            "RATE_LIMIT_GENERAL": "100000/min",
            "RATE_LIMIT_UPLOADS": "100000/min",
            "RATE_LIMIT_SYNC_REQUEST": "100000/min",
            # A key stands in for the member who sets up a test's prices.
            "PRICE_WRITE_LIMITS": "false",
            "DAILY_BACKUPS": "false",
            **settings,
        }
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith("CARDSYNC_")
        }
        self.env = clean | {f"CARDSYNC_{name}": value for name, value in given.items()}
        self.process: subprocess.Popen[bytes] | None = None
        self._running: Addresses | None = None
        self._behind: psycopg.Connection[dict[str, Any]] | None = None
        self._one_at_a_time = threading.RLock()

    @property
    def webs(self) -> int:
        """How many web processes it has; the first one starts the others."""
        return 1 + int(self.env.get("CARDSYNC_WEB_WORKERS", "1"))

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.stop()
        kill(*processes_of(self.data_dir))
        if self.process is not None:
            self.process.wait(60)
        if self._behind is not None:
            self._behind.close()

    def launch(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """Another `cardsync` process with the same settings."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*PROGRAM, *command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
                **{"env": self.env, **options},
            )  # fmt: skip

    def begin(self) -> None:
        """Start it, and don't wait until it is ready."""
        if self.prepared and not self.data_dir.exists():
            subprocess.run(["cp", "-a", made_before(), self.data_dir], check=True)
        self.process = self.launch("serve")

    def start(self) -> None:
        before = len(self.said())
        self.begin()
        # Ready in its own eyes too: until then it gives up where processes keep dying.
        until(
            lambda: self.ready() and "cardsync serves " in self.said()[before:],
            lambda: f"the server; it says:\n{self.said()}",
            START_SECONDS,
        )

    def ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.said()
        with suppress(httpx.TransportError):
            # No certificate is looked at: reading the system's would take more time than the
            # question.
            return httpx.get(f"{self.url}/readyz", timeout=30, verify=False).status_code == 200
        return False

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(120)

    def supervisor(self) -> psutil.Process:
        assert self.process is not None
        return psutil.Process(self.process.pid)

    def children(self, kind: str) -> list[psutil.Process]:
        """Living `web` or `worker` processes below the supervisor, main process first."""

        def is_one(process: psutil.Process) -> bool:
            with suppress(psutil.Error):
                return process.status() != psutil.STATUS_ZOMBIE and process.cmdline()[-2:] == [
                    "cardsync",
                    kind,
                ]
            return False

        return [
            process for process in self.supervisor().children(recursive=True) if is_one(process)
        ]

    def postgres(self) -> list[psutil.Process]:
        return [process for process in processes_of(self.data_dir) if is_postgres(process)]

    def run(self, *command: str) -> Ran:
        """A command that ends by itself."""
        ended = subprocess.run(
            [*PROGRAM, *command],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    def admin_seller(self, email: str = "somebody@example.invalid", *options: str) -> Seller:
        """By the command line, as an operator does it."""
        ran = self.run(
            "admin", "seller", "create", "--name", "Some Body", "--email", email, *options, "--json"
        )
        assert ran.code == 0, ran.err
        made = json.loads(ran.out)
        return Seller(self, made["seller_id"], made["api_key"])

    def seller(
        self,
        *,
        name: str = "A Seller",
        plan: str = "founder",
        sync_mode: str = "full",
        capped: bool = False,
        **settings: Any,
    ) -> Seller:
        """The same without a process, for tests that need many; `capped` as in tests/builders.py."""
        email = f"seller-{time.monotonic_ns()}@example.invalid"

        async def make(database: Database) -> sellers.CreatedSeller:
            async with database.shared() as session:
                made = await sellers.create_seller(
                    session, name=name, email=email, plan=plan, lines=[], sync_mode=sync_mode
                )
            if not capped:
                await uncap(database, made.seller_id)
            if settings:
                pairs = [f"{key}={str(value).lower()}" for key, value in settings.items()]
                async with database.tenant(made.seller_id) as session:
                    await sellers.change_seller(
                        session, made.seller_id, sellers.read_settings(pairs)
                    )
            return made

        made = self.in_database(make)
        return Seller(self, made.seller_id, made.api_key, email, made.password)

    def in_database(self, work: Callable[[Database], Awaitable[T]], *, owner: bool = False) -> T:
        """Do it as the application, or as the owner of the tables."""

        async def done(url: str) -> T:
            mine = seal(Settings(data_dir=self.data_dir))
            role = None if owner else APP_ROLE
            async with Database.open(
                url, pool=1, hot_pool=1, seal=lambda: mine, role=role
            ) as database:
                return await work(database)

        # In a thread of its own: a browser's event loop may run in this one.
        with self.its_database() as database, ThreadPoolExecutor(1) as thread:
            url = database.admin_url() if owner else database.url()
            return thread.submit(asyncio.run, done(url)).result()

    @contextmanager
    def its_database(self) -> Iterator[Addresses]:
        """The database, started for the block if it is down. The way to it is kept: looking for its
        processes takes longer than most questions, and tests that wait ask often.
        """
        if self._running is not None and self._is_connected():
            yield self._running
            return
        with self._up() as self._running:
            url = self._running.admin_url()
            with self._one_at_a_time:
                self._behind = psycopg.connect(url, row_factory=dict_row, autocommit=True)
            yield self._running

    def _up(self) -> AbstractContextManager[Addresses]:
        return embedded.running(self.data_dir)

    def _is_connected(self) -> bool:
        with suppress(psycopg.OperationalError), self._one_at_a_time:
            return self._behind is not None and bool(self._behind.execute("SELECT 1"))
        return False

    def sql(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Rows as the superuser sees them, for looking behind the interface."""
        with self.its_database(), self._one_at_a_time:
            assert self._behind is not None
            found = self._behind.execute(query, values)
            return found.fetchall() if found.description else []


@dataclass(frozen=True)
class Given:
    """A migrated database of somebody else's server."""

    address: str

    def url(self) -> str:
        return self.address

    def admin_url(self) -> str:
        return libpq_url(self.address, role=None)


class OnStock(Server):
    """The same with a given database, which is no process of its own."""

    def __init__(self, folder: Path, address: str, **settings: str) -> None:
        self.given = Given(address)
        where = {"DATABASE_URL": address, "MIGRATION_DATABASE_URL": address}
        super().__init__(folder, folder / "data", **where, **settings)

    def _up(self) -> AbstractContextManager[Addresses]:
        return nullcontext(self.given)


CARDS = """
    SELECT marketplace_id, listing_id, custom, product_id, match, identity_hash, quantity, gone,
        price, market, low, low_with_shipping,
           direct_low, target_price, observed_at, priced_at IS NULL AS unpriced, product_line,
               set_name, product_name, title,
           number, rarity, condition, condition_label, printing, language, photo_url
      FROM card WHERE seller_id = %(seller)s ORDER BY marketplace_id
"""
OBSERVATIONS = """
    SELECT c.marketplace_id, o.observed_at, o.quantity, o.price, o.market, o.low,
        o.low_with_shipping, o.direct_low
      FROM price_observation o JOIN card c USING (seller_id)
      WHERE o.seller_id = %(seller)s AND c.id = o.card_id
     ORDER BY 1, 2
"""
# Uploads and runs by their place in the order, because ids differ between sellers.
RUNS = """
    SELECT u.place, r.trigger, r.state, r.summary - 'receipts' AS summary,
        r.summary ->> 'receipts' IS NOT NULL AS receipts, r.finished_at IS NOT NULL AS finished
      FROM price_run r JOIN (SELECT id, rank() OVER (ORDER BY id) AS place FROM upload
          WHERE seller_id = %(seller)s) u
        ON u.id = r.upload_id WHERE r.seller_id = %(seller)s ORDER BY u.place
"""
PRICE_CHANGES = """
    SELECT dense_rank() OVER (ORDER BY p.run_id) AS run, c.marketplace_id, p.old_price, p.new_price,
        r.priority
      FROM price_change p JOIN card c ON c.seller_id = p.seller_id AND c.id = p.card_id
      LEFT JOIN pricing_rule r ON r.seller_id = p.seller_id AND r.id = p.rule_id
     WHERE p.seller_id = %(seller)s ORDER BY 1, 2
"""
UPLOADS = (
    "SELECT state, error_code, report, verdict FROM upload WHERE seller_id = %(seller)s ORDER BY id"
)
ACTIVITY = (
    "SELECT count(*) AS times FROM activity"
    " WHERE seller_id = %(seller)s AND action = 'inventory.imported'"
)
LINES = (
    "SELECT product_line, observed_at FROM line_snapshot WHERE seller_id = %(seller)s ORDER BY 1"
)
STATE = """
    SELECT lock_kind, lock_uploaded, lease_token, lease_expires_at, work_phase, cancel_requested_at,
        uploads_open, review_upload_id,
           export_fingerprint, last_sync_at IS NOT NULL AS synced, scheduled_failures
      FROM sync_state WHERE seller_id = %(seller)s
"""
SNAPSHOT = {
    "cards": CARDS, "observations": OBSERVATIONS, "runs": RUNS, "price_changes": PRICE_CHANGES,
    "uploads": UPLOADS,
    "activity": ACTIVITY, "lines": LINES, "state": STATE,
}  # fmt: skip


def snapshot(seller: Seller) -> dict[str, Any]:
    """Everything that an import leaves behind, in a form that two sellers with the same files
    share, once its lease is let go.
    """
    until(
        lambda: (
            not seller.sql(
                "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s AND lease_token IS NOT NULL"
            )
        ),
        "the lease",
    )
    taken = {name: seller.sql(query) for name, query in SNAPSHOT.items()}
    return taken | {"export": seller.get("/api/v1/export/price-updates").content}


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if found[name] == value:
            continue
        assert type(found[name]) is type(value), name
        assert len(found[name]) == len(value), f"{name}: {len(found[name])} instead of {len(value)}"
        wrong = [pair for pair in zip(found[name], value, strict=True) if pair[0] != pair[1]]
        assert not wrong, f"{name}: {len(wrong)} differ, the first: {wrong[0]}"

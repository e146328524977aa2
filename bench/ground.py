"""The ground that every end-to-end measurement stands on: an embedded PostgreSQL of its own in a
temporary folder, migrated, with the full shared catalogs, a generated inventory of 300,000 rows,
sellers, and the real web and worker processes. And the printed table.

Nothing here fails on time: machines are shared, so only ratios within one run mean something.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, TypeVar

import polars as pl
import psutil
import psycopg

from budgets import said
from cardsync.access.caller import Caller, caller_of
from cardsync.catalog.load_catalog import import_catalog
from cardsync.operations.processes import supervisor
from cardsync.operations.processes.child import Child
from cardsync.platform.database.session import Database
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.shop.accounts.sellers import CreatedSeller, create_seller

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
CATALOGS = ("magic_xmage", "pokemon_tcgdex_en", "pokemon_japan_tcgdex_ja")
LINES = ["magic", "pokemon", "pokemon_japan"]
MB = 1024 * 1024


@dataclass(frozen=True)
class Figure:
    """A measured value; `bench/budgets.py` has the goals."""

    what: str
    value: float
    unit: str


@dataclass
class Report:
    """The output of one command: the measured times and the figures."""

    title: str
    notes: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def note(self, line: str) -> None:
        self.notes.append(line)
        print(f"  {line}", flush=True)

    def figure(self, what: str, value: float, unit: str = "x") -> None:
        self.figures.append(Figure(what, float(value), unit))

    def show(self) -> None:
        width = max((len(figure.what) for figure in self.figures), default=0)
        print(f"\n{self.title}")
        for figure in self.figures:
            print(f"  {figure.what:<{width}}  {said(figure.value, figure.unit):>12}")


@dataclass(frozen=True)
class Ground:
    """A database that is up.

    `settings` reach it; `inventory` is the generated file, gzipped, `truth` what each row is.
    """

    folder: Path
    settings: Settings
    inventory: Path
    truth: Path

    @property
    def url(self) -> str:
        assert self.settings.database_url is not None
        return self.settings.database_url

    @property
    def admin_url(self) -> str:
        assert self.settings.migration_database_url is not None
        return self.settings.migration_database_url

    def in_database(self, work: Callable[[Database], Awaitable[T]]) -> T:
        async def main() -> T:
            mine = seal(self.settings)
            async with Database.open(self.url, pool=2, hot_pool=1, seal=lambda: mine) as database:
                return await work(database)

        return asyncio.run(main())

    def new_seller(self, *, sync_mode: str = "full") -> CreatedSeller:
        async def make(database: Database) -> CreatedSeller:
            async with database.shared() as session:
                return await create_seller(
                    session,
                    name="Bench",
                    email=f"bench-{os.urandom(6).hex()}@example.invalid",
                    plan="founder",
                    lines=LINES,
                    sync_mode=sync_mode,
                )

        return self.in_database(make)

    async def caller(self, database: Database, seller_id: int) -> Caller:
        """The seller as its newest key names it."""
        with self.admin() as connection:
            key = connection.execute(
                "SELECT max(id) FROM api_key WHERE seller_id = %s", (seller_id,)
            ).fetchone()
        assert key is not None
        return await caller_of(database, seller_id, key[0])

    def admin(self) -> psycopg.Connection[Any]:
        """As the superuser, for looking behind row-level security and for setting a scene."""
        return psycopg.connect(self.admin_url, autocommit=True)

    def postmaster(self) -> psutil.Process:
        """The database's first process; the others are its children."""
        with self.admin() as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            parent = psutil.Process(row[0]).parent()
        assert parent is not None
        return parent

    def settle(self) -> None:
        """Write out what earlier measurements left dirty, so that it isn't charged to the next
        one.
        """
        with self.admin() as connection:
            connection.execute("CHECKPOINT")


def arguments(description: str | None, rows: int = 300_000, **extra: int) -> argparse.Namespace:
    """--data, --rows, and an option for every number in `extra`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="the shared data"
    )
    parser.add_argument("--rows", type=int, default=rows)
    for name, default in extra.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def ground(data: Path, rows: int, *, catalogs: bool = True) -> Iterator[Ground]:
    """A database with the catalogs, and the inventory beside it; all gone afterwards."""
    if not data.is_dir():
        raise SystemExit(f"no data at {data}: nothing measured (see --data)")
    inventory, truth = generated(data, rows)
    folder = Path(tempfile.mkdtemp(prefix="cardsync-bench-"))
    folder.chmod(0o755)
    os.environ["CARDSYNC_LOG_LEVEL"] = "warning"
    # Measurements flood with one key: its limits are counted like any, and never reached.
    os.environ.update(
        {
            f"CARDSYNC_RATE_LIMIT_{group}": "1000000000/min"
            for group in ("GENERAL", "UPLOADS", "SYNC_REQUEST", "DISCOVERY", "WRITES")
        }
    )
    os.environ["CARDSYNC_PRICE_WRITE_LIMITS"] = "false"
    os.environ["CARDSYNC_PICTURE_HOSTS"] = ""
    try:
        settings = Settings(
            data_dir=folder / "data", bind=f"127.0.0.1:{free_port()}", metrics_bind=""
        )
        with supervisor.database(settings, lambda _: None) as ready:
            made = Ground(folder, ready, inventory, truth)
            if catalogs:
                _load_catalogs(made, data)
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load_catalogs(made: Ground, data: Path) -> None:
    async def load(database: Database) -> None:
        for name in CATALOGS:
            await import_catalog(
                database, data / "catalog" / f"{name}.parquet", "auto", None, lambda _: None
            )

    started = perf_counter()
    made.in_database(load)
    with made.admin() as connection:
        connection.execute("VACUUM ANALYZE product")
        count = connection.execute("SELECT count(*) FROM product").fetchone()
    made.settle()
    print(
        f"  {count[0] if count else 0:,} products loaded in {perf_counter() - started:.1f} s",
        flush=True,
    )


def generated(data: Path, rows: int) -> tuple[Path, Path]:
    """The generated inventory as gzip and its truth, made once and kept in the temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"cardsync-bench-data-{os.getuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    inventory, truth = folder / f"inventory-{rows}.csv.gz", folder / f"truth-{rows}.parquet"
    if not (inventory.exists() and truth.exists()):
        draft = folder / f"draft-{os.getpid()}.csv.gz"
        command = [
            sys.executable,
            str(data / "make_inventory.py"),
            "--rows",
            str(rows),
            "--seed",
            "1",
        ]
        command += ["--game", ",".join(LINES), "--truth", str(truth), "--out", str(draft)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        draft.rename(inventory)
    return inventory, truth


def some_changed(inventory: Path, percent: int, times: float = 1.25) -> bytes:
    """The file with the market and low prices of `percent` of its rows moved, spread evenly over
    it, as gzip.
    """
    import gzip

    frame = pl.read_csv(gzip.decompress(inventory.read_bytes()), infer_schema=False)
    moved = pl.int_range(pl.len()).hash(seed=3) % 100 < percent
    cells = []
    for name, decimals in (
        ("TCG Market Price", 2),
        ("TCG Low Price", 4),
        ("TCG Low Price With Shipping", 4),
    ):
        cents = (pl.col(name).cast(pl.Float64, strict=False) * times * 100).round().cast(pl.Int64)
        text = (
            (cents // 100).cast(pl.String)
            + "."
            + (cents % 100).cast(pl.String).str.zfill(2)
            + "0" * (decimals - 2)
        )
        cells.append(pl.when(moved & (pl.col(name) != "")).then(text).otherwise(name).alias(name))
    csv = frame.with_columns(cells).write_csv(quote_style="always", line_terminator="\r\n")
    return gzip.compress(csv.encode(), 6, mtime=0)


@contextmanager
def service(made: Ground, *, workers: int) -> Iterator[list[Child]]:
    """The real web process and so many worker processes, ready."""
    settings = made.settings.model_copy(update={"job_workers": workers})
    with supervisor.processes(settings) as children:
        supervisor.wait_until_ready(settings, children, lambda _: None)
        yield children


@contextmanager
def floor_server(made: Ground, name: str, **env: str) -> Iterator[tuple[str, psutil.Process]]:
    """`bench/floors.py NAME` on granian: (address, process), ready."""
    bind = f"127.0.0.1:{free_port()}"
    given = {"DATABASE": made.url, "BIND": bind, "APP": name, **env}
    environment = {**os.environ, **{f"FLOOR_{key.upper()}": value for key, value in given.items()}}
    process = subprocess.Popen([sys.executable, str(HERE / "floors.py")], env=environment, cwd=HERE)
    try:
        _wait_listening(bind, process)
        yield bind, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _wait_listening(bind: str, process: subprocess.Popen[bytes]) -> None:
    host, _, port = bind.rpartition(":")
    deadline = monotonic() + 30
    while monotonic() < deadline and process.poll() is None:
        try:
            connection = http.client.HTTPConnection(host, int(port), timeout=5)
            connection.request("GET", "/ready")
            connection.getresponse().read()
            return
        except OSError:
            sleep(0.05)
    raise RuntimeError(f"the floor's server did not start on {bind}")


class Client:
    """One kept-alive HTTP connection; `request` returns status, headers and body."""

    def __init__(self, bind: str, key: str = "") -> None:
        host, _, port = bind.rpartition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=300)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body=body, headers={**self._headers, **named})
        answer = self._connection.getresponse()
        return (
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            answer.read(),
        )

    def close(self) -> None:
        self._connection.close()


class Reader:
    """GETs over one kept-alive connection with next to nothing of its own: what `http.client`
    makes of the headers costs 0.2 to 0.4 ms.

    Its server must tell each answer's length.
    """

    def __init__(self, bind: str, key: str) -> None:
        host, _, port = bind.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=300)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: {bind}\r\nAuthorization: Bearer {key}\r\n\r\n"

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{self._head}".encode())
        answer = bytearray()
        while (end := answer.find(b"\r\n\r\n")) < 0:
            self._receive(answer)
        status, *headers = bytes(answer[:end]).lower().split(b"\r\n")
        [length] = [
            int(line.partition(b":")[2]) for line in headers if line.startswith(b"content-length:")
        ]
        while len(answer) < end + 4 + length:
            self._receive(answer)
        assert len(answer) == end + 4 + length
        return int(status.split(b" ")[1]), bytes(answer[end + 4 :])

    def _receive(self, answer: bytearray) -> None:
        part = self._socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the server ended the connection within an answer")
        answer += part


def tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of a process and those of its children that live."""
    used = 0.0
    for member in tree(process):
        with suppress(psutil.NoSuchProcess):
            times = member.cpu_times()
            used += times.user + times.system
    return used


def memory(process: psutil.Process) -> int:
    """Resident bytes of a process and its children now."""
    return sum(member.memory_info().rss for member in tree(process))


def peak_memory(process: psutil.Process) -> int:
    """The most that a process and its children ever had, added up."""
    return sum(_status(member, "VmHWM") for member in tree(process))


def _status(process: psutil.Process, field_name: str) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(field_name):
            return int(line.split()[1]) * 1024
    return 0


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def spread(values: list[float], unit: str = "s", scale: float = 1.0) -> str:
    """`median (min … max)` of some times."""
    low, middle, high = min(values) * scale, statistics.median(values) * scale, max(values) * scale
    digits = 1 if unit == "ms" else 3
    return (
        f"{middle:.{digits}f} {unit} (min {low:.{digits}f}, max {high:.{digits}f}, n {len(values)})"
    )


def main(measure: Callable[..., Report], description: str | None, **extra: int) -> None:
    """Measure and print."""
    chosen = vars(arguments(description, **extra))
    measure(**chosen).show()

"""`python bench/distributed.py [--sellers 50] [--rows 10000] [--at 8] [--workers 2]`: so many shops
import, import again with 15 % of their prices moved, and search, on one PostgreSQL server
and on a Citus cluster (CARDSYNC_TEST_CITUS_URL; without it one is started, and without Citus nothing
is measured). The one server is CARDSYNC_TEST_DATABASE_URL, else a plain database of the coordinator.

`--at` shops send at a time. Both run one after the other on the same machine, so the cluster has no
more cores than the server: the ratio is what spreading costs, not what it gains.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory, mkdtemp
from time import perf_counter
from urllib.parse import urlsplit, urlunsplit

import psycopg

import ground
import import_inventory
from cardsync.operations.distribute import distribute
from cardsync.platform.database.migrate import keep_seal, migrate
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.limits import SHARDS
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import Client, Ground, Report, some_changed, spread

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import citus_cluster

NAME = f"bench_{os.getpid()}"
SEARCHES = ("price>5", "cond:NM", "lightning", "is:foil price>=1", "charizard")


@contextmanager
def one_server(url: str) -> Iterator[str]:
    made = urlunsplit(urlsplit(url)._replace(path=f"/{NAME}"))
    with psycopg.connect(libpq_url(url, role=None), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {NAME}")
        try:
            migrate(made)
            yield made
        finally:
            admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@contextmanager
def a_cluster(url: str) -> Iterator[str]:
    """A database on all nodes, spread later: a catalog is loaded before."""
    try:
        made = citus_cluster.make_database(url, NAME)
        migrate(made)
        yield made
    finally:
        citus_cluster.drop_database(url, NAME)


@contextmanager
def cluster_url() -> Iterator[str]:
    """The coordinator of the cluster that is there, or of one that is started."""
    if url := os.environ.get("CARDSYNC_TEST_CITUS_URL"):
        yield url
        return
    folder = Path(mkdtemp(prefix="cardsync-cluster-"))
    try:
        yield citus_cluster.start(folder)
    finally:
        citus_cluster.stop(folder)
        rmtree(folder, ignore_errors=True)


def spread_over(url: str) -> None:
    distribute(url, citus_cluster.places(), SHARDS, print, dry_run=False)


@contextmanager
def shops(url: str, data: Path, rows: int, folder: Path) -> Iterator[Ground]:
    inventory, truth = ground.generated(data, rows)
    settings = Settings(
        database_url=url,
        migration_database_url=url,
        data_dir=folder,
        bind=f"127.0.0.1:{ground.free_port()}",
        metrics_bind="",
    )
    keep_seal(url, seal(settings))
    made = Ground(folder, settings, inventory, truth)
    ground._load_catalogs(made, data)
    yield made


Times = dict[str, list[float]]


def measured(made: Ground, sellers: int, at: int, workers: int) -> Times:
    """Seconds of all imports together, twice, and of each search."""
    first, again = made.inventory.read_bytes(), some_changed(made.inventory, 15)
    owners = [made.new_seller() for _ in range(sellers)]
    times: Times = {}
    with ground.service(made, workers=workers), ThreadPoolExecutor(at) as pool:
        for name, data in (("first import", first), ("import again", again)):
            started = perf_counter()

            def send(owner: CreatedSeller, data: bytes = data) -> float:
                return import_inventory.upload(made, owner, data)[0]

            list(pool.map(send, owners))
            times[name] = [perf_counter() - started]
        times["search"] = [one for owner in owners for one in _searches(made, owner)]
    return times


def _searches(made: Ground, owner: CreatedSeller) -> list[float]:
    client = Client(made.settings.bind, owner.api_key)
    found = []
    for search in SEARCHES:
        path = f"/api/cards?search={search.replace(' ', '+').replace('>', '%3E')}"
        started = perf_counter()
        status, _, body = client.request("GET", path)
        found.append(perf_counter() - started)
        assert status == 200, body
    client.close()
    return found


def measure(data: Path, rows: int, sellers: int, at: int, workers: int) -> Report:
    report = Report(f"{sellers} shops of {rows:,} cards, spread over a cluster and not")
    os.environ["CARDSYNC_LOG_LEVEL"] = "warning"
    os.environ["CARDSYNC_PRICE_WRITE_LIMITS"] = "false"
    os.environ["CARDSYNC_PICTURE_HOSTS"] = ""
    if "CARDSYNC_TEST_CITUS_URL" not in os.environ and citus_cluster.programs() is None:
        report.note("no PostgreSQL with Citus is here: nothing is measured")
        return report
    times: dict[str, Times] = {}
    with TemporaryDirectory(prefix="cardsync-bench-") as folder, cluster_url() as cluster:
        plain = os.environ.get("CARDSYNC_TEST_DATABASE_URL", cluster)
        # Roles that a plain database of the coordinator made would be missing on the other nodes.
        for name, database in (
            ("cluster", a_cluster(cluster)),
            ("one server", one_server(plain)),
        ):
            with database as url, shops(url, data, rows, Path(folder) / name) as made:
                if name == "cluster":
                    spread_over(url)
                times[name] = measured(made, sellers, at, workers)
            for what, took in times[name].items():
                report.note(f"{name}, {what}: {spread(took)}")
    for what in times["cluster"]:
        ratio = median(times["cluster"][what]) / median(times["one server"][what])
        report.figure(f"{what}, cluster : one server", ratio)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rows=10_000, sellers=50, at=8, workers=2)

"""Another installation, to which shops move: a database, a store and a secret of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

import citus_cluster
from another_database import another_database
from browsers import joined
from builders import Seller, Service, a_csv, a_row, environment
from cardsync.asgi import create_app
from cardsync.cli import program
from cardsync.platform.database.migrate import keep_seal
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from dashboard_builder import filled_shop
from s3_server import own_bucket


@pytest.fixture(scope="session")
def other_settings(owner_url: str, settings: Settings) -> Iterator[Settings]:
    with another_database(owner_url, "elsewhere") as url:
        _apart(url)
        cluster = "CARDSYNC_TEST_CITUS_URL" in os.environ
        folder = Path(tempfile.mkdtemp(prefix="data-", dir=os.environ["CARDSYNC_TEST_DIR"]))
        made = settings.model_copy(
            update={
                "database_url": citus_cluster.one_shard_alone(url) if cluster else url,
                "migration_database_url": url,
                "pooler_database_url": None,
                "object_store_url": own_bucket("elsewhere"),
                "data_dir": folder,
                "secret_key": "another secret",
            }
        )
        keep_seal(url, seal(made))
        yield made


def _apart(url: str) -> None:
    """Let it give out other ids than the installation of the tests."""
    with psycopg.connect(libpq_url(url, role=None)) as owner:
        for place, table in enumerate(("seller", "member", "api_key", "access_token", "product")):
            start = (place + 1) * 100_000
            owner.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {start})")


@pytest.fixture(scope="session")
async def elsewhere(
    service: Service, other_settings: Settings, alive: Callable[..., object]
) -> AsyncIterator[Service]:
    url = other_settings.database_url
    assert url is not None
    app = create_app(other_settings)
    async with (
        alive(app),  # type: ignore[attr-defined]
        Database.open(url, pool=6, hot_pool=2, seal=partial(seal, other_settings)) as database,
    ):
        # Jobs that run inline do so at one installation at a time: see `at_work`.
        yield replace(
            service,
            settings=other_settings,
            app=app,
            database=database,
            work=Work(other_settings, database, open_store(other_settings)),
        )


@pytest.fixture
def a_process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """The same command as a process of its own, which runs beside the test."""
    begun: list[subprocess.Popen[str]] = []

    def begin(service: Service, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "cardsync", "admin", "seller", *map(str, arguments)],
            env={**os.environ, **environment(service.settings)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture
def cardsync() -> Iterator[Callable[..., object]]:
    """`await cardsync(service, "export", 7, path)` is `cardsync admin seller export 7 PATH` at
    that installation.
    """

    def run(settings: Settings, *arguments: object) -> Result:
        command = ["admin", "seller", *map(str, arguments)]
        return CliRunner().invoke(program, command, env=environment(settings))

    async def called(service: Service, *arguments: object) -> Result:
        return await asyncio.to_thread(run, service.settings, *arguments)

    yield called
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
async def shop(a_seller):
    """A shop with a history of prices, two people, a token, and a page of everything."""
    seller, _ = await filled_shop(a_seller)
    await seller.import_csv(
        a_csv(*(a_row(n, name=f'Card "{n}"\\N, ünï', price=f"{n}.25") for n in range(1, 130)))
    )
    await joined(seller, f"bea-{seller.email}")
    await seller.token("mcp:read")
    return seller


@pytest.fixture
def moved(service, elsewhere, cardsync, tmp_path):
    """`await moved(seller)` is the shop elsewhere, with the same key."""

    async def moved(seller: Seller, *options: str) -> Seller:
        path = tmp_path / f"{seller.id}.zip"
        made = await cardsync(service, "export", seller.id, path, *options)
        assert made.exit_code == 0, made.output
        arrived = await cardsync(elsewhere, "import", path)
        assert arrived.exit_code == 0, arrived.output
        there = int(arrived.output.split("is seller ")[1].split()[0])
        http = elsewhere.client(Authorization=f"Bearer {seller.api_key}")
        return Seller(elsewhere, there, seller.api_key, seller.email, seller.password, http)

    return moved

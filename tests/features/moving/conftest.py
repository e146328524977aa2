"""Another installation, to which shops move: a database, a store and a secret of its own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from click.testing import CliRunner, Result

from builders import Service
from cardsync.asgi import create_app
from cardsync.cli import program
from cardsync.database.migrate import keep_seal
from cardsync.database.session import Database
from cardsync.database.urls import libpq_url
from cardsync.logs import setup_logging
from cardsync.secret import seal
from cardsync.settings import Settings
from cardsync.storage import open_store
from cardsync.work.jobs import Work
from one_run import template_of_run


@pytest.fixture(scope="module")
def other_settings(owner_url: str, settings: Settings) -> Iterator[Settings]:
    name = f"elsewhere_{os.getpid()}"
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} TEMPLATE {template_of_run()}")
        try:
            _apart(url)
            folder = Path(tempfile.mkdtemp(prefix="data-", dir=os.environ["CARDSYNC_TEST_DIR"]))
            made = settings.model_copy(
                update={
                    "database_url": url,
                    "migration_database_url": url,
                    "data_dir": folder,
                    "secret_key": "another secret",
                }
            )
            keep_seal(url, seal(made))
            yield made
        finally:
            owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _apart(url: str) -> None:
    """Let it give out other ids than the installation of the tests."""
    with psycopg.connect(libpq_url(url, role=None)) as owner:
        for place, table in enumerate(("seller", "member", "api_key", "access_token", "product")):
            start = (place + 1) * 100_000
            owner.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {start})")


@pytest.fixture(scope="module")
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
def cardsync() -> Iterator[Callable[..., object]]:
    """`await cardsync(service, "export", 7, path)` is `cardsync admin seller export 7 PATH` at
    that installation.
    """

    def run(settings: Settings, *arguments: object) -> Result:
        environment = {
            "CARDSYNC_DATABASE_URL": settings.database_url,
            "CARDSYNC_DATA_DIR": str(settings.data_dir),
            "CARDSYNC_SECRET_KEY": settings.secret_key,
        }
        command = ["admin", "seller", *map(str, arguments)]
        return CliRunner().invoke(program, command, env=environment)

    async def called(service: Service, *arguments: object) -> Result:
        return await asyncio.to_thread(run, service.settings, *arguments)

    yield called
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")

"""The ground of all tests: a real PostgreSQL (embedded, or the server in
CARDSYNC_TEST_DATABASE_URL), the application in this process with its jobs run inline, and
builders. One database a test process; every test makes its own sellers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import hypothesis
import psycopg
import pytest
from argon2 import PasswordHasher
from litestar import Litestar

import citus_cluster
import schedule
import watched_prices
from builders import SellerBuilder, Service, environment
from cardsync.access import passwords
from cardsync.access.rate_limits.groups import Group
from cardsync.asgi import create_app
from cardsync.operations.processes import embedded
from cardsync.platform import clock
from cardsync.platform.database.migrate import keep_seal, migrate
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from inline_jobs import InlineJobs
from one_run import one_at_a_time, template_of_run
from s3_server import own_bucket

SHARED = Path(__file__).parents[2] / "shared"
LIMITS = [f"rate_limit_{group}" for group in Group]
# The same examples every time, however slow the machine: what CI says depends on the commit
# alone. `make explore` draws others.
hypothesis.settings.register_profile(
    "daily",
    max_examples=50,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "soak", hypothesis.settings.get_profile("daily"), max_examples=200
)
hypothesis.settings.register_profile(
    "explore", hypothesis.settings.get_profile("soak"), derandomize=False
)
hypothesis.settings.load_profile("daily")
STOCK_URL = os.environ.get("CARDSYNC_TEST_DATABASE_URL")
# A Citus cluster's coordinator (`tests/citus_cluster.py`): the database is spread over its nodes.
CITUS_URL = os.environ.get("CARDSYNC_TEST_CITUS_URL")
# Most objects of a test live as long as their application: looking for garbage finds little.
OBJECTS_UNTIL_COLLECTION = 20_000
# A pooler before that server, and a bucket (`.ci/stock`).
POOLER_URL = os.environ.get("CARDSYNC_TEST_POOLER_URL")


def pytest_configure(config: pytest.Config) -> None:
    # The garbage collector leaves out all that is imported and collected, which lives to the end.
    gc.disable()
    config.pluginmanager.register(schedule)
    # Every test makes sellers: their passwords are hashed at the least cost.
    passwords.HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    # No test asks another machine for a picture, whatever process it starts.
    os.environ.setdefault("CARDSYNC_PICTURE_HOSTS", "")
    # One folder for all processes of a run, open to the database's own user, which is not root.
    if "CARDSYNC_TEST_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="cardsync-tests-")
        Path(folder).chmod(0o755)
        os.environ["CARDSYNC_TEST_DIR"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files as they use the machine best; the longest test begins first, so that no worker waits
    for it at the end.
    """
    if not (schedule.SECONDS or schedule.NIGHT):
        items[:] = schedule.spread(items)
    items.sort(
        key=lambda item: not any(mark.kwargs.get("first") for mark in item.iter_markers("night"))
    )


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def owner_url() -> Iterator[str]:
    """A fresh, migrated database, as the role that owns it; gone afterwards."""
    name = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
    if CITUS_URL:
        with citus_cluster.spread_database(CITUS_URL, name) as url:
            _made.append(url)
            yield url
            _made.remove(url)
        return
    with ExitStack() as stack:
        if STOCK_URL:
            admin = STOCK_URL
        else:
            admin = stack.enter_context(
                embedded.running(Path(os.environ["CARDSYNC_TEST_DIR"]) / "server")
            ).admin_url()
        url = _with_database(admin, name)
        template = stack.enter_context(_template(admin))
        _administer(
            admin,
            f"CREATE DATABASE {name} TEMPLATE {template}",
            # No test of these looks behind a crash of the database: commits need not wait for the
            # disk.
            f"ALTER DATABASE {name} SET synchronous_commit = off",
        )
        _made.append(url)
        yield url
        _made.remove(url)
        _administer(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Gives a limit another value, in each module that imports it."""

    def give(name: str, value: int) -> None:
        holders = [
            module
            for full_name, module in sys.modules.items()
            if full_name.startswith("cardsync.") and name in vars(module)
        ]
        assert holders, name
        for module in holders:
            monkeypatch.setattr(module, name, value)

    return give


_made: list[str] = []
_SELLERS = """
    SELECT DISTINCT table_name FROM information_schema.columns JOIN information_schema.tables
     USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND column_name = 'seller_id'
"""


@pytest.fixture(scope="module", autouse=True)
def _no_sellers_of_other_files() -> Iterator[None]:
    """Each file begins without sellers: sweeps, queues and plans would grow with those of all files
    before it.
    """
    yield
    for url in _made:
        with psycopg.connect(libpq_url(url, role=None), autocommit=True) as connection:
            if not connection.execute("SELECT FROM seller LIMIT 1").rowcount:
                continue
            if CITUS_URL:
                citus_cluster.empty(connection)
                continue
            tables = [name for (name,) in connection.execute(_SELLERS)]
            found = " UNION ALL ".join(
                f"(SELECT '{name}' FROM {name} LIMIT 1)"
                for name in ("seller", "procrastinate_jobs", *tables)
            )
            if filled := [name for (name,) in connection.execute(found)]:
                # The application's loop waits with this, so a flush that it is in the middle of
                # never ends. The end of the next file clears both.
                connection.execute("SET lock_timeout = '1s'")
                with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                    connection.execute(f"TRUNCATE {', '.join(filled)} CASCADE")


@contextmanager
def _template(admin: str) -> Iterator[str]:
    """A migrated database that all processes of a run copy theirs from.

    The first process makes it and the last one drops it.
    """
    name = template_of_run()
    users = Path(os.environ["CARDSYNC_TEST_DIR"]) / "users of the template"
    mine = users / str(os.getpid())
    with one_at_a_time("template"):
        users.mkdir(exist_ok=True)
        if not any(users.iterdir()):
            _administer(admin, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
            migrate(_with_database(admin, name))
            _administer(_with_database(admin, name), *watched_prices.STATEMENTS)
        mine.touch()
    try:
        yield name
    finally:
        with one_at_a_time("template"):
            mine.unlink()
            if not any(users.iterdir()):
                _administer(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _administer(admin: str, *statements: str) -> None:
    with psycopg.connect(libpq_url(admin, role=None), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture(scope="session")
def settings(owner_url: str) -> Settings:
    """Small slabs, so that a few rows already cross their boundaries."""
    folder = Path(tempfile.mkdtemp(prefix="data-", dir=os.environ["CARDSYNC_TEST_DIR"]))
    setup_logging("warning", "json")
    made = Settings(
        database_url=citus_cluster.one_shard_alone(owner_url) if CITUS_URL else owner_url,
        migration_database_url=owner_url,
        pooler_database_url=POOLER_URL
        and _with_database(POOLER_URL, urlsplit(owner_url).path.strip("/")),
        object_store_url=own_bucket("tests"),
        data_dir=folder,
        secret_key="test secret",
        slab_rows=50,
        last_seen_flush_seconds=0.05,
        # Tests of limits make their own application; all others send as much as they like,
        # through the same code.
        **dict.fromkeys(LIMITS, "1000000/min"),
        price_write_limits=False,
    )
    keep_seal(owner_url, seal(made))
    return made


@pytest.fixture
def in_the_environment(settings: Settings, owner_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the tests' database and store, as an operator's do."""
    for name, value in environment(settings.model_copy(update={"database_url": owner_url})).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
async def service(settings: Settings) -> AsyncIterator[Service]:
    async with _serving(settings) as made:
        yield made


@pytest.fixture(scope="session")
def serving() -> Callable[[Settings], AbstractAsyncContextManager[Service]]:
    """`async with serving(settings) as service:` for tests with databases of their own."""
    return _serving


@asynccontextmanager
async def _serving(settings: Settings) -> AsyncIterator[Service]:
    assert settings.database_url is not None
    app = create_app(settings)
    async with (
        _alive(app),
        Database.open(
            settings.database_url,
            pool=6,
            hot_pool=2,
            seal=partial(seal, settings),
            pooler=settings.pooler_database_url,
        ) as database,
    ):
        work = Work(settings, database, open_store(settings))
        async with InlineJobs.open(work) as jobs:
            yield Service(settings, app, database, work, jobs)


@asynccontextmanager
async def _alive(app: Litestar) -> AsyncIterator[None]:
    """The application's lifespan in a task of its own: pytest ends fixtures in another task than
    it began them in.
    """
    started, stop = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.lifespan():
            started.set()
            await stop.wait()

    task = asyncio.create_task(live())
    await started.wait()
    try:
        yield
    finally:
        stop.set()
        await task


@pytest.fixture(scope="session")
def alive() -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    """`async with alive(app):` for tests with applications of their own."""
    return _alive


@pytest.fixture
def a_seller(service: Service) -> SellerBuilder:
    """`await a_seller(plan=…, lines=[…], sync_mode=…, **settings)` makes a seller and signs it in
    with its key.
    """
    return SellerBuilder(service)


@pytest.fixture(scope="session")
async def _limited_service(service: Service) -> AsyncIterator[Service]:
    settings = service.settings.model_copy(update={"price_write_limits": True})
    app = create_app(settings)
    work = replace(service.work, settings=settings)
    jobs = replace(service.jobs, work=work)
    async with _alive(app):
        yield Service(settings, app, service.database, work, jobs)


@pytest.fixture
def a_limited_seller(_limited_service: Service) -> SellerBuilder:
    """The same with the loss limits on what keys and tokens write outside plans, and with the
    confirmations that members are asked for.
    """
    return SellerBuilder(_limited_service)


@pytest.fixture(autouse=True)
def _steady_clock() -> Iterator[None]:
    yield
    clock.reset()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The sample files beside the project; tests that need them skip where they are absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("../shared/data is absent: this test reads its sample files")
    return SHARED / "data"

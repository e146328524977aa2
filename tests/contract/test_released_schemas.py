"""Every schema that a shop may have comes to this one with its data, and no migration keeps a shop
waiting.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, NullPool, create_engine
from tests.contract.test_tenancy import TENANT

from builders import Seller, Service, read_csv
from cardsync import __version__
from cardsync.platform.database.migrate import head_revision, keep_seal, migrate
from cardsync.platform.database.urls import engine_url, libpq_url
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.tables import GLOBAL_BY_SELLER, metadata
from cardsync_demo import demo_catalog
from online_changes import watched
from released_schemas import DUMPS, database_of, key_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/releases.md").read_text()
RELEASED = dict(re.findall(r"^\| (\S+) \| `(\d{4})` \|", PAGE, re.MULTILINE))
# Migrations that change the rows of a large table or keep writers out of it, and why they may.
MAY_WAIT: dict[str, str] = {}
# Tables whose rows a migration moves, merges, drops or adds to, by its revision.
MOVED: dict[str, set[str]] = {"0083": {"sales_stale", "work_due"}, "0113": {"work_due"}}
TABLES = """
    SELECT relname FROM pg_class
     WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition
"""
UNCHECKED = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE NOT convalidated
     UNION ALL
    SELECT indrelid::regclass::text, indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid
"""


def test_each_released_version_has_a_dump() -> None:
    in_work = ".dev" in __version__
    assert in_work or __version__ in RELEASED, "docs/releases.md says what to do at a release"
    assert set(DUMPS) == set(RELEASED.values())


def test_each_tagged_version_is_in_the_list() -> None:
    with suppress(FileNotFoundError):
        told = subprocess.run(
            ["git", "-C", ROOT, "tag", "--list", "v*"], capture_output=True, text=True, check=False
        )
        assert {tag.removeprefix("v") for tag in told.stdout.split()} <= set(RELEASED)


def counted(url: str) -> dict[str, int]:
    with psycopg.connect(libpq_url(url, role=None)) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        found = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables)
        return dict(connection.execute(found).fetchall())


@pytest.fixture(scope="module", params=DUMPS)
def brought(owner_url: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, str, Any]]:
    """A revision, the address of its database after the migration, and the rows before it."""
    with database_of(owner_url, request.param) as url:
        before = counted(url)
        migrate(url)
        yield request.param, url, before


def test_the_dump_had_data_in_every_table(brought: tuple[str, str, Any]) -> None:
    _, _, before = brought
    assert [table for table, rows in before.items() if not rows] == []


def test_all_rows_come_along(brought: tuple[str, str, Any]) -> None:
    revision, url, before = brought
    moved = {table for at, tables in MOVED.items() if at >= revision for table in tables}
    after = counted(url)
    assert {table: after.get(table) for table in before.keys() - moved} == {
        table: rows for table, rows in before.items() if table not in moved
    }


def test_the_schema_is_that_of_a_fresh_database(brought: tuple[str, str, Any]) -> None:
    _, url, _ = brought
    with engine_of(url).connect() as made:
        context = MigrationContext.configure(made, opts={"include_object": _is_ours})
        assert compare_metadata(context, metadata) == []


def engine_of(url: str) -> Engine:
    return create_engine(engine_url(libpq_url(url, role=None)), poolclass=NullPool)


def _is_ours(thing: Any, name: str, kind: str, *_: Any) -> bool:
    return kind != "table" or name in metadata.tables


def test_constraints_and_indexes_hold_and_tenants_are_apart(brought: tuple[str, str, Any]) -> None:
    _, url, _ = brought
    with psycopg.connect(libpq_url(url, role=None)) as connection:
        assert connection.execute(UNCHECKED).fetchall() == []
        tenants = connection.execute(TENANT, [sorted(GLOBAL_BY_SELLER)]).fetchall()
        assert len(tenants) > 50
        assert [name for _, name, enabled, forced in tenants if not (enabled and forced)] == []
    with psycopg.connect(libpq_url(url)) as nobody:
        assert nobody.execute("SELECT FROM card").fetchall() == []


async def test_the_shop_goes_on(
    brought: tuple[str, str, Any],
    settings: Settings,
    serving: Callable[[Settings], AbstractAsyncContextManager[Service]],
    tmp_path: Path,
) -> None:
    """Its key signs in, its next export is read and priced, and the price file comes."""
    revision, url, before = brought
    mine = settings.model_copy(
        update={"database_url": url, "migration_database_url": url, "pooler_database_url": None}
    )
    keep_seal(url, seal(mine))
    async with serving(mine) as service:
        key = key_of(revision)
        http = service.client(Authorization=f"Bearer {key}")
        seller = Seller(service, 1, key, "demo@example.com", "", http)
        assert (await seller.get("/api/v1/status")).status_code == 200
        orders = (await seller.get("/api/orders?per_page=1")).json()
        assert orders["total"] == before["orders"]
        demo_catalog.write_inventory(tmp_path / "export.csv", age=3)
        report = await seller.import_csv((tmp_path / "export.csv").read_bytes())
        assert report["state"] == "done", report
        prices = {line["TCGplayer Id"] for line in read_csv((await seller.export()).content)}
        assert prices
        assert prices <= {row["TCGplayer Id"] for row in demo_catalog.whole_rows()}


# Migrations that keep nobody waiting


@pytest.fixture(scope="module")
def faults(owner_url: str) -> dict[str, list[str]]:
    """What each migration after the oldest dump does to a large table, by its revision."""
    found: dict[str, list[str]] = {}
    folder = ROOT / "migrations"
    with database_of(owner_url, DUMPS[0]) as url:
        engine = engine_of(url)
        for path in sorted((folder / "versions").glob("[0-9]*_*.py")):
            revision = path.name.partition("_")[0]
            if revision <= DUMPS[0]:
                continue
            config = Config()
            config.set_main_option("script_location", str(folder))
            with engine.connect() as connection:
                config.attributes["connection"] = connection
                with watched(connection, found.setdefault(revision, []).append):
                    connection.rollback()
                    command.upgrade(config, revision)
    return found


def test_no_migration_keeps_a_shop_waiting(faults: dict[str, list[str]]) -> None:
    """docs/releases.md shows how a migration is written that does not."""
    assert head_revision() in faults or DUMPS[0] == head_revision()
    assert {revision: told for revision, told in faults.items() if told} == {
        revision: faults[revision] for revision in MAY_WAIT
    }


SLOW = [
    ("CREATE INDEX slow ON card (quantity)", "card: reads it while writers wait"),
    ("ALTER TABLE card ALTER COLUMN quantity TYPE bigint", "card: writes it anew"),
    ("ALTER TABLE orders ADD COLUMN t timestamptz DEFAULT clock_timestamp()", "orders: writes it"),
    ("ALTER TABLE orders ALTER COLUMN status SET NOT NULL", "orders: reads it while"),
    ("ALTER TABLE order_item ADD CHECK (quantity > -1)", "order_item: reads it while"),
    (
        "ALTER TABLE card ADD FOREIGN KEY (product_id) REFERENCES product (id)",
        "card: reads it while writers wait",
    ),
    ("ALTER TABLE card ADD UNIQUE (seller_id, id, quantity)", "card: reads it while"),
    ("ALTER TABLE price_observation ADD CHECK (card_id > 0)", "price_observation_202611: reads"),
    ("UPDATE card SET quantity = quantity", "card: changes its rows"),
]
QUICK = [
    "CREATE TABLE another AS SELECT * FROM card",
    "CREATE INDEX ON another (quantity)",
    "ALTER TABLE another ALTER COLUMN quantity TYPE bigint",
    "ALTER TABLE card ADD COLUMN a text, ADD COLUMN b int NOT NULL DEFAULT 7",
    "ALTER TABLE order_item ADD CONSTRAINT c CHECK (quantity > -1) NOT VALID",
    "ALTER TABLE card ADD CONSTRAINT f FOREIGN KEY (product_id) REFERENCES product (id) NOT VALID",
]
# Each is a transaction of its own.
LATER = [
    "CREATE INDEX CONCURRENTLY i ON card (quantity)",
    "ALTER TABLE order_item ADD CONSTRAINT c CHECK (quantity > -1) NOT VALID",
    "ALTER TABLE order_item VALIDATE CONSTRAINT c",
    "ALTER TABLE orders ADD CONSTRAINT s CHECK (status IS NOT NULL) NOT VALID",
    "ALTER TABLE orders VALIDATE CONSTRAINT s",
    "ALTER TABLE orders ALTER COLUMN status SET NOT NULL",
]


def test_what_keeps_a_shop_waiting_is_seen(owner_url: str) -> None:
    told: list[str] = []
    with database_of(owner_url, DUMPS[-1]) as url, engine_of(url).connect() as connection:
        connection.exec_driver_sql("ALTER TABLE orders ALTER COLUMN status DROP NOT NULL")
        connection.commit()
        for statement, begins in SLOW:
            told.clear()
            with watched(connection, told.append):
                connection.exec_driver_sql(statement)
            connection.rollback()
            assert [line for line in told if line.startswith(begins)], (statement, told)
        told.clear()
        with watched(connection, told.append):
            for statement in QUICK:
                connection.exec_driver_sql(statement)
        connection.rollback()
        own = connection.execution_options(isolation_level="AUTOCOMMIT")
        with watched(own, told.append):
            for statement in LATER:
                own.exec_driver_sql(statement)
    assert told == []

"""Migrations as a start sees them: the newest is told by its name, and a database that cannot be
used by a sentence.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine

from cardsync.database.migrate import check, head_revision, migrate
from cardsync.database.urls import engine_url, libpq_url


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        yield connection


def test_the_newest_migrations_name_is_alembics_head() -> None:
    scripts = ScriptDirectory(str(Path(__file__).parents[2] / "migrations"))
    assert scripts.get_heads() == [head_revision()]
    assert all(
        Path(script.path).name.startswith(f"{script.revision}_")
        for script in scripts.walk_revisions()
    )


@pytest.fixture
def at(owner: psycopg.Connection) -> Iterator[Callable[[str], None]]:
    """Moves the database to a revision, and back in the end."""
    yield lambda revision: owner.execute("UPDATE alembic_version SET version_num = %s", [revision])
    owner.execute("UPDATE alembic_version SET version_num = %s", [head_revision()])


def test_a_database_of_a_newer_program_is_left_alone(
    owner_url: str, at: Callable[[str], None]
) -> None:
    at("9999")
    with pytest.raises(
        RuntimeError, match=r"the database is at 9999, .* it takes a newer cardsync"
    ):
        migrate(owner_url)


def test_a_worker_of_its_own_takes_a_database_of_this_program(
    owner_url: str, at: Callable[[str], None]
) -> None:
    check(owner_url)
    at("0001")
    with pytest.raises(
        RuntimeError, match=r"the database is at 0001, this program needs .* see `cardsync migrate`"
    ):
        check(owner_url)


@pytest.mark.parametrize("look", [migrate, check])
def test_a_database_that_is_away_is_told_in_a_line(look: Callable[[str], None]) -> None:
    with pytest.raises(
        RuntimeError, match="the database cannot be reached, see CARDSYNC_DATABASE_URL"
    ) as told:
        look("postgresql://somebody:secret@127.0.0.1:1/nothing")
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.slow
def test_a_database_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.database.migrate.CONNECT_SECONDS", 2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(RuntimeError, match="cannot be reached"),
    ):
        migrate(f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing")


@pytest.mark.slow
def test_how_long_to_wait_for_it_is_the_operators_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.database.migrate.CONNECT_SECONDS", 3600)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(RuntimeError, match="cannot be reached"),
    ):
        migrate(
            f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing?connect_timeout=2"
        )


def test_a_revision_of_nobody_is_told_in_a_line(owner_url: str, at: Callable[[str], None]) -> None:
    at("0005x")
    with pytest.raises(RuntimeError, match=r"cannot be brought to .*0005x") as told:
        migrate(owner_url)
    assert "\n" not in str(told.value)


def test_a_table_that_may_not_be_read_is_told_in_a_line(
    owner_url: str, owner: psycopg.Connection
) -> None:
    owner.execute("REVOKE SELECT ON alembic_version FROM cardsync_app")
    try:
        with pytest.raises(RuntimeError, match="the database cannot be used: permission denied"):
            check(owner_url)
    finally:
        owner.execute("GRANT SELECT ON alembic_version TO cardsync_app")


SHOP_BEFORE = """
    INSERT INTO orders (seller_id, order_number, status, items_total, items_quantity, total_amt,
                        refund_type, refund_amt)
    VALUES (1, 'PULLED', 'Ready to Ship', 1, 3, 5, NULL, NULL),
           (1, 'LOST', 'Refunded', 0, 0, 7.50, 'full', NULL),
           (1, 'PART', 'Refunded', 0, 0, 7.50, 'partial', 1.25),
           (1, 'NONE', 'Completed - Paid', 0, 0, 7.50, NULL, NULL);
    INSERT INTO order_item (seller_id, order_id, product_name, quantity)
    SELECT 1, id, 'Ash', 3 FROM orders WHERE order_number = 'PULLED';
    INSERT INTO pull_session (seller_id, opened_at) VALUES (1, now());
    INSERT INTO pull_session_order (seller_id, session_id, order_id)
    SELECT 1, s.id, o.id FROM pull_session s, orders o WHERE o.order_number = 'PULLED';
"""
KEPT = """
    SELECT status, shipping_type, item_count, changed, items_hash IS NOT NULL, product_name,
        quantity
      FROM pull_session_order JOIN pull_session_item USING (seller_id, session_id, order_id)
"""


@pytest.mark.slow
def test_pull_sessions_and_lost_refunds_come_along(
    owner_url: str, owner: psycopg.Connection
) -> None:
    """Sessions get what their orders are at the migration, refunds without a total their amount."""
    name = f"{urlsplit(owner_url).path[1:]}_before"
    owner.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    plain = libpq_url(url, role=None)
    try:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
        with create_engine(engine_url(plain), poolclass=NullPool).begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0013")
            connection.exec_driver_sql(SHOP_BEFORE)
        migrate(url)
        with psycopg.connect(plain) as connection:
            kept = [("Ready to Ship", "pwe", 3, [], True, "Ash", 3)]
            assert connection.execute(KEPT).fetchall() == kept
            refunds = "SELECT order_number, refund_amt::text, refund_total_given::text FROM orders"
            assert set(connection.execute(refunds)) == {
                ("LOST", "7.50", None),
                ("NONE", None, None),
                ("PART", "1.25", "1.25"),
                ("PULLED", None, None),
            }
            tally = "SELECT sum(orders) FROM order_tally WHERE refunded AND period = 'ever'"
            assert connection.execute(tally).fetchone() == (2,)
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


SALES_BEFORE = """
    INSERT INTO orders (seller_id, order_number, status, order_date, total_amt, items_total,
                        items_quantity)
    VALUES (1, 'A', 'Completed - Paid', '2026-07-01', 5, 0, 0),
           (1, 'B', 'Completed - Paid', '2026-07-02', 7, 0, 0);
    INSERT INTO sales_kept (seller_id, ordered, zone, kept_at)
    VALUES (1, '2026-07-01', 'UTC', now()), (1, '0001-01-01', 'UTC', now());
    INSERT INTO sales_sum (seller_id, ordered, day, orders, gross, refunded, refunds)
    VALUES (1, '2026-07-01', '2026-06-30', 1, 5, 0, 0), (1, '2026-07-01', '2026-07-01', 2, 6, 0, 0);
    INSERT INTO sales_day (seller_id, day, orders, gross, seen_at)
    VALUES (1, '2026-07-01', 3, 11, now()), (1, '2026-07-02', 1, 7, now()),
           (1, '2026-07-03', 0, 0, now());
"""


@pytest.mark.slow
def test_days_that_only_the_former_sums_had_are_counted_anew(
    owner_url: str, owner: psycopg.Connection
) -> None:
    name = f"{urlsplit(owner_url).path[1:]}_sales"
    owner.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    plain = libpq_url(url, role=None)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))

    def moved(to: str, statement: str = "SELECT 1", *, back: bool = False) -> None:
        with create_engine(engine_url(plain), poolclass=NullPool).begin() as connection:
            config.attributes["connection"] = connection
            (command.downgrade if back else command.upgrade)(config, to)
            connection.exec_driver_sql(statement)

    try:
        moved("0062", SALES_BEFORE)
        moved("0070")
        with psycopg.connect(plain) as connection:
            stale = connection.execute("SELECT seller_id, ordered::text FROM sales_stale")
            assert stale.fetchall() == [(1, "2026-07-02")]
            due = connection.execute("SELECT seller_id, stream, attempts FROM work_due")
            assert due.fetchall() == [(1, "sales_sums", 0)]
        moved("0062", back=True)
        with psycopg.connect(plain) as connection:
            days = connection.execute("SELECT day::text, orders, gross::text FROM sales_day")
            assert days.fetchall() == [("2026-07-01", 3, "11.0000")]
            assert connection.execute("SELECT FROM work_due").fetchall() == []
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")

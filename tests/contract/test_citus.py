"""A database becomes spread over a Citus cluster, and stays so. These tests take a cluster
(CARDSYNC_TEST_CITUS_URL, `tests/citus_cluster.py`), and make databases of their own in it.
"""

import os
import signal
import subprocess
import sys
from itertools import pairwise

import psycopg
import pytest

import citus_cluster
from cardsync.operations.cluster_checks import spread_faults
from cardsync.operations.distribute import distribute
from cardsync.operations.take_backup import Source, take
from cardsync.platform.database.migrate import migrate, tenant_table
from cardsync.platform.database.urls import APP_ROLE, libpq_url
from cardsync.platform.errors import CommandError

COORDINATOR = os.environ.get("CARDSYNC_TEST_CITUS_URL")
pytestmark = [
    pytest.mark.skipif(COORDINATOR is None, reason="CARDSYNC_TEST_CITUS_URL names no cluster"),
    pytest.mark.day,
    # Spreading makes 300 tables on three servers.
    pytest.mark.timeout(600),
]
NAME = f"spread_{os.getpid()}"
SELLERS = range(1, 9)
PLACES = citus_cluster.places()
SHARDS = citus_cluster.SHARDS


def spread(url, *, dry_run=False):
    return distribute(url, PLACES, SHARDS, lambda _: None, dry_run=dry_run)


@pytest.fixture(scope="module")
def unspread():
    """A migrated database on the cluster with rows of several sellers, spread later."""
    assert COORDINATOR is not None
    url = citus_cluster.make_database(COORDINATOR, NAME)
    try:
        migrate(url)
        with connected(url) as connection:
            connection.execute(
                "INSERT INTO product (identity, game, set_name, product_name, language)"
                " SELECT n::text, 'magic', 'Set', 'Name', 'English' FROM generate_series(1, 20) n"
            )
            for seller in SELLERS:
                connection.execute(
                    "INSERT INTO orders (seller_id, order_number, status, order_date)"
                    " SELECT %s, n::text, 'Shipped', DATE '2026-03-01' + n"
                    " FROM generate_series(1, 20) n",
                    [seller],
                )
                connection.execute("SELECT ensure_price_observation_partition('2026-03-01')")
        yield url
    finally:
        citus_cluster.drop_database(COORDINATOR, NAME)


def connected(url):
    return psycopg.connect(libpq_url(url, role=None), autocommit=True)


def rows(url, statement, *values):
    with connected(url) as connection:
        return connection.execute(statement, values or None).fetchall()


TALLIES = "SELECT * FROM order_tally ORDER BY 1, 2, 3, 4, 5, 6"
PRODUCTS = "SELECT id, identity FROM product ORDER BY 1"
ORDERS = "SELECT seller_id, order_number, status_group FROM orders ORDER BY 1, 2"


@pytest.fixture(scope="module")
def url(unspread):
    """The same database, spread by calls that were killed in their midst, and one more."""
    before = [rows(unspread, asked) for asked in (TALLIES, ORDERS, PRODUCTS)]
    assert list(map(len, before[1:])) == [20 * len(SELLERS), 20]
    told = spread(unspread, dry_run=True)
    assert len(told) > len(PLACES.tenants)
    assert spread(unspread, dry_run=True) == told, "a dry run changes nothing"
    for steps in (4, 40):
        kill_after(unspread, steps)
    left = spread(unspread, dry_run=True)
    assert 0 < len(left) < len(told) - 20
    spread(unspread)
    assert [rows(unspread, asked) for asked in (TALLIES, ORDERS, PRODUCTS)] == before
    return unspread


def kill_after(url, steps):
    """Call the command, and kill it once it has said so many steps."""
    command = [sys.executable, "-m", "cardsync", "db", "distribute", "--shards", str(SHARDS)]
    environment = os.environ | {"CARDSYNC_DATABASE_URL": url}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _, _line in zip(range(steps), process.stderr, strict=False):
            pass
        process.send_signal(signal.SIGKILL)


def test_a_second_call_finds_nothing_to_do(url):
    assert spread(url) == []
    with connected(url) as connection:
        assert list(spread_faults(connection, PLACES.tenants, PLACES.everywhere)) == []


def test_a_backup_of_the_coordinator_alone_is_refused(url, tmp_path):
    with pytest.raises(CommandError, match="back up each node"):
        take(Source(url, None, None, tmp_path), tmp_path, print, print)


def test_two_calls_at_once_are_one_after_the_other(url):
    command = [sys.executable, "-m", "cardsync", "db", "distribute"]
    environment = os.environ | {"CARDSYNC_DATABASE_URL": url}
    both = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]


def test_nothing_is_left_where_the_rows_lay_before(url):
    asked = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname = ANY (%s)"
    assert rows(url, asked, [*PLACES.tenants, *PLACES.everywhere]) == [(0,)]


def test_tables_are_spread_only_while_nobody_else_is_there(url):
    table_for_one(url, "trial_seller_note")
    places = citus_cluster.Places([*PLACES.tenants, "trial_seller_note"], PLACES.everywhere)
    refused = pytest.raises(CommandError, match="1 other sessions use the database: stop all")
    with connected(url), refused:
        distribute(url, places, SHARDS, lambda _: None, dry_run=False)
    [step] = distribute(url, places, SHARDS, lambda _: None, dry_run=False)
    assert step.says == "trial_seller_note: by seller"
    assert distribute(url, places, SHARDS, lambda _: None, dry_run=False) == []


def table_for_one(url, name):
    """A new tenant table, as a migration makes it in a spread database."""
    with connected(url) as connection, connection.transaction():
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        connection.execute(
            f"CREATE TABLE {name} (seller_id bigint, id bigint, PRIMARY KEY (seller_id, id))"
        )
        for statement in tenant_table(name):
            connection.execute(statement)


def test_sellers_lie_on_several_workers_and_each_sees_itself(url):
    asked = """
        SELECT DISTINCT nodeport FROM pg_dist_node JOIN pg_dist_placement USING (groupid)
         WHERE shardid = ANY (SELECT get_shard_id_for_distribution_column('orders', s)
                                FROM unnest(CAST(%s AS bigint[])) s)
    """
    assert len(rows(url, asked, list(SELLERS))) == citus_cluster.WORKERS
    with psycopg.connect(libpq_url(url)) as connection:
        for seller in SELLERS:
            connection.execute(f"SET LOCAL app.seller_id = '{seller}'")
            found = connection.execute("SELECT seller_id, count(*) FROM orders GROUP BY 1")
            assert found.fetchall() == [(seller, 20)]
            connection.commit()


def test_a_partition_of_a_new_month_lies_with_its_table(url):
    with psycopg.connect(libpq_url(url)) as connection:
        for month in ("2031-01-01", "2031-02-01"):
            connection.execute("SELECT ensure_price_observation_partition(%s)", [month])
    asked = """
        SELECT count(DISTINCT colocationid), count(*) FROM pg_dist_partition
         WHERE logicalrelid::text LIKE 'price_observation_2031%'
            OR logicalrelid = 'account'::regclass
    """
    assert rows(url, asked) == [(1, 3)]


def test_trigger_functions_count_on_the_workers(url):
    with psycopg.connect(libpq_url(url)) as connection:
        counted = []
        for status in ("Shipped", "Processing"):
            connection.execute("SET LOCAL app.seller_id = '3'")
            connection.execute("UPDATE orders SET status = %s WHERE seller_id = 3", [status])
            found = connection.execute(
                "SELECT status_group, orders FROM order_tally"
                " WHERE seller_id = 3 AND period = 'ever' AND orders > 0"
            )
            counted.append(found.fetchall())
            connection.commit()
    assert counted == [[("Shipped", 20)], [("Processing", 20)]]


def test_migrations_change_each_part(url):
    """What migrations do, in their session's settings: a column, an index, rows, a constraint."""
    with connected(url) as connection:
        for setting in ("citus.multi_shard_modify_mode = 'sequential'", "lock_timeout = '3s'"):
            connection.execute(f"SET {setting}")
        with connection.transaction():
            for statement in (
                "ALTER TABLE saved_search ADD COLUMN trial integer",
                "UPDATE saved_search SET trial = 1",
                "ALTER TABLE saved_search ADD CONSTRAINT trial CHECK (trial > 0)",
            ):
                connection.execute(statement)
        connection.execute("CREATE INDEX CONCURRENTLY trial ON saved_search (seller_id, trial)")
        connection.execute("ALTER TABLE saved_search DROP COLUMN trial")


def test_the_application_may_not_sign_in_with_more_than_it_had(url):
    asked = (
        "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname=%s"
    )
    for node in citus_cluster.nodes_of(url):
        assert rows(node, asked, APP_ROLE) == [(False, False, False, False)]


def test_steps_say_their_order(unspread):
    """Each table is told once, and the first one before those that lie like it."""
    names = [step.says.partition(":")[0] for step in spread(unspread, dry_run=True)]
    assert all(first != second for first, second in pairwise(names))

"""Sees whether a migration keeps a shop waiting: what each of its statements does to the tables
that grow with a shop's cards, orders and observations, by the database's own word.

While a lock that keeps writers out is held, such a table may not be read from end to end, which is
what checks of constraints and builds of indexes do. It may not be written anew, nor its rows
changed, whatever the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, event

# With their partitions.
LARGE = [
    "card", "orders", "order_item", "customer_order", "price_observation", "price_change",
    "listed_value", "market_price", "market_listing", "market_sale",
]  # fmt: skip
TABLES = """
    SELECT c.oid, c.relname, pg_relation_filenode(c.oid), coalesce(x.seq_scan, 0),
           coalesce(x.n_tup_upd + x.n_tup_del, 0),
           EXISTS (SELECT FROM pg_locks l
                    WHERE l.pid = pg_backend_pid() AND l.relation = c.oid AND l.granted
                      AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                                     'AccessExclusiveLock'))
      FROM pg_class c LEFT JOIN pg_stat_xact_all_tables x ON x.relid = c.oid
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
       AND (c.relname = ANY (%s) OR EXISTS
            (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
              WHERE i.inhrelid = c.oid AND p.relname = ANY (%s)))
"""
# The counts begin anew with each transaction, and now() is the time at which it began.
MOMENT = "SELECT now(), pg_stat_force_next_flush()"
_Tables = dict[int, tuple[str, int | None, int, int, bool]]


@contextmanager
def watched(connection: Connection, fault: Callable[[str], None]) -> Iterator[None]:
    """Call `fault` with what each statement that runs in the block does to a large table."""
    before = [_look(_raw(connection))]

    def after(_: Any, cursor: Any, statement: str, *__: Any) -> None:
        (began, known), (begins, now) = before[0], _look(cursor.connection)
        before[0] = begins, now
        for oid, (name, file, scans, changed, locked) in now.items():
            _, old_file, old_scans, old_changed, _ = known.get(oid, (name, file, scans, 0, False))
            if begins != began:
                old_scans = old_changed = 0
            done = [
                "reads it while writers wait" if locked and scans > old_scans else "",
                "writes it anew" if file != old_file else "",
                "changes its rows" if changed > old_changed else "",
            ]
            for what in filter(None, done):
                fault(f"{name}: {what}: {' '.join(statement.split())[:200]}")

    event.listen(connection, "after_cursor_execute", after)
    try:
        yield
    finally:
        event.remove(connection, "after_cursor_execute", after)


def _raw(connection: Connection) -> psycopg.Connection[Any]:
    raw: Any = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    return raw


def _look(connection: psycopg.Connection[Any]) -> tuple[Any, _Tables]:
    moment = connection.execute(MOMENT).fetchone()
    assert moment is not None
    return moment[0], {row[0]: row[1:] for row in connection.execute(TABLES, [LARGE, LARGE])}

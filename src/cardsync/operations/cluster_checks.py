"""Checks a Citus cluster before a database is spread over it, and the spread database afterwards.

Each check returns sentences with remedies; an empty list means that there is no problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg

from cardsync.platform.database.urls import APP_ROLE

Connection = psycopg.Connection

BACK_UP_NODES: Final = (
    "the database is spread over nodes: back up each node by pg_basebackup or your provider's"
    " snapshots, after SELECT citus_create_restore_point('NAME')"
)
# The sellers of this check, on different shards. No real seller has a negative ID.
_TRIAL: Final = (-1, -2, -3, -4)


def faults(connection: Connection) -> Iterator[str]:
    """Yield the obstacles to moving the database into the cluster."""
    if not _value(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        yield "CARDSYNC_MIGRATION_DATABASE_URL must sign in as a superuser for this"
    if not is_on_citus(connection):
        yield "the database has no Citus: call CREATE EXTENSION citus in it, on each node"
        return
    coordinator = "SELECT count(*) FROM pg_dist_node WHERE groupid = 0"
    if not _value(connection, coordinator):
        yield "the coordinator has no address: call SELECT citus_set_coordinator_host('ITS HOST')"
    workers = "SELECT count(*) FROM pg_dist_node WHERE groupid > 0 AND noderole = 'primary'"
    if not _value(connection, workers):
        yield "the cluster has no workers: call SELECT citus_add_node('HOST', PORT) for each"
    yield from _nodes_without_prepared(connection)


def is_on_citus(connection: Connection) -> bool:
    """Return whether the database has the extension."""
    asked = "SELECT count(*) FROM pg_extension WHERE extname = 'citus'"
    return bool(_value(connection, asked))


def is_spread(connection: Connection) -> bool:
    """Return whether sellers' rows are on the nodes."""
    asked = "SELECT count(*) FROM pg_dist_partition WHERE partmethod = 'h'"
    return is_on_citus(connection) and bool(_value(connection, asked))


def _nodes_without_prepared(connection: Connection) -> Iterator[str]:
    asked = "SHOW max_prepared_transactions"
    for node, port, success, result in _on_nodes(connection, asked):
        if not success:
            yield f"the node {node}:{port} cannot be reached: {result}"
        elif result == "0":
            yield (
                f"the node {node}:{port} cannot prepare transactions: set"
                " max_prepared_transactions to its max_connections"
            )


def writers(connection: Connection) -> int:
    """Count the other client sessions of this database."""
    asked = """
        SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'
           AND pid <> pg_backend_pid() AND application_name NOT LIKE 'citus_%'
    """
    return int(_value(connection, asked))


def sign_in_faults(connection: Connection) -> Iterator[str]:
    """Check on each node that the application's role can sign in, because nodes sign in on each
    other as this role.
    """
    with connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL ROLE {APP_ROLE}")
        answers = _on_nodes(connection, "SELECT current_user")
    for node, port, success, result in answers:
        if not success:
            yield (
                f"{APP_ROLE} cannot sign in on {node}:{port}: let the nodes in by pg_hba.conf or"
                f" ~/.pgpass ({result})"
            )


def spread_faults(
    connection: Connection, tenants: Sequence[str], everywhere: Sequence[str]
) -> Iterator[str]:
    """Yield the faults of a spread database."""
    lies = {
        str(name): (method, place)
        for name, method, place in connection.execute(
            "SELECT logicalrelid::text, partmethod::text, colocationid FROM pg_dist_partition"
        )
    }
    places = {lies[name][1] for name in tenants if name in lies}
    if len(places) != 1:
        yield f"the sellers' tables lie in {len(places)} co-locations in place of one"
    for name in tenants:
        if lies.get(name, ("", 0))[0] != "h":
            yield f"{name} is not spread by seller"
    for name in sorted(_open_shards(connection)):
        yield f"{name} has a shard on which its policy is not forced"
    for name in everywhere:
        if lies.get(name, ("", 0))[0] != "n":
            yield f"{name} has no copy on each node"
    yield from _trial_faults(connection)


def _open_shards(connection: Connection) -> set[str]:
    """Return the tables that have a shard without a forced policy. One query per worker checks all
    tables.
    """
    shards = {
        f"{name}_{shard}": str(name)
        for name, shard in connection.execute(
            "SELECT logicalrelid::text, shardid FROM pg_dist_shard"
            " JOIN pg_dist_partition USING (logicalrelid) WHERE partmethod = 'h'"
        )
    }
    asked = """
        SELECT string_agg(relname, ',') FROM pg_class
         WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace
           AND relrowsecurity AND relforcerowsecurity
    """
    forced = set()
    for *_, result in _on_nodes(connection, asked):
        forced |= set(result.split(","))
    return {table for shard, table in shards.items() if shard not in forced}


def _trial_faults(connection: Connection) -> Iterator[str]:
    """Write for several sellers in one transaction over several nodes, and read as each of them."""
    clear = "DELETE FROM notice_look WHERE seller_id = ANY (%s)"
    connection.execute(clear, [list(_TRIAL)])
    with connection.transaction():
        connection.execute(f"SET LOCAL ROLE {APP_ROLE}")
        for seller in _TRIAL:
            connection.execute(f"SET LOCAL app.seller_id = '{seller}'")
            connection.execute("INSERT INTO notice_look VALUES (%s, now(), 0)", [seller])
    for seller in _TRIAL:
        with connection.transaction():
            connection.execute(f"SET LOCAL ROLE {APP_ROLE}")
            connection.execute(f"SET LOCAL app.seller_id = '{seller}'")
            seen = connection.execute("SELECT seller_id FROM notice_look").fetchall()
        if seen != [(seller,)]:
            yield f"a seller sees the rows of {len(seen)} sellers in place of its own alone"
    connection.execute(clear, [list(_TRIAL)])


def _on_nodes(connection: Connection, command: str) -> list[tuple[str, int, bool, str]]:
    asked = """
        SELECT nodename, nodeport, success, result
          FROM run_command_on_all_nodes(%s) JOIN pg_dist_node USING (nodeid) ORDER BY 1, 2
    """
    return connection.execute(asked, [command]).fetchall()


def _value(connection: Connection, statement: str, *values: object) -> Any:
    row = connection.execute(statement, values or None).fetchone()
    return None if row is None else row[0]

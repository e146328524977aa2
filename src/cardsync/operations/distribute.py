"""Spreads a database over the nodes of a Citus cluster: each seller's rows are together on one
node.

Every step first checks the current state. So a call continues an earlier call that was killed, and
after a migration it spreads the new tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import psycopg

from cardsync.operations import cluster_checks
from cardsync.operations.spread_triggers import replaced_functions
from cardsync.platform.database.migrate import check, take_schema
from cardsync.platform.database.urls import APP_ROLE, connect
from cardsync.platform.errors import CommandError

Connection = psycopg.Connection
Say = Callable[[str], None]
# All tenant tables are distributed like this table.
_FIRST: Final = "account"
# A transaction that uses one node also writes this table of the coordinator. Citus manages the
# table, so that its rows are committed together with the node's, in two phases.
_MANAGED: Final = "work_due"

_OF_DATABASE: Final = {
    "citus.propagate_set_commands": "local",
    "citus.enable_unsafe_triggers": "on",
    "jit": "off",
}
_ROLE: Final = (
    f"ALTER ROLE {APP_ROLE} LOGIN",
    f"ALTER ROLE {APP_ROLE} SET timezone = 'UTC'",
    f"ALTER ROLE {APP_ROLE} SET jit = off",
)

# The former table is emptied later, so the nodes must have received as many rows as it has.
_COPIED: Final = """
    DO $do$
    DECLARE here bigint; there bigint;
    BEGIN
        SELECT count(*) INTO here FROM {name};
        PERFORM {spread};
        SELECT count(*) INTO there FROM {name};
        IF here <> there THEN
            RAISE EXCEPTION '{name}: % of % rows came to the nodes', there, here;
        END IF;
    END $do$
"""
# Triggers are off while rows are copied, because the triggers counted the rows at their creation.
_UNCOUNTED: Final = "SET LOCAL session_replication_role = replica"


class Places(NamedTuple):
    """The tables to distribute, referenced tables first; all others stay with the coordinator."""

    tenants: Sequence[str]
    everywhere: Sequence[str]


class Step(NamedTuple):
    """The statements of one transaction."""

    says: str
    statements: Sequence[str]


def distribute(url: str, places: Places, shards: int, say: Say, *, dry_run: bool) -> list[Step]:
    """Spread the database, and return the steps that were done; with `dry_run`, only return the
    steps to do. `url` signs in as a superuser. Raises CommandError.
    """
    check(url)
    with connect(url, role=None, autocommit=True) as connection:
        _must_not(cluster_checks.faults(connection))
        take_schema(connection, say)
        return _spread(connection, places, shards, say, dry_run)


def _spread(
    connection: Connection, places: Places, shards: int, say: Say, dry_run: bool
) -> list[Step]:
    taken = []
    for phase in _PHASES:
        # The database is checked before this phase, because until then the rows are also in their
        # former tables.
        if phase is _emptied and not dry_run:
            found = cluster_checks.spread_faults(connection, places.tenants, places.everywhere)
            _must_not(found)
        for step in phase(connection, places, shards):
            taken.append(step)
            if dry_run:
                continue
            say(step.says)
            if phase in (_references, _tenants):
                _must_be_quiet(connection)
            with connection.transaction():
                for statement in step.statements:
                    connection.execute(statement.encode())
        if phase is _settings and not dry_run:
            _must_not(cluster_checks.sign_in_faults(connection))
    return taken


def _must_not(faults: Iterator[str]) -> None:
    if found := list(faults):
        raise CommandError("; ".join(found))


def _must_be_quiet(connection: Connection) -> None:
    if others := cluster_checks.writers(connection):
        raise CommandError(
            f"{others} other sessions use the database: stop all cardsync processes and call this"
            " again; what was done is kept"
        )


def _settings(connection: Connection, _: Places, __: int) -> Iterator[Step]:
    """Set the database's settings: the seller and the zone of a transaction must reach the nodes,
    and the application's role must be able to sign in on the nodes. No node uses JIT, which takes
    seconds for statements of a few milliseconds.
    """
    name = connection.info.dbname
    asked = """
        SELECT unnest(setconfig) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
         WHERE datname = current_database() AND setrole = 0
    """
    has = _column(connection, asked)
    missing = [
        f"{key} = {value}" for key, value in _OF_DATABASE.items() if f"{key}={value}" not in has
    ]
    if missing:
        sets = [f'ALTER DATABASE "{name}" SET {one}' for one in missing]
        # The current session gets the settings immediately.
        sets += [f"SET {one}" for one in missing]
        yield Step(f"settings of the database: {', '.join(missing)}", sets)
    role = "SELECT rolcanlogin, rolconfig FROM pg_roles WHERE rolname = %s"
    row = connection.execute(role, [APP_ROLE]).fetchone()
    assert row is not None
    if not row[0] or not {"TimeZone=UTC", "jit=off"} <= {*(row[1] or [])}:
        yield Step(f"{APP_ROLE} may sign in, and its settings", _ROLE)
    yield from _roles_on_workers(connection)


def _roles_on_workers(connection: Connection) -> Iterator[Step]:
    asked = """
        SELECT bool_and(success AND result = '1') FROM run_command_on_workers(
        'SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ''cardsync_app''
        AND ''jit=off'' = ANY (rolconfig)')
    """
    if _column(connection, asked) == [True]:
        return
    made = f"""
        SELECT run_command_on_workers($made$ DO $do$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{APP_ROLE}') THEN
            CREATE ROLE {APP_ROLE} NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
        END IF; {"; ".join(_ROLE)};
        END $do$ $made$)
    """
    yield Step(f"{APP_ROLE} on each worker", [made])


def _grants(connection: Connection, _: Places, __: int) -> Iterator[Step]:
    """Grant the application's role the sequences of identity columns, from which the nodes take
    numbers.
    """
    asked = """
        SELECT s.seqrelid::regclass::text FROM pg_sequence s
          JOIN pg_depend d ON d.objid = s.seqrelid AND d.classid = 'pg_class'::regclass
               AND d.deptype IN ('a', 'i')
         WHERE has_table_privilege(%(role)s, d.refobjid, 'INSERT')
           AND NOT has_sequence_privilege(%(role)s, s.seqrelid, 'USAGE') ORDER BY 1
    """
    names = _column(connection, asked, {"role": APP_ROLE})
    if names:
        grants = [f"GRANT USAGE ON SEQUENCE {name} TO {APP_ROLE}" for name in names]
        yield Step(f"{len(names)} sequences for {APP_ROLE}", grants)


def _functions(connection: Connection, _: Places, __: int) -> Iterator[Step]:
    for name, definition in replaced_functions(connection):
        yield Step(f"the trigger function {name}, in a form that nodes can run", [definition])


def _references(connection: Connection, places: Places, _: int) -> Iterator[Step]:
    for name in _not_yet(connection, places.everywhere):
        spread = f"create_reference_table('{name}')"
        yield Step(f"{name}: a copy on each node", [_COPIED.format(name=name, spread=spread)])


def _tenants(connection: Connection, places: Places, shards: int) -> Iterator[Step]:
    rest = [name for name in places.tenants if name != _FIRST]
    for name in _not_yet(connection, (_FIRST, *rest)):
        how = f"shard_count := {shards}, colocate_with := 'none'"
        if name != _FIRST:
            how = f"colocate_with := '{_FIRST}'"
        spread = f"create_distributed_table('{name}', 'seller_id', {how})"
        yield Step(f"{name}: by seller", [_UNCOUNTED, _COPIED.format(name=name, spread=spread)])


def _managed(connection: Connection, _: Places, __: int) -> Iterator[Step]:
    for name in _not_yet(connection, [_MANAGED]):
        statement = f"SELECT citus_add_local_table_to_metadata('{name}')"
        yield Step(f"{name}: with the coordinator, committed with the nodes", [statement])


def _emptied(connection: Connection, places: Places, _: int) -> Iterator[Step]:
    """Empty the former tables: their rows were copied to the nodes."""
    asked = """
        SELECT c.oid::regclass::text FROM pg_class c
         WHERE c.relname = ANY (%s) AND c.relnamespace = 'public'::regnamespace
           AND (pg_relation_size(c.oid) > 0 OR EXISTS (
               SELECT FROM pg_inherits i WHERE inhparent = c.oid
                 AND pg_relation_size(inhrelid) > 0))
    """
    names = [*places.tenants, *places.everywhere]
    for name in _column(connection, asked, [names]):
        statement = f"SELECT truncate_local_data_after_distributing_table('{name}')"
        yield Step(f"{name}: its former place is emptied", [statement])


def _not_yet(connection: Connection, names: Sequence[str]) -> list[str]:
    spread = _column(connection, "SELECT logicalrelid::text FROM pg_dist_partition"
                                 " WHERE partmethod = 'h' OR repmodel = 't'")  # fmt: skip
    if _MANAGED in names:
        spread += _column(connection, "SELECT logicalrelid::text FROM pg_dist_partition")
    return [name for name in names if name not in set(spread)]


def _column(connection: Connection, statement: str, values: Any = None) -> list[Any]:
    return [row[0] for row in connection.execute(statement, values)]


# The tables on the nodes lose the grants of their sequences, so `_grants` runs after all functions
# that copy tables.
_PHASES: Final = (_settings, _functions, _references, _tenants, _managed, _grants, _emptied)

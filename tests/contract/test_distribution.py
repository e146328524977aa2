"""A database that is spread over nodes rests on its schema and on the form of its statements; these
hold without a cluster. `test_citus.py` is for one.
"""

import re
from datetime import date
from pathlib import Path

import psycopg
import pytest

from cardsync.operations.distribute import Places, _grants
from cardsync.operations.spread_triggers import replaced_functions
from cardsync.platform.database.room_sql import named_in
from cardsync.platform.database.spread import for_nodes
from cardsync.platform.database.urls import APP_ROLE, libpq_url
from cardsync.tables import (
    EVERYWHERE,
    GLOBAL_BY_SELLER,
    WITH_THE_COORDINATOR,
    metadata,
    spread_tables,
    tables_everywhere,
)
from sql_scopes import scopes, texts, without_parts

SOURCE = Path(__file__).parents[2] / "src" / "cardsync"
FOREIGN_KEYS = """
    SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
     WHERE contype = 'f' AND conparentid = 0
"""
SPREAD = {table.name for table in spread_tables()}
NUMBERED = {
    table.name for table in spread_tables() if any(column.identity for column in table.columns)
}
NO_PLACES = Places([], [])


@pytest.fixture(scope="module")
def owner(owner_url):
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        yield connection


@pytest.fixture
def trial(owner):
    """The same connection; what the test writes is taken back."""
    with owner.transaction(force_rollback=True):
        yield owner


def test_each_table_has_one_place():
    """A new table of no seller is red here until `tables.py` says where it lies."""
    named = EVERYWHERE | WITH_THE_COORDINATOR
    assert not EVERYWHERE & WITH_THE_COORDINATOR
    assert not SPREAD & named
    assert SPREAD | named == set(metadata.tables)
    assert {table.name for table in tables_everywhere()} == EVERYWHERE
    assert GLOBAL_BY_SELLER <= WITH_THE_COORDINATOR


def test_a_referred_table_is_spread_before_those_that_refer_to_it():
    order = [table.name for table in spread_tables()]
    for table in spread_tables():
        for key in table.foreign_keys:
            assert order.index(key.column.table.name) <= order.index(table.name)


def test_no_foreign_key_leads_from_one_place_to_another(owner):
    for table, referred in owner.execute(FOREIGN_KEYS):
        assert (table in SPREAD) == (referred in SPREAD), (table, referred)
        assert referred not in EVERYWHERE, (table, referred)
        assert table not in EVERYWHERE, (table, referred)


def test_only_tallies_have_triggers_among_spread_tables(owner):
    asked = """
        SELECT DISTINCT tgrelid::regclass::text, tgfoid::regproc::text FROM pg_trigger
         WHERE NOT tgisinternal ORDER BY 1, 2
    """
    found = [
        (table, function)
        for table, function in owner.execute(asked)
        if table in SPREAD and not function.startswith("watched_prices.")
    ]
    assert found == [
        ("orders", "tally_orders_on_delete"),
        ("orders", "tally_orders_on_insert"),
        ("orders", "tally_orders_on_update"),
    ]


def test_an_identity_of_a_spread_table_is_a_bigint(owner):
    """Nodes divide its numbers among themselves."""
    asked = """
        SELECT attrelid::regclass::text, atttypid::regtype::text FROM pg_attribute
         WHERE attidentity <> '' AND NOT attisdropped
    """
    assert {kind for table, kind in owner.execute(asked) if table in SPREAD} == {"bigint"}


def test_a_spread_database_lets_the_application_take_every_number(trial):
    asked = """
        SELECT count(*) FROM pg_sequence s JOIN pg_depend d ON d.objid = s.seqrelid
               AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
         WHERE has_table_privilege(%(role)s, d.refobjid, 'INSERT')
           AND NOT has_sequence_privilege(%(role)s, s.seqrelid, 'USAGE')
    """
    for step in _grants(trial, NO_PLACES, 0):
        for statement in step.statements:
            trial.execute(statement)
    assert trial.execute(asked, {"role": APP_ROLE}).fetchone() == (0,)
    assert list(_grants(trial, NO_PLACES, 0)) == []


def test_trigger_functions_of_nodes_count_as_those_of_one_server(trial):
    counted = []
    for replaced in (False, True):
        with trial.transaction(force_rollback=True):
            if replaced:
                for _, definition in replaced_functions(trial):
                    trial.execute(definition)
                assert list(replaced_functions(trial)) == []
            counted.append(_tallies_of_some_orders(trial))
    assert counted[0] == counted[1]
    assert len(counted[0]) > 3


def _tallies_of_some_orders(connection):
    connection.execute("SET LOCAL app.seller_id = '-7'")
    for number in range(6):
        status = "Shipped" if number % 2 else "Processing"
        day = date(2026, 1 + number, 3)
        connection.execute(
            "INSERT INTO orders (seller_id, order_number, order_date, status)"
            " VALUES (-7, %s, %s, %s)",
            [str(number), day, status],
        )
    connection.execute("UPDATE orders SET status = 'Canceled' WHERE order_number < '3'")
    connection.execute("UPDATE orders SET refund_amt = 5 WHERE order_number = '4'")
    connection.execute("DELETE FROM orders WHERE seller_id = -7 AND order_number = '5'")
    return connection.execute(
        "SELECT * FROM order_tally WHERE seller_id = -7 ORDER BY 1, 2, 3, 4, 5, 6"
    ).fetchall()


RETURNS = " RETURNING 1"


@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("INSERT INTO card (id) SELECT id FROM incoming", RETURNS),
        ("WITH a AS (SELECT 1) INSERT INTO card SELECT * FROM a", RETURNS),
        ("INSERT INTO card SELECT 1 ON CONFLICT DO NOTHING", RETURNS),
        ("INSERT INTO card SELECT 1 RETURNING id", ""),
        ("INSERT INTO card AS c\n (id)\nSELECT 1", RETURNS),
        ("WITH a AS (INSERT INTO b SELECT 1) SELECT 2", ""),
        ("INSERT INTO card (id) VALUES (:id)", ""),
        ("INSERT INTO card (id) VALUES ((SELECT 1))", ""),
        ("SELECT id FROM card", ""),
        ("UPDATE card SET id = 1", ""),
        ("WITH a AS (INSERT INTO b SELECT 1 RETURNING x) INSERT INTO c SELECT x FROM a", RETURNS),
        ("WITH a AS (INSERT INTO b SELECT 1 RETURNING x) SELECT x FROM a", ""),
    ],
)
def test_rows_inserted_from_a_read_return_something(statement, added):
    assert for_nodes(statement) == statement + added


def sources():
    modules = [(path, path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]
    return modules + [(path, as_a_module(path)) for path in sorted(SOURCE.rglob("*.sql"))]


def as_a_module(path):
    """A file of statements as the source of a module that has each as a text."""
    return "".join(f'"""{sql}"""\n' for sql in named_in(path.read_text()).values())


def test_statements_of_files_are_among_the_sources():
    found = {path.name: list(texts(source)) for path, source in sources() if path.suffix == ".sql"}
    assert any("ON CONFLICT" in text for text in found["queries.sql"])


SET = r"\bUPDATE \w+(?: AS)?(?: \w+)?\s+SET\b(?:(?!\bWHERE\b|\bFROM\b|\"\"\").)*?"
# What nodes take wrongly or not at all, in SQL; docs/distribution.md says what to write instead.
FORBIDDEN = {
    "a simple CASE": r"\bCASE (?!WHEN\b)[\w.:%()]+ WHEN\b",
    "state in a setting of our own": r"set_config\('app\.|current_setting\('app\.(?!seller_id)",
    "a bare part of an array as a new value": SET + r"= \((?:array_|CAST\()[^\n]*\)\[",
    "a function of settings over a column": SET + r"(?:[\w.]+ [-+] interval\b|jsonb_build_object)",
}


@pytest.mark.parametrize("form", FORBIDDEN)
def test_statements_have_the_form_that_nodes_take(form):
    pattern = re.compile(FORBIDDEN[form], re.DOTALL)
    found = [path.name for path, source in sources() if pattern.search(source)]
    assert found == []


def test_the_forbidden_forms_are_found():
    """The patterns find what broke on nodes before."""
    broke = {
        "a simple CASE": "SET a = CASE :holder WHEN 'sync' THEN 1 END",
        "state in a setting of our own": "SELECT set_config('app.page', :page, true)",
        "a bare part of an array as a new value": "UPDATE t\n SET a = (CAST(:x AS bytea[]))[n.i]",
        "a function of settings over a column": "UPDATE c m SET a = b, at = at + interval '1 day'",
    }
    for form, statement in broke.items():
        assert re.search(FORBIDDEN[form], statement, re.DOTALL), form


def inserts(source):
    """The INSERTs of a source that read rows: the table, its alias, the text, and if it is a part
    of a larger statement.
    """
    for found in re.finditer(r"INSERT INTO (\w+)( AS \w+)?", source):
        end, depth = found.end(), 0
        while end < len(source) and depth >= 0 and not source.startswith('"""', end):
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        text = source[found.end() : end]
        if re.search(r"\bSELECT\b", text):
            yield found[1], found[2], text, depth < 0


def test_rows_that_a_part_of_a_statement_inserts_are_returned():
    """`for_nodes` looks after whole statements; a part says itself that it returns something."""
    found = [
        (path.name, table)
        for path, source in sources()
        for table, _, text, part in inserts(source)
        if part and not re.search(r"RETURNING|ON CONFLICT", text)
    ]
    assert found == []


def test_what_an_insert_returns_of_a_table_that_it_reads_has_an_alias():
    found = [
        (path.name, table)
        for path, source in sources()
        for table, alias, text, _ in inserts(source)
        if alias is None and "RETURNING" in text
        if re.search(rf"(?:FROM|JOIN) {table}\b", text)
    ]
    assert found == []


VALUE = re.compile(r"(?<!:):[a-z]\w*|[-+] interval\b")


def values_after_conflict(text):
    """An INSERT that reads rows, or a part of one that a text of its own holds."""
    if "INSERT INTO" not in text:
        return "excluded." in text and VALUE.search(text)
    return any(
        VALUE.search(scope.text.partition("ON CONFLICT")[2])
        for scope in scopes(text)
        if re.search(r"INSERT INTO.*\bSELECT\b.*ON CONFLICT", scope.text, re.DOTALL)
    )


def inner_scopes(text):
    return [scope for scope in scopes(text) if scope.outer is not None]


def sellers_of_outer_rows(text):
    return any(
        set(scope.tables.values()) & SPREAD and not {alias, other} <= scope.tables.keys()
        for scope in inner_scopes(text)
        if not re.search(r"\bseller_id = :seller", scope.text)
        for alias, other in re.findall(r"\b(\w+)\.seller_id = (\w+)\.seller_id\b", scope.text)
    )


def looks_from_place_to_place(text):
    pairs = (
        {scope.seen_from(alias), table}
        for scope in inner_scopes(text)
        for alias in set(re.findall(r"\b([a-z_]\w*)\.[a-z_]", scope.text)) - scope.tables.keys()
        for table in scope.tables.values()
    )
    return any(pair & SPREAD and pair & WITH_THE_COORDINATOR for pair in pairs)


def numbers_rows_of_spread_tables(text):
    """Those of an unnest, a CTE or a sub-query are no rows of the table itself."""
    for found in re.finditer(r"INSERT INTO (\w+)", text):
        read = re.search(
            r"\bSELECT\b.*?\bFROM (\w+)", without_parts(text[found.end() :]), re.DOTALL
        )
        if found[1] in NUMBERED and read and read[1] in SPREAD:
            return True
    return False


def reads_no_column_for_numbered_rows(text):
    return any(
        found[1] in NUMBERED and re.search(r"\(\s*SELECT FROM\b", text[found.end() :])
        for found in re.finditer(r"INSERT INTO (\w+)", text)
    )


# Texts with SQL in which nodes take no such thing: the name, what finds it, what broke once, and
# where it is right: tables of the coordinator alone, or a database on one server.
READS = {
    "a value after ON CONFLICT": (
        values_after_conflict,
        [
            "INSERT INTO t (a) SELECT 1 ON CONFLICT (a) DO UPDATE SET a = :now",
            "d.price <> excluded.price OR d.since < :now",
            "d.price <> excluded.price OR d.since < excluded.since - interval '1 day'",
        ],
        {"load_observations.py"},
    ),
    "the seller of an outer row": (
        sellers_of_outer_rows,
        ["(SELECT sum(s.a) FROM sales_sum s WHERE s.seller_id = sales_kept.seller_id)"],
        {"restore_backup.py"},
    ),
    "a sub-query from place to place": (
        looks_from_place_to_place,
        [
            "DELETE FROM notice_reader r WHERE NOT EXISTS (SELECT FROM member m WHERE m.id = r.id)",
            """SELECT FROM picture_host h, LATERAL (
                 (SELECT 1 FROM card_photo p WHERE p.seller_id = :seller AND p.host = h.host)) w""",
        ],
        set(),
    ),
    "rows of a spread table that are numbered": (
        numbers_rows_of_spread_tables,
        ["INSERT INTO sales_stale (a) SELECT k.a FROM sales_kept k WHERE k.seller_id = :seller"],
        set(),
    ),
    "a sub-query without a column beside rows that are numbered": (
        reads_no_column_for_numbered_rows,
        [
            """INSERT INTO agent_task (seller_id) SELECT :seller FROM (SELECT id FROM quick_add) q
                WHERE NOT EXISTS (SELECT FROM agent_task WHERE seller_id = :seller)"""
        ],
        set(),
    ),
}


@pytest.mark.parametrize("form", READS)
def test_sub_queries_have_the_form_that_nodes_take(form):
    finds, broke, right = READS[form]
    assert all(finds(text) for text in broke)
    found = {path.name for path, source in sources() if any(map(finds, texts(source)))}
    assert found == right


def test_the_seller_of_a_transaction_is_set_by_a_literal_alone():
    """A SET LOCAL with a literal reaches the nodes, and set_config does not."""
    found = [path.name for path, source in sources() if "app.seller_id" in source]
    allowed = {"cluster_checks.py", "migrate.py", "session.py", "transaction_settings.py"}
    assert set(found) <= allowed

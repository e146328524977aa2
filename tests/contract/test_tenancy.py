"""Tenancy, read from the database's own catalog: nothing of one seller can be seen, changed or
even joined by another.

A table that a later issue adds is covered by being there.
"""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.rows import dict_row
from sqlalchemy import create_engine

from browsers import joined
from builders import a_csv, a_row
from cardsync.access import sealed
from cardsync.asgi import create_app
from cardsync.operations.moving.archive_tables import MEMBERS
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.urls import APP_ROLE, engine_url, libpq_url
from cardsync.tables import GLOBAL_BY_SELLER, metadata, tenant_tables
from requests_of_routes import DOCUMENT

# Tables whose seller_id decides who may see a row, partitions included.
TENANT = """
    SELECT c.oid, c.relname AS name, c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'seller_id'
          AND NOT a.attisdropped
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
         AND NOT c.relname = ANY(%s)
"""
FIRST_COLUMN = """
    SELECT c.relname AS name, i.indexrelid::regclass::text AS index, i.indisprimary AS is_primary,
           (SELECT attname FROM pg_attribute
               WHERE attrelid = i.indrelid AND attnum = i.indkey[0]) AS first
      FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
      WHERE i.indrelid = ANY(%s) AND i.indisunique
"""
FOREIGN_KEYS = """
    SELECT k.conrelid::regclass::text AS name, k.conname,
           (SELECT attname FROM pg_attribute
               WHERE attrelid = k.conrelid AND attnum = k.conkey[1]) AS first,
           (SELECT attname FROM pg_attribute
               WHERE attrelid = k.confrelid AND attnum = k.confkey[1]) AS referred
      FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = ANY(%s)
"""


@pytest.fixture(scope="module")
def owner(owner_url):
    with psycopg.connect(
        libpq_url(owner_url, role=None), autocommit=True, row_factory=dict_row
    ) as connection:
        yield connection


@pytest.fixture(scope="module")
async def sellers(service):
    """Two sellers with something in every table that an import fills; the import also makes the
    month's partition.
    """
    from builders import SellerBuilder

    made = []
    for _ in range(2):
        seller = await SellerBuilder(service)()
        await seller.get("/api/v1/sync/pending")
        await seller.import_csv(
            a_csv(a_row(1), a_row(2, price="5.00", market="9.00")), **{"X-Sync-Cycle-Id": "c"}
        )
        await seller.import_csv(
            a_csv(a_row(1, price="1.10"), a_row(2, price="5.00", market="8.00"))
        )
        made.append(seller)
    return made


@pytest.fixture(scope="module")
def tables(owner, sellers):
    found = owner.execute(TENANT, [sorted(GLOBAL_BY_SELLER)]).fetchall()
    assert {table.name for table in tenant_tables()} <= {row["name"] for row in found}
    return found


@pytest.fixture(scope="module")
def oids(tables):
    return [table["oid"] for table in tables]


@pytest.mark.day
def test_partitions_are_among_the_tables_looked_at(tables):
    assert [
        table["name"] for table in tables if re.fullmatch(r"price_observation_\d{6}", table["name"])
    ]


def test_every_tenant_table_has_a_primary_key_that_begins_with_the_seller(owner, tables, oids):
    keys = {
        row["name"]: row["first"]
        for row in owner.execute(FIRST_COLUMN, [oids])
        if row["is_primary"]
    }
    assert keys == dict.fromkeys((table["name"] for table in tables), "seller_id")


def test_every_unique_index_of_a_tenant_table_begins_with_the_seller(owner, oids):
    rows = owner.execute(FIRST_COLUMN, [oids]).fetchall()
    assert any(not row["is_primary"] for row in rows)
    assert [row["index"] for row in rows if row["first"] != "seller_id"] == []


def test_every_foreign_key_of_a_tenant_table_begins_with_the_seller(owner, oids):
    rows = owner.execute(FOREIGN_KEYS, [oids]).fetchall()
    assert rows
    assert [
        row for row in rows if (row["first"], row["referred"]) != ("seller_id", "seller_id")
    ] == []


def test_row_level_security_is_enabled_and_forced_everywhere(tables):
    assert [table["name"] for table in tables if not (table["enabled"] and table["forced"])] == []


def test_every_policy_compares_the_seller_and_has_no_sub_select(owner, tables):
    policies = owner.execute(
        "SELECT tablename, permissive, roles::text[] AS roles, cmd, qual, with_check"
        " FROM pg_policies WHERE schemaname = 'public'"
    ).fetchall()
    by_table = {policy["tablename"]: policy for policy in policies}
    assert len(policies) == len(by_table)
    assert by_table.keys() == {table["name"] for table in tables}
    for policy in policies:
        assert (policy["cmd"], policy["roles"]) == ("ALL", ["public"])
        for rule in (policy["qual"], policy["with_check"]):
            assert "SELECT" not in rule.upper()
            assert rule.startswith("(seller_id = ")
            assert "app.seller_id" in rule
            assert " OR " not in rule.upper()


def test_only_the_tables_named_as_global_carry_a_seller_without_row_level_security(owner):
    query = """
        SELECT c.relname FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'seller_id'
         WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
             AND NOT c.relrowsecurity
    """
    assert {row["relname"] for row in owner.execute(query)} == GLOBAL_BY_SELLER


def test_each_table_without_a_policy_stands_in_the_docs_with_its_reason():
    page = (Path(__file__).parents[2] / "docs" / "tenancy.md").read_text()
    told = re.findall(r"^\| `(\w+)` \| \w", page, re.MULTILINE)
    assert sorted(told) == sorted(GLOBAL_BY_SELLER)


OF_MEMBERS = """
    SELECT a.attrelid::regclass::text || '.' || a.attname AS name
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
       AND a.attname = ANY(%s) AND NOT a.attisdropped AND EXISTS (
           SELECT FROM pg_attribute s WHERE s.attrelid = c.oid AND s.attname = 'seller_id')
       AND NOT EXISTS (
           SELECT FROM pg_constraint k
            WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid = 'member'::regclass
              AND a.attnum = ANY(k.conkey) AND cardinality(k.conkey) = 2)
"""


def test_what_names_a_member_has_a_key_with_its_seller_or_stands_in_the_docs(owner):
    page = (Path(__file__).parents[2] / "docs" / "tenancy.md").read_text()
    of_members = page.partition("## Whose member a row names")[2].partition("\n## ")[0]
    described = set(re.findall(r"^\| `([\w.]+)` \| \S.*\|$", of_members, re.MULTILINE))
    assert {row["name"] for row in owner.execute(OF_MEMBERS, [[*MEMBERS]])} == described


def _fields(schema, seen=()):
    match schema:
        case {"$ref": str(name)} if name not in seen:
            yield from _fields(
                DOCUMENT["components"]["schemas"][name.rsplit("/", 1)[1]], (*seen, name)
            )
        case dict():
            yield from schema.get("properties", ())
            for inner in schema.values():
                yield from _fields(inner, seen)
        case list():
            for inner in schema:
                yield from _fields(inner, seen)


def test_no_body_of_a_request_names_a_member():
    bodies = [
        operation.get("requestBody", {})
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
    ]
    named = {name for body in bodies for name in _fields(body)}
    assert "marketplace_id" in named
    assert not named & MEMBERS


def test_the_applications_role_has_no_power_of_its_own(owner):
    [role] = owner.execute(
        "SELECT oid, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolreplication"
        " FROM pg_roles WHERE rolname = %s",
        [APP_ROLE],
    ).fetchall()
    oid = role.pop("oid")
    assert not any(role.values())
    owned = (
        "SELECT relname FROM pg_class WHERE relowner = %s UNION ALL SELECT proname FROM pg_proc"
        " WHERE proowner = %s"
    )
    assert owner.execute(owned, [oid, oid]).fetchall() == []
    assert (
        owner.execute("SELECT roleid FROM pg_auth_members WHERE member = %s", [oid]).fetchall()
        == []
    )


def test_the_applications_role_cannot_change_the_schema(owner):
    [row] = owner.execute(
        "SELECT has_schema_privilege(%(r)s, 'public', 'CREATE') AS make,"
        " has_table_privilege(%(r)s, 'card', 'TRUNCATE') AS empty,"
        " has_table_privilege(%(r)s, 'card', 'TRIGGER') AS trigger, has_table_privilege(%(r)s,"
        " 'alembic_version', 'UPDATE') AS version",
        {"r": APP_ROLE},
    ).fetchall()
    assert not any(row.values())


def test_functions_that_run_as_the_owner_pin_their_search_path_and_are_not_for_everybody(owner):
    rows = owner.execute(
        "SELECT proname, proconfig, has_function_privilege('public', oid, 'EXECUTE') AS everybody"
        " FROM pg_proc"
        " WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    ).fetchall()
    assert rows
    for row in rows:
        assert any(setting.startswith("search_path=") for setting in row["proconfig"] or [])
        assert not row["everybody"]


async def test_the_application_acts_as_its_role(service):
    async with service.database.shared() as session:
        from sqlalchemy import text

        assert await session.scalar(text("SELECT current_user")) == APP_ROLE
    assert await service.database.polled.first_row(
        1, PolledQuery("who", "SELECT current_user::text WHERE $1 > 0")
    ) == (APP_ROLE,)


@pytest.fixture
def app(owner_url):
    """A connection as the application makes it, outside any seller's scope."""
    with psycopg.connect(libpq_url(owner_url), row_factory=dict_row) as connection:
        yield connection
        connection.rollback()


PASSWORD = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$x"
# What would let somebody in as somebody else, or for longer.
ESCALATIONS = {
    "an operator": "INSERT INTO installation_operator VALUES ({staff}, now())",
    "another operator": "UPDATE installation_operator SET member_id = {staff}",
    "no operator": "DELETE FROM installation_operator",
    "an owner": "UPDATE member SET role = 'owner' WHERE id = {staff}",
    "a new owner": "INSERT INTO member (seller_id, email, name, role, password_hash)"
    f" VALUES ({{theirs}}, 'x@example.invalid', 'x', 'owner', '{PASSWORD}')",
    "the owner's password": f"UPDATE member SET password_hash = '{PASSWORD}' WHERE id = {{owner}}",
    "the owner's address": "UPDATE member SET email = 'x@example.invalid' WHERE id = {owner}",
    "another shop": "UPDATE member SET seller_id = {theirs} WHERE id = {staff}",
    "the owner's session": "INSERT INTO member_session (seller_id, member_id, token_hash,"
    " created_at, last_seen_at, expires_at) VALUES ({mine}, {owner}, '\\x00', now(), now(), now())",
    "a session without end": "UPDATE member_session SET expires_at = 'infinity'",
    "a session of the owner": "UPDATE member_session SET member_id = {owner}",
    "the owner's link": "INSERT INTO invitation (member_id, seller_id, token_hash, created_at,"
    " expires_at) VALUES ({owner}, {mine}, '\\x00', now(), 'infinity')",
    "another link": "UPDATE invitation SET token_hash = '\\x00'",
    "the owner's passkey": "INSERT INTO passkey (seller_id, member_id, name, credential_id,"
    " public_key, sign_count, created_at) VALUES ({mine}, {owner}, '', '', '', 0, now())",
    "a passkey's owner": "UPDATE passkey SET member_id = {owner}",
    "another shop's key": "INSERT INTO api_key (seller_id, name, key_hash)"
    " VALUES ({theirs}, 'x', '\\x00')",
    "the shop of a key": "UPDATE api_key SET seller_id = {theirs}",
    "the secret of a key": "UPDATE api_key SET key_hash = '\\x00'",
    "a revoked key": "UPDATE api_key SET revoked_at = NULL",
    "another shop's token": "INSERT INTO access_token (seller_id, name, scopes, token_hash)"
    " VALUES ({theirs}, 'x', '{{}}', '\\x00')",
    "more scopes": "UPDATE access_token SET scopes = '{{mcp:write}}'",
    "a revoked token": "UPDATE access_token SET revoked_at = NULL",
    "a grant": "INSERT INTO oauth_grant (seller_id, member_id, client_id, name, audience, scopes,"
    " buyer_data) VALUES ({mine}, {owner}, 'x', 'x', 'x', '{{mcp:write}}', true)",
    "buyers for a grant": "UPDATE oauth_grant SET buyer_data = true",
    "buyers for a token": "UPDATE access_token SET buyer_data = true",
    "a revoked grant": "UPDATE oauth_grant SET revoked_at = NULL",
    "a consent": "INSERT INTO oauth_code (code_hash, seller_id, member_id, client_id, redirect_uri,"
    " code_challenge, audience, scopes, buyer_data, expires_at) VALUES ('x', {theirs}, {owner},"
    " 'x', 'x', 'x', 'x', '{{}}', true, 'infinity')",
    "a code used again": "UPDATE oauth_code SET used_at = NULL",
    "a refresh token": "INSERT INTO refresh_token (token_hash, seller_id, grant_id, expires_at)"
    " VALUES ('x', {theirs}, 1, 'infinity')",
    "a refresh token used again": "UPDATE refresh_token SET used_at = NULL",
    "a forged token of a grant": "SELECT add_grant_token({mine}, 1, '\\x00', 'mcp:write', '\\x00',"
    " now(), now())",
    "the seal": "SELECT seal FROM identity_seal",
    "a seal": "INSERT INTO identity_seal VALUES ('x', now())",
    "a proof that is none": "SELECT must_be_sealed('x', '\\x00')",
    "a forged owner": "SELECT set_member_role({mine}, {staff}, 'owner', '\\x00')",
    "an owner without a proof": "SELECT set_member_role({mine}, {staff}, 'owner', NULL)",
    "a forged key": "SELECT add_api_key({theirs}, 'x', '\\x00', '\\x00')",
    "a forged session": "SELECT add_member_session({owner}, '\\x00', '\\x00', now(), now())",
    "a forged password": "SELECT set_member_password({owner}, 'x', '\\x00')",
}


@pytest.fixture(scope="module")
async def people(sellers, owner):
    """The ids of an owner and of one of the staff."""
    mine, theirs = sellers
    await joined(mine, f"staff-{mine.email}")
    ids = owner.execute("SELECT role, id FROM member WHERE seller_id = %s", [mine.id]).fetchall()
    return {row["role"]: row["id"] for row in ids} | {"mine": mine.id, "theirs": theirs.id}


@pytest.mark.parametrize("what", ESCALATIONS)
def test_no_statement_of_the_application_makes_somebody_else_of_anybody(app, people, what):
    app.execute(f"SET LOCAL app.seller_id = '{people['mine']}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(ESCALATIONS[what].format(**people))


async def test_a_proof_is_good_for_one_change_alone(service, app, people):
    async with service.database.shared() as session:
        values = (people["mine"], people["staff"], "staff")
        proof = sealed._proof(session, "set_member_role", values)
    call = "SELECT set_member_role(%s, %s, %s, %s)"
    assert app.execute(call, [*values, proof]).fetchone()
    for other in (("owner", people["staff"]), ("staff", people["owner"])):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
            app.execute(call, [people["mine"], other[1], other[0], proof])


async def test_a_process_with_another_secret_makes_nobody_and_says_so(settings, alive):
    app = create_app(settings.model_copy(update={"secret_key": "another secret"}))
    async with alive(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            answer = await http.get("/readyz")
    assert answer.status_code == 503
    assert "SECRET_KEY" in answer.json()["checks"]["role"]


FILLED = (
    "account",
    "card",
    "line_snapshot",
    "price_change",
    "price_observation",
    "price_run",
    "pricing_rule",
    "sync_cycle",
    "sync_state",
    "upload",
)


def test_the_tables_of_these_tests_are_filled_for_both(owner, tables, sellers):
    for seller in sellers:
        for name in FILLED:
            [row] = owner.execute(
                f"SELECT count(*) FROM {name} WHERE seller_id = {seller.id}"
            ).fetchall()
            assert row["count"] > 0, name


def test_without_a_scope_nothing_is_visible(app, tables):
    for table in tables:
        [row] = (
            app.execute(f"SELECT count(*) FROM {table['name']}").fetchall()
            if may_read(app, table)
            else [{"count": 0}]
        )
        assert row["count"] == 0, table["name"]


def may_read(app, table) -> bool:
    [row] = app.execute(
        "SELECT has_table_privilege(%s::oid, 'SELECT') AS may", [table["oid"]]
    ).fetchall()
    return row["may"]


@pytest.mark.parametrize("name", FILLED)
def test_a_seller_sees_its_own_rows_alone(app, sellers, name):
    mine, theirs = sellers
    app.execute(f"SET LOCAL app.seller_id = '{mine.id}'")
    assert app.execute(f"SELECT DISTINCT seller_id FROM {name}").fetchall() == [
        {"seller_id": mine.id}
    ]
    assert app.execute(f"SELECT 1 FROM {name} WHERE seller_id = {theirs.id}").fetchall() == []


@pytest.mark.parametrize("name", FILLED)
def test_a_seller_changes_none_of_anothers_rows_even_when_it_names_them(app, sellers, name):
    mine, theirs = sellers
    app.execute(f"SET LOCAL app.seller_id = '{mine.id}'")
    assert (
        app.execute(
            f"UPDATE {name} SET seller_id = seller_id WHERE seller_id = {theirs.id}"
        ).rowcount
        == 0
    )
    assert app.execute(f"DELETE FROM {name} WHERE seller_id = {theirs.id}").rowcount == 0


@pytest.mark.parametrize("name", FILLED)
def test_a_seller_can_neither_add_rows_to_another_nor_give_its_own_away(app, sellers, name):
    mine, theirs = sellers
    app.execute(f"SET LOCAL app.seller_id = '{mine.id}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        app.execute(f"UPDATE {name} SET seller_id = {theirs.id}")


def test_a_seller_cannot_insert_for_another(app, sellers):
    mine, theirs = sellers
    app.execute(f"SET LOCAL app.seller_id = '{mine.id}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        app.execute(
            "INSERT INTO activity (seller_id, actor, action, summary)"
            f" VALUES ({theirs.id}, 'a', 'b', 'c')"
        )


def test_a_partition_is_no_way_around(app, tables, sellers):
    mine, theirs = sellers
    for table in tables:
        if table["name"].startswith("price_observation_") and may_read(app, table):
            app.execute(f"SET LOCAL app.seller_id = '{mine.id}'")
            assert (
                app.execute(
                    f"SELECT 1 FROM {table['name']} WHERE seller_id = {theirs.id}"
                ).fetchall()
                == []
            )


def test_the_scope_ends_with_its_transaction(app, sellers):
    app.execute(f"SET LOCAL app.seller_id = '{sellers[0].id}'")
    assert app.execute("SELECT count(*) FROM card").fetchone() == {"count": 2}
    app.commit()
    assert app.execute("SELECT count(*) FROM card").fetchone() == {"count": 0}


def test_models_and_migrations_describe_the_same_database(owner_url):
    def ours(thing, name, kind, reflected, compare_to) -> bool:
        # The queue's own tables and the month's partitions have no model.
        table = name if kind == "table" else getattr(getattr(thing, "table", None), "name", "")
        return not re.match(r"procrastinate_|price_observation_\d", table or "")

    engine = create_engine(engine_url(libpq_url(owner_url, role=None)))
    try:
        with engine.connect() as connection:
            options = {"include_object": ours, "compare_type": True, "compare_server_default": True}
            found = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    finally:
        engine.dispose()
    assert found == []


def test_a_process_that_loads_the_table_of_contents_alone_has_every_table():
    """Other modules must not be needed: `admin seller delete` erases what is named here."""
    told = "from cardsync.tables import metadata; print(*metadata.tables)"
    alone = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert set(alone.stdout.split()) == set(metadata.tables)

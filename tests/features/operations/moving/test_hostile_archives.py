"""Whoever made an archive may be hostile: it changes nothing of any other shop, and what is wrong
with it is a sentence, also of the dry run.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import polars as pl
import psycopg
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import schedule
from browsers import joined
from builders import SellerBuilder, environment
from cardsync.cli import program
from cardsync.operations.moving import archive_file, archive_tables
from cardsync.platform.database.urls import libpq_url
from cardsync.tables import metadata
from dashboard_builder import filled_shop
from every_table import fill

NOW = datetime(2026, 11, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=3650)


def forged(path, tables: dict[str, pl.DataFrame], **changed: object):
    """The same archive with other tables in the place of its own, or beside them; signed again."""
    other = path.with_name("forged.zip")
    with archive_file.opened(path) as old, archive_file.written(other) as new:
        lines = {}
        for name, line in old.manifest.tables.items():
            if name not in tables:
                entry = archive_file.table_entry(name)
                lines[name] = new.add(entry, old.chunks(entry), line.rows)
        for name, rows in tables.items():
            made = io.BytesIO()
            rows.write_parquet(made)
            entry = archive_file.table_entry(name)
            lines[name] = new.add(entry, [made.getvalue()], rows.height)
        objects = {
            key: new.add(f"objects/{key}", old.chunks(f"objects/{key}"))
            for key in old.manifest.objects
        }
        manifest = msgspec.structs.replace(old.manifest, tables=lines, objects=objects)
        new.end(msgspec.structs.replace(manifest, **changed))
    return other


def table_of(path, name: str) -> pl.DataFrame:
    with archive_file.opened(path) as archive:
        return pl.read_parquet(b"".join(archive.chunks(archive_file.table_entry(name))))


_MADE: list[object] = []


@pytest.fixture
async def archive(service, cardsync, owner_url, tmp_path_factory):
    """The archive of a shop with a row in each table, made once."""
    if not _MADE:
        seller, _ = await filled_shop(SellerBuilder(service))
        await joined(seller, f"bea-{seller.email}")
        fill(owner_url, seller.id, seller.email)
        path = tmp_path_factory.mktemp("hostile") / "shop.zip"
        made = await cardsync(service, "export", seller.id, path)
        assert made.exit_code == 0, made.output
        _MADE.append(path)
    return _MADE[0]


# What the catalog learns of a card that it lacked is no row of a shop, and what the database counts
# for itself is none of anybody.
_LEARNED = re.compile(r"catalog_|rate_limit|product$|procrastinate_")


def others(service, before=None) -> dict[str, object]:
    """A digest of each table, without what belongs to sellers who came after `before`."""
    url = libpq_url(service.settings.migration_database_url, role=None)
    with psycopg.connect(url) as owner:
        [newest] = owner.execute("SELECT coalesce(max(id), 0) FROM seller").fetchone()
        found = {"newest": before["newest"] if before else newest}
        for table in metadata.sorted_tables:
            name = table.name
            if _LEARNED.match(name):
                continue
            owner_of = "id" if name == "seller" else "seller_id"
            own = f"WHERE {owner_of} <= {found['newest']}" if owner_of in table.columns else ""
            digest = f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {name} t {own}"
            found[name] = owner.execute(digest).fetchone()
        parts = "SELECT count(*) FROM pg_inherits"
        found["parts"] = owner.execute(parts).fetchone()[0] < 200
    return found


@pytest.fixture
async def victim(elsewhere):
    """An owner of a shop that is there already: her seller's id and her own."""
    seller = await SellerBuilder(elsewhere)()
    [row] = await elsewhere.sql(0, "SELECT id FROM member WHERE seller_id = :id", id=seller.id)
    return seller, row["id"]


@pytest.fixture
def refused(cardsync, elsewhere):
    """`await refused(path)` is the sentence with which both the import and its dry run refuse it."""

    async def refused(path) -> str:
        said = set()
        for options in ([], ["--dry-run"]):
            done = await cardsync(elsewhere, "import", path, *options)
            assert done.exit_code == 1, done.output
            assert "Traceback" not in done.output
            said.add(done.stderr.splitlines()[-1])
        [line] = said
        assert line.startswith("Error: ")
        return line

    return refused


def an_invitation(member_id: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "member_id": [member_id],
            "token_hash": ["\\x" + hashlib.sha256(b"known").hexdigest()],
            "created_at": [NOW],
            "expires_at": [LATER],
        },
        schema_overrides={
            "created_at": pl.Datetime("us", "UTC"),
            "expires_at": pl.Datetime("us", "UTC"),
        },
    )


def changed(path, name: str, /, **cells: object) -> pl.DataFrame:
    """The rows of a table with these cells in all of them."""
    rows = table_of(path, name)
    values = [pl.lit(value, rows.schema[column]).alias(column) for column, value in cells.items()]
    return rows.with_columns(values)


@pytest.mark.parametrize("sign", [1, -1])
async def test_no_invitation_comes_in(archive, victim, elsewhere, refused, sign):
    _, member = victim
    said = await refused(forged(archive, {"invitation": an_invitation(sign * member)}))
    assert "invitation, which no export does" in said
    assert await elsewhere.sql(0, "SELECT FROM invitation WHERE member_id = :m", m=member) == []
    async with elsewhere.client() as http:
        told = {"token": "known", "password": "a long enough password"}
        assert (await http.post("/api/invitations/accept", json=told)).status_code >= 400


@pytest.mark.parametrize("sign", [1, -1])
async def test_a_passkey_is_of_a_member_of_the_archive(archive, victim, elsewhere, refused, sign):
    _, member = victim
    before = others(elsewhere)
    said = await refused(
        forged(archive, {"passkey": changed(archive, "passkey", member_id=sign * member)})
    )
    assert "passkey.member_id" in said
    assert others(elsewhere, before) == before


NAMING_A_MEMBER = {
    "access_token": "(seller_id, name, scopes, token_hash, member_id)"
    " VALUES (%(seller)s, 'x', '{}', '\\x01', %(member)s)",
    "invitation": "(seller_id, member_id, token_hash, created_at, expires_at)"
    " VALUES (%(seller)s, %(member)s, '\\x01', now(), now())",
    "member_session": "(seller_id, member_id, token_hash, created_at, last_seen_at, expires_at)"
    " VALUES (%(seller)s, %(member)s, '\\x01', now(), now(), now())",
    "oauth_code": "(seller_id, member_id, code_hash, client_id, redirect_uri, code_challenge,"
    " audience, scopes, buyer_data, expires_at)"
    " VALUES (%(seller)s, %(member)s, '\\x01', '', '', '', '', '{}', false, now())",
    "oauth_grant": "(seller_id, member_id, client_id, name, audience, scopes, buyer_data)"
    " VALUES (%(seller)s, %(member)s, '', '', '', '{}', false)",
    "passkey": "(seller_id, member_id, name, credential_id, public_key, sign_count, created_at)"
    " VALUES (%(seller)s, %(member)s, '', '\\x01', '\\x01', 0, now())",
}


@pytest.mark.parametrize("table", NAMING_A_MEMBER)
async def test_the_database_itself_keeps_a_member_with_its_seller(
    victim, elsewhere, a_seller, table
):
    seller, member = victim
    other = await SellerBuilder(elsewhere)()
    url = libpq_url(elsewhere.settings.migration_database_url, role=None)
    with psycopg.connect(url) as owner:
        for seller_id, taken in ((seller.id, True), (other.id, False)):
            owner.execute("SELECT set_config('app.seller_id', %s, true)", [str(seller_id)])
            insert = f"INSERT INTO {table} {NAMING_A_MEMBER[table]}"
            values = {"seller": seller_id, "member": member}
            if taken:
                owner.execute(insert, values)
                owner.execute(f"DELETE FROM {table} WHERE seller_id = %(seller)s", values)
            else:
                with pytest.raises(psycopg.errors.ForeignKeyViolation):
                    owner.execute(insert, values)
        owner.rollback()


def _keyed(table) -> bool:
    return any(key.referred_table.name == "member" for key in table.foreign_key_constraints)


WITHOUT_A_KEY = sorted(
    (table.name, column.name)
    for table in metadata.sorted_tables
    for column in table.columns
    if column.name in archive_tables.MEMBERS and not _keyed(table)
)


async def test_where_no_key_holds_it_no_row_that_comes_in_names_another_shops_member(
    archive, victim, elsewhere, cardsync
):
    _, member = victim
    assert len(WITHOUT_A_KEY) == 5
    tables = {
        name: changed(archive, name, **{column: member}).head(1) for name, column in WITHOUT_A_KEY
    }
    before = others(elsewhere)
    done = await cardsync(elsewhere, "import", forged(archive, tables))
    assert done.exit_code == 0, done.output
    there = int(done.output.split("is seller ")[1].split()[0])
    for name, column in WITHOUT_A_KEY:
        rows = f"SELECT {column} AS named FROM {name} WHERE seller_id = :id"
        assert [row["named"] for row in await elsewhere.sql(there, rows, id=there)] == [-member]
    assert others(elsewhere, before) == before
    await asyncio.to_thread(erased, elsewhere, there)


FAR = 2**62
# What a shop's archive says, and a part of the sentence that refuses it.
FORGERIES = {
    "an id of 2^62": ("orders", {"id": FAR}, "orders.id"),
    "an id that jumps ahead": ("upload", {"id": 2**50}, "no installation has come so far"),
    "a card far ahead": ("card_list", {"id": 2**53 - 1}, "no installation has come so far"),
    "an id below 1": ("lot", {"id": -3}, "lot.id"),
    "an order of nobody": ("order_item", {"order_id": 77_777_777}, "orders has no such row"),
    "a product of nobody": ("settled_match", {"product_id": 99_999_999}, "product has no such"),
    "a third role": ("member", {"role": "operator"}, "member.role"),
    "no address": ("member", {"email": "a\nb@c"}, "member.email"),
    "a password that takes hours": (
        "member",
        {"password_hash": "$argon2id$v=19$m=4194304,t=9000,p=4$c29tZXNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"},
        "password_hash",
    ),
    "another seller": ("seller", {"id": 5}, "seller.id"),
    "a photo of this machine": (
        "card_photo",
        {"address": "http://127.0.0.1:8000/metrics/x"},
        "card_photo.host",
    ),
    "a photo outside of its folder": ("card_photo", {"digest": "../u1/x"}, "card_photo.digest"),
    "an object of another shop": ("upload", {"storage_key": "accepted/u2/a.csv"}, "storage_key"),
    "an object outside": ("upload", {"storage_key": "accepted/u1/../../x"}, "storage_key"),
    "receipts of another shop": (
        "price_run",
        {"summary": '{"receipts": "receipts/u2/3-x.parquet"}'},
        "price_run.summary",
    ),
    "a member in another form": ("activity", {"undo": '{"member_id":7}'}, "not JSON of a database"),
    "a member in escapes": (
        "activity",
        {"undo": '{"by": "\\u006dember 7"}'},
        "not JSON of a database",
    ),
    "a member as a text": ("activity", {"undo": '{"member_id": "7"}'}, "activity.undo"),
    "no JSON": ("activity", {"undo": "{"}, "for type json"),
    "an account's deletion": ("work_due", {"stream": "deletion"}, "work_due"),
    "rows that are being written": ("old_rows", {"kept_at": None}, "old_rows.rows are not"),
    "a character of no text": ("card_list", {"name": "a\0b"}, "card_list.name"),
    "nothing where something is": ("seller", {"name": None}, "seller.name is empty"),
    "an amount beyond all": ("account", {"minimum_move": Decimal(10) ** 20}, "minimum_move"),
    "too many copies": ("card", {"quantity": 2**40}, "card.quantity"),
    "a place that no box has": ("card_location", {"slot": 0}, "refuses card_location of"),
    "more left than there were": ("lot", {"remaining": 2**30}, "refuses lot of"),
    "a mark of no kind": ("pull_mark", {"kind": "sold"}, "refuses pull_mark of"),
    "an amount finer than any": (
        "order_item",
        {"unit_price": Decimal("99999999999.99")},
        "refuses order_item of",
    ),
    "the year 1": (
        "activity",
        {"created_at": datetime(1, 1, 1, tzinfo=UTC)},
        "activity.created_at",
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.first(4)
async def test_what_no_export_writes_is_refused_in_a_sentence(
    archive, victim, elsewhere, refused, what
):
    table, cells, sentence = FORGERIES[what]
    before = others(elsewhere)
    said = await refused(forged(archive, {table: changed(archive, table, **cells)}))
    assert sentence in said, said
    assert others(elsewhere, before) == before


async def test_a_column_of_another_type_two_shops_and_years_of_history_are_refused(
    archive, elsewhere, refused
):
    before = others(elsewhere)
    rows = table_of(archive, "card_list")
    texts = rows.with_columns(pl.col("id").cast(pl.String))
    assert "card_list.id is String" in await refused(forged(archive, {"card_list": texts}))
    more = rows.with_columns(admin=pl.lit(value=True))
    assert "card_list has admin" in await refused(forged(archive, {"card_list": more}))
    assert "lacks the column name" in await refused(
        forged(archive, {"card_list": rows.drop("name")})
    )
    seller = table_of(archive, "seller")
    two = pl.concat([seller, seller])
    assert "seller has 2 rows" in await refused(forged(archive, {"seller": two}))
    assert "card_list has two rows" in await refused(
        forged(archive, {"card_list": pl.concat([rows, rows])})
    )
    history = table_of(archive, "price_observation").head(1)
    months = pl.concat(
        [
            history.with_columns(
                pl.lit(NOW - timedelta(days=31 * n), history.schema["observed_at"]).alias(
                    "observed_at"
                )
            )
            for n in range(1_000)
        ]
    )
    assert "120 months" in await refused(forged(archive, {"price_observation": months}))
    assert others(elsewhere, before) == before


async def test_a_credential_of_a_shop_here_does_not_come_in(archive, victim, elsewhere, refused):
    """It would let its owner into the other shop, or keep this one's own agent out."""
    seller, _ = victim
    before = others(elsewhere)
    taken = "\\x" + hashlib.sha256(seller.api_key.encode()).hexdigest()
    keys = changed(archive, "api_key", key_hash=taken).head(1)
    said = await refused(forged(archive, {"api_key": keys}))
    assert "a row of api_key is here already" in said
    assert others(elsewhere, before) == before


async def test_plan_credits_and_owners_are_the_operators_word(archive, elsewhere, cardsync):
    """The archive says that everybody is an owner of a shop with a plan and credits."""
    rich = changed(archive, "account", plan="enterprise", credit_balance=1_000_000, suspended=True)
    seller = table_of(archive, "seller")["email"][0]
    path = forged(archive, {"account": rich, "member": changed(archive, "member", role="owner")})
    nobody = await cardsync(elsewhere, "import", path, "--owner", "nobody@shop.example")
    assert (nobody.exit_code, "name the shop's owners by --owner" in nobody.stderr) == (1, True)
    done = await cardsync(elsewhere, "import", path, "--plan", "free")
    assert done.exit_code == 0, done.output
    there = int(done.output.split("is seller ")[1].split()[0])
    [account] = await elsewhere.sql(
        there, "SELECT plan, credit_balance, suspended FROM account WHERE seller_id = :id", id=there
    )
    assert account == {"plan": "free", "credit_balance": 0, "suspended": False}
    ledger = "SELECT FROM credit_transaction WHERE seller_id = :id"
    assert await elsewhere.sql(there, ledger, id=there) == []
    members = await elsewhere.sql(
        0, "SELECT email, role FROM member WHERE seller_id = :id", id=there
    )
    assert {row["email"]: row["role"] for row in members} == {
        seller: "owner",
        f"bea-{seller}": "staff",
    }
    await asyncio.to_thread(erased, elsewhere, there)


def test_a_sequence_far_behind_is_set_and_not_drawn(archive, elsewhere, cardsync):
    """A hundred million numbers, one by one, take minutes."""
    newest = 400_000_000
    path = forged(archive, {"saved_search": changed(archive, "saved_search", id=newest)})
    settings_ = elsewhere.settings
    done = run(settings_, path)
    assert done.exit_code == 0, done.output
    with psycopg.connect(libpq_url(settings_.migration_database_url, role=None)) as owner:
        [drawn] = owner.execute(
            "SELECT nextval(pg_get_serial_sequence('saved_search', 'id'))"
        ).fetchone()
    assert newest < drawn < newest + 1_000
    erased(elsewhere, done.output.split("is seller ")[1].split()[0])


def run(settings_, path, *options):
    command = ["admin", "seller", "import", str(path), *options]
    return CliRunner().invoke(program, command, env=environment(settings_))


def erased(service, seller_id):
    command = ["admin", "seller", "delete", str(seller_id), "--yes"]
    gone = CliRunner().invoke(program, command, env=environment(service.settings))
    assert gone.exit_code == 0, gone.output


NUMBERS = [-FAR, -200_001, -1, 0, 1, 2, 200_001, 2**31, 2**53, FAR, 2**63 - 1]
TEXTS = [
    "", "\0", "\\N", "a\tb\nc", "member 200001", "key 1", "accepted/u1/a.csv", "../u1/a",
    '{"member_id": 200001}', '{"member_id":200001}', '{"by": "member 200001"}', "[", "null",
    "deletion", "left_objects", "owner", "operator", "http://127.0.0.1/a", "\\x00", "{1,2}",
    "x" * 5_000, "=?utf-8?q?=0ABcc:_x?=", "'; DROP TABLE seller; --",
]  # fmt: skip
MOMENTS = [datetime(year, 1, 1, tzinfo=UTC) for year in (1, 1000, 1969, 2026, 2027, 9999)]
TAKEN = sorted(
    {table.name for table in metadata.sorted_tables if "seller_id" in table.columns}
    - set(archive_tables.LEFT_OUT)
    | {"seller", "product"}
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(TAKEN), st.integers(0, 60), st.integers(0, 60), st.sampled_from("cdnt")
    ),
    min_size=1,
    max_size=3,
)


def a_forgery(path, changes):
    """Change cells, double rows, drop columns, or put a table in the place of another."""
    tables = {}
    for name, place, value, how in changes:
        rows = tables.get(name)
        rows = table_of(path, name) if rows is None else rows
        if not rows.width:
            continue
        column = rows.columns[place % rows.width]
        kind = rows.schema[column]
        match how, kind:
            case "d", _:
                rows = pl.concat([rows, rows])
            case "n", _:
                rows = rows.drop(column)
            case "t", _ if value % 3 == 0:
                rows = table_of(path, TAKEN[value % len(TAKEN)])
            case _, pl.Int64():
                rows = rows.with_columns(pl.lit(NUMBERS[value % len(NUMBERS)], kind).alias(column))
            case _, pl.String():
                rows = rows.with_columns(pl.lit(TEXTS[value % len(TEXTS)], kind).alias(column))
            case _, pl.Datetime():
                moment = MOMENTS[value % len(MOMENTS)]
                rows = rows.with_columns(pl.lit(moment, kind).alias(column))
            case _:
                rows = rows.with_columns(pl.lit(None, kind).alias(column))
        tables[name] = rows
    return forged(path, tables)


@schedule.deeper
def test_no_archive_changes_a_row_of_another_shop(archive, victim, elsewhere):
    """Only whole imports show what reaches the database."""
    before = others(elsewhere)

    @settings(
        max_examples=schedule.examples(6, schedule.count("HOSTILE_ARCHIVES", 300, 12)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(CHANGES)
    def holds(changes):
        path = a_forgery(archive, changes)
        judged = run(elsewhere.settings, path, "--dry-run")
        done = run(elsewhere.settings, path)
        for result in (judged, done):
            assert result.exit_code in (0, 1), result.output
            assert result.exception is None or isinstance(result.exception, SystemExit), (
                result.exception
            )
        assert judged.exit_code == done.exit_code, (judged.output, done.output)
        assert others(elsewhere, before) == before
        if done.exit_code == 0:
            there = done.output.split("is seller ")[1].split()[0]
            erased(elsewhere, there)

    holds()

"""Whoever made an archive may be hostile: it changes nothing of any other shop, and what is wrong
with it is a sentence, also of the dry run.
"""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime, timedelta

import msgspec
import polars as pl
import psycopg
import pytest

from browsers import joined
from builders import SellerBuilder
from cardsync.database.urls import libpq_url
from cardsync.moving import archive_file

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


@pytest.fixture
async def archive(a_seller, service, cardsync, tmp_path):
    seller = await a_seller()
    await joined(seller, f"bea-{seller.email}")
    path = tmp_path / "shop.zip"
    made = await cardsync(service, "export", seller.id, path)
    assert made.exit_code == 0, made.output
    return path


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


def a_passkey(path, member_id: int) -> pl.DataFrame:
    empty = table_of(path, "passkey")
    row = {
        "id": 1,
        "member_id": member_id,
        "name": "mine",
        "credential_id": "\\x0102",
        "public_key": "\\x0304",
        "sign_count": 0,
        "created_at": NOW,
        "last_used_at": None,
    }
    return pl.DataFrame([row], schema=empty.schema)


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
    said = await refused(forged(archive, {"passkey": a_passkey(archive, sign * member)}))
    assert "passkey.member_id" in said
    assert await elsewhere.sql(0, "SELECT FROM passkey WHERE member_id = :m", m=member) == []


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

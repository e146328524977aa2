"""Clients of assistants, the grants that owners give them, and their codes and tokens."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import shared_table, tenant_table

revision = "0067"
down_revision = "0066"

OF_CODE = (
    "of_seller bigint, of_member bigint, its_hash bytea, its_client text, its_redirect text,"
    " its_challenge text, its_audience text, its_scopes text, its_buyers bigint"
)
# The name, what the proof is of (access/sealed.py), further arguments, and what is done.
SEALED = (
    (
        "add_oauth_code",
        OF_CODE,
        "its_end timestamptz",
        """
    INSERT INTO oauth_code (seller_id, member_id, code_hash, client_id, redirect_uri,
           code_challenge, audience, scopes, buyer_data, expires_at)
    VALUES (of_seller, of_member, its_hash, its_client, its_redirect, its_challenge, its_audience,
           string_to_array(its_scopes, ','), its_buyers = 1, its_end)
    RETURNING seller_id INTO made""",
    ),
    (
        "add_grant_token",
        "of_seller bigint, of_grant bigint, its_hash bytea, its_scopes text",
        "its_start timestamptz, its_end timestamptz",
        """
    INSERT INTO access_token (seller_id, grant_id, member_id, audience, buyer_data, name, scopes,
           token_hash, created_at, expires_at)
    SELECT g.seller_id, g.id, g.member_id, g.audience, g.buyer_data, g.name,
           string_to_array(its_scopes, ','), its_hash, its_start, its_end
      FROM oauth_grant g
      JOIN member m ON m.id = g.member_id AND m.seller_id = g.seller_id AND m.role = 'owner'
     WHERE g.seller_id = of_seller AND g.id = of_grant AND g.revoked_at IS NULL
       AND string_to_array(its_scopes, ',') <@ g.scopes
       FOR NO KEY UPDATE OF g FOR SHARE OF m
    RETURNING id INTO made""",
    ),
    (
        "add_refresh_token",
        "of_seller bigint, of_grant bigint, its_hash bytea",
        "its_end timestamptz",
        """
    INSERT INTO refresh_token (seller_id, grant_id, token_hash, expires_at)
    VALUES (of_seller, of_grant, its_hash, its_end)
    RETURNING grant_id INTO made""",
    ),
)
# These ask for no proof: they start from a row that was made with one. Each returns the
# grant, or null for what was used before.
REDEEM = """
CREATE FUNCTION redeem_oauth_code(its_hash bytea, at timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    UPDATE oauth_code SET used_at = at
     WHERE code_hash = its_hash AND used_at IS NULL AND expires_at > at;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO oauth_grant (seller_id, member_id, client_id, name, host, audience, scopes,
           buyer_data, created_at)
    SELECT c.seller_id, c.member_id, c.client_id, k.name, k.host, c.audience, c.scopes,
           c.buyer_data, at
      FROM oauth_code c JOIN oauth_client k ON k.client_id = c.client_id
     WHERE c.code_hash = its_hash
    RETURNING id INTO made;
    UPDATE oauth_code SET grant_id = made WHERE code_hash = its_hash;
    RETURN made;
END $$
"""
USE = """
CREATE FUNCTION use_refresh_token(its_hash bytea, at timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE refresh_token SET used_at = at WHERE token_hash = its_hash AND used_at IS NULL
    RETURNING grant_id
$$
"""
END = """
CREATE FUNCTION end_oauth_grant(of_seller bigint, its_id bigint, at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE oauth_grant SET revoked_at = at
     WHERE seller_id = of_seller AND revoked_at IS NULL AND (its_id IS NULL OR id = its_id);
    UPDATE access_token SET revoked_at = at
     WHERE seller_id = of_seller AND revoked_at IS NULL AND grant_id IS NOT NULL
       AND (its_id IS NULL OR grant_id = its_id)
$$
"""
# Grants of a member who is no owner any more open nothing.
SET_ROLE = """
CREATE OR REPLACE FUNCTION set_member_role(
    of_seller bigint, its_id bigint, its_role text, proof bytea) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM must_be_sealed('set_member_role' || '|' || of_seller::text || '|' || its_id::text
        || '|' || encode(convert_to(its_role, 'UTF8'), 'hex'), proof);
    UPDATE member SET role = its_role WHERE seller_id = of_seller AND id = its_id
    RETURNING id INTO made;
    IF its_role <> 'owner' THEN
        UPDATE access_token SET revoked_at = now()
         WHERE seller_id = of_seller AND member_id = its_id AND revoked_at IS NULL;
    END IF;
    RETURN made;
END $$
"""


def run(statement: str) -> None:
    op.get_bind().connection.driver_connection.execute(statement)


def give(function: str) -> None:
    run(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    run(f"GRANT EXECUTE ON FUNCTION {function} TO cardsync_app")


def told(argument: str) -> str:
    """A value as the proof has it (access/sealed.py)."""
    name, kind = argument.split()
    return {
        "bigint": f"{name}::text",
        "text": f"encode(convert_to({name}, 'UTF8'), 'hex')",
        "bytea": f"encode({name}, 'hex')",
    }[kind]


def text(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=given)


def texts(name: str) -> sa.Column:
    return sa.Column(name, postgresql.ARRAY(sa.Text()), nullable=False)


def moment(name: str, *, given: bool = False, default: str | None = None) -> sa.Column:
    server_default = sa.text(default) if default else None
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=server_default, nullable=given
    )


def number(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=given)


def of_seller(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["seller_id"], ["seller.id"], name=op.f(f"fk_{table}_seller_id"), ondelete="CASCADE"
    )


def upgrade() -> None:
    op.create_table(
        "oauth_client",
        text("client_id"),
        text("known_by"),
        text("name"),
        text("host", given=True),
        texts("redirect_uris"),
        moment("created_at"),
        moment("fetched_at", given=True),
        moment("first_used_at", given=True),
        moment("expires_at"),
        sa.PrimaryKeyConstraint("client_id", name=op.f("pk_oauth_client")),
    )
    op.create_index(op.f("ix_oauth_client_expires_at"), "oauth_client", ["expires_at"])
    op.create_table(
        "oauth_code",
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("member_id", sa.BigInteger(), nullable=False),
        *map(text, ("client_id", "redirect_uri", "code_challenge", "audience")),
        texts("scopes"),
        sa.Column("buyer_data", sa.Boolean(), nullable=False),
        moment("expires_at"),
        moment("used_at", given=True),
        sa.Column("grant_id", sa.BigInteger(), nullable=True),
        of_seller("oauth_code"),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_oauth_code")),
    )
    op.create_table(
        "oauth_grant",
        number("seller_id"),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("member_id", sa.BigInteger(), nullable=False),
        *map(text, ("client_id", "name")),
        text("host", given=True),
        text("audience"),
        texts("scopes"),
        sa.Column("buyer_data", sa.Boolean(), nullable=False),
        moment("created_at", default="now()"),
        moment("last_used_at", given=True),
        moment("revoked_at", given=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_oauth_grant")),
    )
    op.create_table(
        "refresh_token",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("grant_id", sa.BigInteger(), nullable=False),
        moment("expires_at"),
        moment("used_at", given=True),
        of_seller("refresh_token"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_refresh_token")),
    )
    for column in (
        sa.Column("grant_id", sa.BigInteger(), nullable=True),
        sa.Column("member_id", sa.BigInteger(), nullable=True),
        text("audience", given=True),
        sa.Column("buyer_data", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        moment("last_used_at", given=True),
    ):
        op.add_column("access_token", column)
    op.create_foreign_key(
        op.f("fk_access_token_member_id"),
        "access_token",
        "member",
        ["member_id"],
        ["id"],
        ondelete="CASCADE",
    )
    op.create_index(op.f("ix_access_token_member_id"), "access_token", ["member_id"])
    for table in ("access_token", "refresh_token"):
        op.create_foreign_key(
            op.f(f"fk_{table}_seller_id_grant_id"),
            table,
            "oauth_grant",
            ["seller_id", "grant_id"],
            ["seller_id", "id"],
            ondelete="CASCADE",
        )
        op.create_index(f"ix_{table}_grant", table, ["seller_id", "grant_id"])
    for table in ("oauth_code", "refresh_token"):
        for column in ("seller_id", "expires_at"):
            op.create_index(op.f(f"ix_{table}_{column}"), table, [column])
    for statement in (
        *shared_table("oauth_client"),
        *shared_table("oauth_code"),
        *shared_table("refresh_token"),
        *tenant_table("oauth_grant"),
    ):
        run(statement)
    for table in ("oauth_code", "refresh_token", "oauth_grant"):
        run(f"REVOKE INSERT, UPDATE ON {table} FROM cardsync_app")
    for table in ("oauth_grant", "access_token"):
        run(f"GRANT UPDATE (last_used_at) ON {table} TO cardsync_app")
    for name, sealed, more, body in SEALED:
        arguments = f"{sealed}, proof bytea, {more}"
        parts = " || '|' || ".join([f"'{name}'", *map(told, sealed.split(", "))])
        run(f"""
CREATE FUNCTION {name}({arguments}) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM must_be_sealed({parts}, proof);{body};
    RETURN made;
END $$
""")
        give(f"{name}({', '.join(each.split()[1] for each in arguments.split(', '))})")
    run(REDEEM)
    give("redeem_oauth_code(bytea, timestamptz)")
    run(USE)
    give("use_refresh_token(bytea, timestamptz)")
    run(SET_ROLE)
    run(END)
    give("end_oauth_grant(bigint, bigint, timestamptz)")

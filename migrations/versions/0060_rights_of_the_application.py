"""The application's role loses the right to make members, credentials and operators. Functions of
the owning role write them, each for a proof that takes the installation's seal.
"""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"

# What may still be written directly: a column that opens nothing. A row lock asks for one, too.
COLUMNS = {
    "member": "name",
    "api_key": "name",
    "member_session": "last_seen_at",
    "passkey": "sign_count, last_used_at",
}
TAKEN = ("member", "api_key", "access_token", "member_session", "invitation", "passkey")

IS_SEALED = """
CREATE FUNCTION is_sealed(told text, proof bytea) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM identity_seal s
         WHERE sha256(s.seal || sha256(s.seal || convert_to(told, 'UTF8'))) = proof
    )
$$
"""
MUST_BE_SEALED = """
CREATE FUNCTION must_be_sealed(told text, proof bytea) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF is_sealed(told, proof) IS NOT TRUE THEN
        RAISE insufficient_privilege USING MESSAGE = 'no process of this installation asks for this',
              HINT = 'a process with another SECRET_KEY: run cardsync migrate with it';
    END IF;
END $$
"""

# The name, what the proof is of, further arguments, what is returned, and what is done.
FUNCTIONS = (
    (
        "put_member",
        "of_seller bigint, its_email text, its_role text, its_name text, its_password text",
        "",
        "bigint",
        """
    INSERT INTO member AS m (seller_id, email, name, role, password_hash)
    VALUES (of_seller, its_email, its_name, its_role, nullif(its_password, ''))
        ON CONFLICT (lower(email)) DO UPDATE SET role = excluded.role
     WHERE m.seller_id = excluded.seller_id AND m.password_hash IS NULL
       AND excluded.password_hash IS NULL
    RETURNING m.id INTO made""",
    ),
    (
        "set_member_role",
        "of_seller bigint, its_id bigint, its_role text",
        "",
        "bigint",
        """
    UPDATE member SET role = its_role WHERE seller_id = of_seller AND id = its_id
    RETURNING id INTO made""",
    ),
    (
        "set_member_password",
        "its_id bigint, its_password text",
        "",
        "bigint",
        """
    UPDATE member SET password_hash = its_password WHERE id = its_id RETURNING id INTO made""",
    ),
    (
        "put_invitation",
        "of_member bigint, its_hash bytea",
        "its_start timestamptz, its_end timestamptz",
        "bigint",
        """
    INSERT INTO invitation (member_id, seller_id, token_hash, created_at, expires_at)
    SELECT m.id, m.seller_id, its_hash, its_start, its_end FROM member m WHERE m.id = of_member
        ON CONFLICT (member_id) DO UPDATE SET token_hash = excluded.token_hash,
           created_at = excluded.created_at, expires_at = excluded.expires_at;
    made := of_member""",
    ),
    (
        "add_member_session",
        "of_member bigint, its_hash bytea",
        "its_start timestamptz, its_end timestamptz",
        "bigint",
        """
    INSERT INTO member_session (seller_id, member_id, token_hash, created_at, last_seen_at,
           expires_at)
    SELECT m.seller_id, m.id, its_hash, its_start, its_start, its_end
      FROM member m WHERE m.id = of_member
    RETURNING member_session.id INTO made""",
    ),
    (
        "add_passkey",
        "of_member bigint, its_name text, its_credential bytea, its_key bytea",
        "its_count bigint, its_start timestamptz",
        "bigint",
        """
    INSERT INTO passkey (seller_id, member_id, name, credential_id, public_key, sign_count,
           created_at)
    SELECT m.seller_id, m.id, its_name, its_credential, its_key, its_count, its_start
      FROM member m WHERE m.id = of_member
    RETURNING passkey.id INTO made""",
    ),
    (
        "add_api_key",
        "of_seller bigint, its_name text, its_hash bytea",
        "",
        "bigint",
        """
    INSERT INTO api_key (seller_id, name, key_hash) VALUES (of_seller, its_name, its_hash)
    RETURNING id INTO made""",
    ),
    (
        "add_access_token",
        "of_seller bigint, its_name text, its_hash bytea, its_scopes text",
        "its_start timestamptz, its_end timestamptz",
        "bigint",
        """
    INSERT INTO access_token (seller_id, name, scopes, token_hash, created_at, expires_at)
    VALUES (of_seller, its_name, string_to_array(its_scopes, ','), its_hash, its_start, its_end)
    RETURNING id INTO made""",
    ),
)
# A credential that ends stays ended, so no proof is asked.
END = """
CREATE FUNCTION end_{table}(of_seller bigint, its_id bigint, at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE {table} SET revoked_at = at
     WHERE seller_id = of_seller AND revoked_at IS NULL AND (its_id IS NULL OR id = its_id)
$$
"""


def run(statement: str) -> None:
    op.get_bind().connection.driver_connection.execute(statement)


def told(argument: str) -> str:
    """A value as the proof has it (access/sealed.py)."""
    name, kind = argument.split()
    return {
        "bigint": f"{name}::text",
        "text": f"encode(convert_to({name}, 'UTF8'), 'hex')",
        "bytea": f"encode({name}, 'hex')",
    }[kind]


def upgrade() -> None:
    op.create_table(
        "identity_seal",
        sa.Column("seal", sa.LargeBinary(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seal", name=op.f("pk_identity_seal")),
    )
    run(IS_SEALED)
    give("is_sealed(text, bytea)")
    run(MUST_BE_SEALED)
    run("REVOKE ALL ON FUNCTION must_be_sealed(text, bytea) FROM PUBLIC")
    for name, sealed, more, returned, body in FUNCTIONS:
        arguments = ", ".join(filter(None, [sealed, "proof bytea", more]))
        parts = " || '|' || ".join([f"'{name}'", *map(told, sealed.split(", "))])
        run(f"""
CREATE FUNCTION {name}({arguments}) RETURNS {returned}
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM must_be_sealed({parts}, proof);{body};
    RETURN made;
END $$
""")
        give(f"{name}({', '.join(each.split()[1] for each in arguments.split(', '))})")
    for table in ("api_key", "access_token"):
        run(END.format(table=table))
        give(f"end_{table}(bigint, bigint, timestamptz)")
    for table in TAKEN:
        run(f"REVOKE INSERT, UPDATE ON {table} FROM cardsync_app")
    for table, columns in COLUMNS.items():
        run(f"GRANT UPDATE ({columns}) ON {table} TO cardsync_app")
    run("REVOKE INSERT, UPDATE, DELETE ON installation_operator FROM cardsync_app")


def give(function: str) -> None:
    run(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    run(f"GRANT EXECUTE ON FUNCTION {function} TO cardsync_app")

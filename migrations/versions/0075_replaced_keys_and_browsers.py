"""A key may take the place of another, which works until the new one is used or its time is over; and
a session says which browser it is of.
"""

import sqlalchemy as sa
from alembic import op

revision = "0075"
down_revision = "0074"

REPLACE = """
CREATE FUNCTION replace_api_key(of_seller bigint, its_id bigint, its_hash bytea, proof bytea,
    its_end timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM must_be_sealed('replace_api_key' || '|' || of_seller::text || '|' || its_id::text
        || '|' || encode(its_hash, 'hex'), proof);
    UPDATE api_key SET ends_at = its_end
     WHERE seller_id = of_seller AND id = its_id AND revoked_at IS NULL AND ends_at IS NULL;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO api_key (seller_id, name, key_hash, replaces)
    SELECT k.seller_id, k.name, its_hash, k.id FROM api_key k WHERE k.id = its_id
    RETURNING id INTO made;
    RETURN made;
END $$
"""
# A key that ends stays ended, so no proof is asked.
SETTLE = """
CREATE FUNCTION settle_api_key(of_seller bigint, its_id bigint, at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE api_key SET revoked_at = least(at, ends_at)
     WHERE seller_id = of_seller AND revoked_at IS NULL
       AND id = (SELECT replaces FROM api_key WHERE seller_id = of_seller AND id = its_id);
    UPDATE api_key SET replaces = NULL WHERE seller_id = of_seller AND id = its_id
$$
"""


def run(statement: str) -> None:
    op.get_bind().connection.driver_connection.execute(statement)


def give(function: str) -> None:
    run(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    run(f"GRANT EXECUTE ON FUNCTION {function} TO cardsync_app")


def upgrade() -> None:
    op.add_column("api_key", sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("api_key", sa.Column("replaces", sa.BigInteger(), nullable=True))
    op.add_column("member_session", sa.Column("browser", sa.Text(), nullable=True))
    run("GRANT UPDATE (browser) ON member_session TO cardsync_app")
    run(REPLACE)
    give("replace_api_key(bigint, bigint, bytea, bytea, timestamptz)")
    run(SETTLE)
    give("settle_api_key(bigint, bigint, timestamptz)")

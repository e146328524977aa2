"""A move of a price says what it came with, and counts only while that stands; and an owner marks a
key as a script of the shop's own, whose prices are not weighed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0090"
down_revision = "0089"

# The mark is of the key's seller alone, and a key in the place of another has it, too.
MARK = """
CREATE FUNCTION mark_api_key(of_seller bigint, its_id bigint, is_own integer, proof bytea)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    marked bigint;
BEGIN
    PERFORM must_be_sealed('mark_api_key' || '|' || of_seller::text || '|' || its_id::text
        || '|' || is_own::text, proof);
    UPDATE api_key SET own_script = is_own = 1
     WHERE seller_id = of_seller AND id = its_id AND revoked_at IS NULL
    RETURNING id INTO marked;
    RETURN marked;
END $$
"""
REPLACE = """
CREATE OR REPLACE FUNCTION replace_api_key(of_seller bigint, its_id bigint, its_hash bytea,
    proof bytea, its_end timestamptz) RETURNS bigint
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
    INSERT INTO api_key (seller_id, name, key_hash, replaces{columns})
    SELECT k.seller_id, k.name, its_hash, k.id{values} FROM api_key k WHERE k.id = its_id
    RETURNING id INTO made;
    RETURN made;
END $$
"""


def run(statement: str) -> None:
    op.get_bind().connection.driver_connection.execute(statement)


def upgrade() -> None:
    op.add_column(
        "automated_move", sa.Column("source", sa.Text(), server_default="", nullable=False)
    )
    op.drop_constraint("pk_automated_move", "automated_move", type_="primary")
    op.create_primary_key(
        "pk_automated_move", "automated_move", ["seller_id", "card_id", "began_at", "source"]
    )
    op.add_column(
        "api_key", sa.Column("own_script", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    run(MARK)
    run("REVOKE ALL ON FUNCTION mark_api_key(bigint, bigint, integer, bytea) FROM PUBLIC")
    run("GRANT EXECUTE ON FUNCTION mark_api_key(bigint, bigint, integer, bytea) TO cardsync_app")
    run(REPLACE.format(columns=", own_script", values=", k.own_script"))


def downgrade() -> None:
    run(REPLACE.format(columns="", values=""))
    run("DROP FUNCTION mark_api_key(bigint, bigint, integer, bytea)")
    op.drop_column("api_key", "own_script")
    op.execute("DELETE FROM automated_move WHERE source <> ''")
    op.drop_constraint("pk_automated_move", "automated_move", type_="primary")
    op.create_primary_key(
        "pk_automated_move", "automated_move", ["seller_id", "card_id", "began_at"]
    )
    op.drop_column("automated_move", "source")

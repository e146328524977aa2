"""A member changes the own address for mail, and the one before it gets a letter."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"

# Null where another has the address.
SET_EMAIL = """
CREATE FUNCTION set_member_email(of_seller bigint, its_id bigint, its_email text, proof bytea)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM must_be_sealed('set_member_email' || '|' || of_seller::text || '|' || its_id::text
        || '|' || encode(convert_to(its_email, 'UTF8'), 'hex'), proof);
    UPDATE member SET email = its_email WHERE seller_id = of_seller AND id = its_id
    RETURNING id INTO made;
    RETURN made;
EXCEPTION WHEN unique_violation THEN
    RETURN NULL;
END $$
"""
NAMED = "set_member_email(bigint, bigint, text, bytea)"


def run(statement: str) -> None:
    op.get_bind().connection.driver_connection.execute(statement)


def upgrade() -> None:
    op.add_column("notice_mail", sa.Column("sent_to", sa.Text(), nullable=True))
    run(SET_EMAIL)
    run(f"REVOKE ALL ON FUNCTION {NAMED} FROM PUBLIC")
    run(f"GRANT EXECUTE ON FUNCTION {NAMED} TO cardsync_app")


def downgrade() -> None:
    run(f"DROP FUNCTION {NAMED}")
    op.drop_column("notice_mail", "sent_to")

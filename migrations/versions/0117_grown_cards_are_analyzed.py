"""The application may analyze the table of cards once it has grown."""

from alembic import op

revision = "0117"
down_revision = "0116"

# `relpages` is the size of the table when it was last analyzed or vacuumed. A tenth is also
# autovacuum's threshold, which autovacuum checks once a minute. A smaller growth is left to
# autovacuum, because a plan that reads 1,000 pages too many takes a few milliseconds. Another
# session that has the lock already analyzes or vacuums the table.
ANALYZE_GROWN_CARDS = """
CREATE FUNCTION analyze_grown_cards() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    known integer := (SELECT relpages FROM pg_class WHERE oid = 'card'::regclass);
BEGIN
    IF pg_relation_size('card') / current_setting('block_size')::integer > known * 1.1 + 1000 THEN
        ANALYZE (SKIP_LOCKED) card;
    END IF;
END $$
"""


def upgrade() -> None:
    op.execute(ANALYZE_GROWN_CARDS)
    op.execute("REVOKE ALL ON FUNCTION analyze_grown_cards() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION analyze_grown_cards() TO cardsync_app")


def downgrade() -> None:
    op.execute("DROP FUNCTION analyze_grown_cards()")

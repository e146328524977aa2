"""The application may analyze the table of cards once it has grown."""

from alembic import op

revision = "0117"
down_revision = "0116"

# `relpages` is the size of the table when it was last analyzed or vacuumed. A tenth is also
# autovacuum's threshold, which autovacuum checks once a minute. A smaller growth is left to
# autovacuum, because a plan that reads 1,000 pages too many takes a few milliseconds. But if the
# statistics list all sellers and not this one, the planner expects one card, and joins by reading
# all of the seller's cards for each card of a page. Fewer than a thousandth of all cards might not
# be in the next sample either. Another session that has the lock already analyzes or vacuums the
# table.
ANALYZE_GROWN_CARDS = """
CREATE FUNCTION analyze_grown_cards(_seller bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    known integer;
    least real;
    is_unknown boolean := (
        SELECT _seller <> ALL (CAST(CAST(most_common_vals AS text) AS bigint[]))
               AND (SELECT sum(part) > 0.999 FROM unnest(most_common_freqs) part)
          FROM pg_stats
         WHERE schemaname = 'public' AND tablename = 'card' AND attname = 'seller_id');
BEGIN
    SELECT relpages, greatest(1000, reltuples / 1000) INTO known, least
      FROM pg_class WHERE oid = 'card'::regclass;
    IF pg_relation_size('card') / current_setting('block_size')::integer > known * 1.1 + 1000
       OR is_unknown AND (SELECT count(*) FROM card WHERE seller_id = _seller) > least THEN
        ANALYZE (SKIP_LOCKED) card;
    END IF;
END $$
"""


def upgrade() -> None:
    op.execute(ANALYZE_GROWN_CARDS)
    op.execute("REVOKE ALL ON FUNCTION analyze_grown_cards(bigint) FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION analyze_grown_cards(bigint) TO cardsync_app")


def downgrade() -> None:
    op.execute("DROP FUNCTION analyze_grown_cards(bigint)")

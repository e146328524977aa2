"""Two workers that need the same new month of price history make its partition once.

`to_regclass` answers from a cache that the lock does not refresh, so the worker that waited tried
to make the table again. A query of `pg_class` sees what was committed meanwhile.
"""

from alembic import op

revision = "0020"
down_revision = "0019"

ENSURE_PARTITION = """
CREATE OR REPLACE FUNCTION ensure_price_observation_partition(month date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    first date := date_trunc('month', month)::date;
    scope text := $q$seller_id = nullif(current_setting('app.seller_id', true), '')::bigint$q$;
    part text := 'price_observation_' || to_char(first, 'YYYYMM');
BEGIN
    IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(hashtext(part));
    PERFORM FROM pg_class WHERE relname = part AND relnamespace = 'public'::regnamespace;
    IF FOUND THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF price_observation FOR VALUES FROM (%L) TO (%L)',
                   part,
                   to_char(first, 'YYYY-MM-DD') || ' 00:00:00+00',
                   to_char(first + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', part, scope, scope);
END $$
"""


def upgrade() -> None:
    op.execute(ENSURE_PARTITION)

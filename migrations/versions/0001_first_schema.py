"""The first schema: accounts, catalog, inventory, pricing, sync, and the job queue; row-level
security on every tenant table.
"""

import sqlalchemy as sa
from alembic import op
from procrastinate.schema import SchemaManager
from sqlalchemy import Text
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

TENANT = (
    "account", "activity", "card", "custom_listing", "line_snapshot", "price_change", "price_observation", "price_run",
    "pricing_rule", "sync_cycle", "sync_state", "upload",
)  # fmt: skip
GLOBAL = ("agent_seen", "api_key", "catalog_import", "member", "product", "seller", "work_due")

ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cardsync_app') THEN
        BEGIN
            CREATE ROLE cardsync_app NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- roles belong to the whole server: another database's migration made it just now
        END;
    END IF;
    -- The role that signs in acts as it; who made the role may still lack the right to act as it (PostgreSQL 16 on).
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        BEGIN
            EXECUTE format('GRANT cardsync_app TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN
            NULL;  -- granted beforehand by whoever owns the role
        END;
    END IF;
END $$
"""

# No sub-select in the policy: the form that also works on tables spread over nodes by seller.
POLICY = """
CREATE POLICY tenant ON {table}
 USING (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
 WITH CHECK (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
"""

# Partitions are made and dropped by the owner's right, whatever role asks, and only of this one
# table.
ENSURE_PARTITION = """
CREATE FUNCTION ensure_price_observation_partition(month date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    first date := date_trunc('month', month)::date;
    scope text := $q$seller_id = nullif(current_setting('app.seller_id', true), '')::bigint$q$;
    part text := 'price_observation_' || to_char(first, 'YYYYMM');
BEGIN
    IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(hashtext(part));
    IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF price_observation FOR VALUES FROM (%L) TO (%L)', part,
                   to_char(first, 'YYYY-MM-DD') || ' 00:00:00+00',
                   to_char(first + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', part, scope, scope);
END $$
"""
DROP_PARTITIONS = """
CREATE FUNCTION drop_price_observation_partitions(before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    part record;
    dropped integer := 0;
BEGIN
    -- Nobody loses history younger than a month by a wrong argument.
    IF before > current_date - 31 THEN RAISE EXCEPTION 'history younger than a month is not dropped'; END IF;
    FOR part IN SELECT c.oid::regclass AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                 WHERE i.inhparent = 'price_observation'::regclass
                   AND c.relname < 'price_observation_' || to_char(date_trunc('month', before), 'YYYYMM')
    LOOP
        EXECUTE format('DROP TABLE %s', part.name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$
"""

GRANT_QUEUE = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'procrastinate%' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO cardsync_app', name);
    END LOOP;
END $$
"""


def run(statement: str) -> None:
    """As it stands: no bound parameters, no % or : of ours to interpret."""
    op.get_bind().connection.driver_connection.execute(statement)


def upgrade() -> None:
    run(ROLE)
    create_tables()
    run("CREATE SEQUENCE card_id_block")
    run("GRANT USAGE ON SCHEMA public TO cardsync_app")
    run("GRANT USAGE ON SEQUENCE card_id_block TO cardsync_app")
    # Table by table: one statement for several fails on tables that are spread over nodes.
    for table in (*TENANT, *GLOBAL):
        run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO cardsync_app")
    for table in TENANT:
        run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        run(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        run(POLICY.format(table=table))
    run(ENSURE_PARTITION)
    run(DROP_PARTITIONS)
    for function in (
        "ensure_price_observation_partition(date)",
        "drop_price_observation_partitions(date)",
    ):
        run(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
        run(f"GRANT EXECUTE ON FUNCTION {function} TO cardsync_app")
    # Procrastinate's own schema, of the version that requirements/run.txt pins.
    run(SchemaManager.get_schema())
    run(GRANT_QUEUE)
    run("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO cardsync_app")
    run("GRANT SELECT ON alembic_version TO cardsync_app")


def create_tables() -> None:
    op.create_table(
        "account",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("trial_ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sync_mode", sa.Text(), server_default="full", nullable=False),
        sa.Column("product_lines", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("suspended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("past_due", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("write_consent", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("upload_approved", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "auto_sync_paused", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column(
            "automatic_pricing_paused",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
        ),
        sa.Column("sync_interval_minutes", sa.Integer(), nullable=True),
        sa.Column("quiet_hours", sa.Text(), nullable=True),
        sa.Column("time_zone", sa.Text(), server_default="America/New_York", nullable=False),
        sa.Column(
            "full_history_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("planner_opt_in", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "credits_metering_enabled",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
        ),
        sa.Column(
            "object_store_pipeline_enabled",
            sa.Boolean(),
            server_default=sa.text("true"),
            nullable=False,
        ),
        sa.Column(
            "attribution_logging", sa.Boolean(), server_default=sa.text("true"), nullable=False
        ),
        sa.Column(
            "tracking_threshold",
            sa.Numeric(precision=12, scale=4),
            server_default="50",
            nullable=False,
        ),
        sa.Column("direct_program", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("network_consent", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "network_published", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("store_name", sa.Text(), nullable=True),
        sa.Column(
            "direct_minimum",
            sa.Numeric(precision=12, scale=4),
            server_default="0.40",
            nullable=False,
        ),
        sa.Column(
            "default_rule_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False
        ),
        sa.Column(
            "minimum_move", sa.Numeric(precision=12, scale=4), server_default="0.01", nullable=False
        ),
        sa.Column("max_age_hours", sa.Integer(), server_default="168", nullable=False),
        sa.Column("fee_level", sa.Text(), server_default="1-4", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_account")),
    )
    op.create_table(
        "activity",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_activity")),
    )
    op.create_index(
        "ix_activity_recent",
        "activity",
        ["seller_id", sa.literal_column("created_at DESC")],
        unique=False,
    )
    op.create_table(
        "agent_seen",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("platform", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_agent_seen")),
    )
    op.create_table(
        "card",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marketplace_id", sa.BigInteger(), nullable=False),
        sa.Column("listing_id", sa.BigInteger(), nullable=False),
        sa.Column("product_id", sa.BigInteger(), nullable=False),
        sa.Column("match", sa.Text(), nullable=False),
        sa.Column("identity_hash", sa.BigInteger(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("priced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("gone", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("custom", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("price", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("market", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("low", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("low_with_shipping", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("direct_low", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("target_price", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("product_line", sa.Text(), nullable=False),
        sa.Column("product_line_label", sa.Text(), nullable=False),
        sa.Column("set_name", sa.Text(), nullable=False),
        sa.Column("product_name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("rarity", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text(), nullable=True),
        sa.Column("condition_label", sa.Text(), nullable=False),
        sa.Column("printing", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("photo_url", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_card")),
        postgresql_with={"fillfactor": "85"},
    )
    op.create_index("uq_card_marketplace_id", "card", ["seller_id", "marketplace_id"], unique=True)
    op.create_index(
        "ix_card_custom", "card", ["seller_id", "listing_id"], postgresql_where=sa.text("custom")
    )
    op.create_table(
        "catalog_import",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("adopted", sa.Integer(), nullable=False),
        sa.Column(
            "finished_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_import")),
    )
    op.create_table(
        "custom_listing",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marketplace_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("listing_id", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "marketplace_id", name=op.f("pk_custom_listing")),
    )
    op.create_index(
        "uq_custom_listing_title",
        "custom_listing",
        ["seller_id", "listing_id", sa.text("md5(title)")],
        unique=True,
    )
    op.create_table(
        "price_change",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("old_price", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("new_price", sa.Numeric(precision=12, scale=4), nullable=False),
        sa.Column("rule_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "run_id", "card_id", name=op.f("pk_price_change")),
    )
    op.create_table(
        "price_observation",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("price", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("market", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("low", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("low_with_shipping", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.Column("direct_low", sa.Numeric(precision=12, scale=4), nullable=True),
        sa.PrimaryKeyConstraint(
            "seller_id", "card_id", "observed_at", name=op.f("pk_price_observation")
        ),
        postgresql_partition_by="RANGE (observed_at)",
    )
    op.create_table(
        "pricing_rule",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("preset", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), server_default="", nullable=False),
        sa.Column("settings", postgresql.JSONB(astext_type=Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_pricing_rule")),
    )
    op.create_index(
        "uq_pricing_rule_priority",
        "pricing_rule",
        ["seller_id", "priority"],
        unique=True,
        postgresql_where=sa.text("state = 'published'"),
    )
    op.create_table(
        "product",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("game", sa.Text(), nullable=False),
        sa.Column("set_name", sa.Text(), nullable=False),
        sa.Column("set_code", sa.Text(), nullable=True),
        sa.Column("product_name", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=True),
        sa.Column("rarity", sa.Text(), nullable=True),
        sa.Column("finish", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("marketplace_product_id", sa.BigInteger(), nullable=True),
        sa.Column("provisional", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("adopted_by", sa.BigInteger(), nullable=True),
        sa.Column("set_key", sa.Text(), nullable=True),
        sa.Column("set_code_key", sa.Text(), nullable=True),
        sa.Column("name_key", sa.Text(), nullable=True),
        sa.Column("back_key", sa.Text(), nullable=True),
        sa.Column("variant_key", sa.Text(), nullable=True),
        sa.Column("number_key", sa.Text(), nullable=True),
        sa.Column("number_total", sa.Text(), nullable=True),
        sa.Column("finish_key", sa.Text(), nullable=True),
        sa.Column("language_key", sa.Text(), nullable=True),
        sa.Column("sealed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_product")),
    )
    op.create_index(
        "ix_product_provisional",
        "product",
        ["game"],
        unique=False,
        postgresql_where=sa.text("provisional"),
    )
    op.create_index("ix_product_set", "product", ["game", "set_key"], unique=False)
    op.create_index("ix_product_set_code", "product", ["game", "set_code_key"], unique=False)
    op.create_index("uq_product_identity", "product", ["identity"], unique=True)
    op.create_table(
        "seller",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seller")),
    )
    op.create_table(
        "sync_cycle",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("sync_cycle_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("placeholder", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("trigger_source", sa.Text(), nullable=True),
        sa.Column(
            "steps", postgresql.JSONB(astext_type=Text()), server_default="[]", nullable=False
        ),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("platform", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "logged_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_sync_cycle")),
    )
    op.create_index(
        "ix_sync_cycle_recent",
        "sync_cycle",
        ["seller_id", sa.literal_column("started_at DESC")],
        unique=False,
    )
    op.create_index(
        "uq_sync_cycle_client_id",
        "sync_cycle",
        ["seller_id", "sync_cycle_id"],
        unique=True,
        postgresql_where=sa.text("sync_cycle_id IS NOT NULL"),
    )
    op.create_table(
        "sync_state",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("requested_kind", sa.Text(), nullable=True),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lock_kind", sa.Text(), nullable=True),
        sa.Column("lock_trigger", sa.Text(), nullable=True),
        sa.Column("lock_first_sync", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("lock_agent_id", sa.Text(), nullable=True),
        sa.Column("lock_taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lock_refreshed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lock_uploaded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("cycle_trigger", sa.Text(), nullable=True),
        sa.Column(
            "cycle_first_sync", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("lease_holder", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.UUID(as_uuid=False), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_phase", sa.Text(), nullable=True),
        sa.Column("work_done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("work_total", sa.Integer(), server_default="0", nullable=False),
        sa.Column("uploads_open", sa.Integer(), server_default="0", nullable=False),
        sa.Column("review_upload_id", sa.BigInteger(), nullable=True),
        sa.Column("last_sync_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_pricing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("history_fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("scheduled_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_failure_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("export_fingerprint", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_sync_state")),
    )
    op.create_table(
        "upload",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("source_key", sa.Text(), nullable=True),
        sa.Column("storage_key", sa.Text(), nullable=False),
        sa.Column("product_line", sa.Text(), nullable=True),
        sa.Column("sync_cycle_id", sa.Text(), nullable=True),
        sa.Column("exported_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("verdict", postgresql.JSONB(astext_type=Text()), nullable=True),
        sa.Column("confirmed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "report", postgresql.JSONB(astext_type=Text()), server_default="{}", nullable=False
        ),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_upload")),
        sa.UniqueConstraint("seller_id", "source_key", name=op.f("uq_upload_seller_id_source_key")),
    )
    op.create_index(
        "ix_upload_open",
        "upload",
        ["seller_id", "stream", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('queued', 'processing')"),
    )
    op.create_table(
        "work_due",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "stream", name=op.f("pk_work_due")),
    )
    op.create_index("ix_work_due_due_at", "work_due", ["due_at"], unique=False)
    op.create_table(
        "api_key",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["seller_id"], ["seller.id"], name=op.f("fk_api_key_seller_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_key_key_hash")),
    )
    op.create_index(op.f("ix_api_key_seller_id"), "api_key", ["seller_id"], unique=False)
    op.create_table(
        "line_snapshot",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("product_line", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.BigInteger(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["seller_id", "upload_id"],
            ["upload.seller_id", "upload.id"],
            name=op.f("fk_line_snapshot_seller_id_upload_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "product_line", name=op.f("pk_line_snapshot")),
    )
    op.create_table(
        "member",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["seller_id"], ["seller.id"], name=op.f("fk_member_seller_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member")),
    )
    op.create_index(op.f("ix_member_seller_id"), "member", ["seller_id"], unique=False)
    op.create_index("uq_member_email", "member", [sa.literal_column("lower(email)")], unique=True)
    op.create_table(
        "price_run",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "summary", postgresql.JSONB(astext_type=Text()), server_default="{}", nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "upload_id"],
            ["upload.seller_id", "upload.id"],
            name=op.f("fk_price_run_seller_id_upload_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_price_run")),
    )
    op.create_index(
        "uq_price_run_upload",
        "price_run",
        ["seller_id", "upload_id"],
        unique=True,
        postgresql_where=sa.text("upload_id IS NOT NULL"),
    )

"""The role that backs up, and what became of backups and of their rehearsals."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0072"
down_revision = "0071"

# A server may let the owner make no role that reads past row-level security; then its administrator
# makes it, and `cardsync doctor` says how.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cardsync_backup') THEN
        BEGIN
            CREATE ROLE cardsync_backup NOSUPERUSER BYPASSRLS NOCREATEDB NOCREATEROLE;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'cardsync_backup was not made: it takes a role with BYPASSRLS';
        END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cardsync_backup') THEN
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            BEGIN
                EXECUTE 'GRANT cardsync_backup TO ' || quote_ident(current_user);
            EXCEPTION WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
        GRANT USAGE ON SCHEMA public TO cardsync_backup;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO cardsync_backup;
        GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO cardsync_backup;
        ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO cardsync_backup;
        ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON SEQUENCES TO cardsync_backup;
    END IF;
END $$
"""


def upgrade() -> None:
    op.create_table(
        "backup_report",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_backup_report")),
    )
    op.create_index("ix_backup_report_kind", "backup_report", ["kind", "ended_at"])
    for statement in (*shared_table("backup_report"), ROLE):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    # The role belongs to the whole server, and other databases of it may use it.
    op.drop_table("backup_report")

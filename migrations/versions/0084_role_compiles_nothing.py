"""The application's role compiles no statement, behind a pooler as well, which passes on no options.

Compiling takes up to seconds for statements of milliseconds. The role belongs to the whole server,
so migrations of other databases may change it at this moment.
"""

from alembic import op

revision = "0084"
down_revision = "0083"

COMPILES_NOTHING = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
                    WHERE rolname = 'cardsync_app' AND setdatabase = 0
                      AND 'jit=off' = ANY (setconfig)) THEN
        ALTER ROLE cardsync_app SET jit = off;
    END IF;
EXCEPTION
    WHEN internal_error OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'cardsync_app compiles statements behind a pooler: ALTER ROLE cardsync_app SET jit = off';
END $$
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(COMPILES_NOTHING)


def downgrade() -> None:
    # The role belongs to the whole server, and other databases of it may use it.
    pass

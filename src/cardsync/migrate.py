"""Bringing a database to the current schema: a URL of the owning role in, Alembic's migrations run.

Two processes may migrate at once: an advisory lock lets one go first, the other finds nothing left to do.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from cardsync.db import engine_url, libpq_url

_LOCK = 0x63617264  # "card"


def _folder() -> Path:
    packaged = Path(__file__).with_name("_migrations")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    # Config interpolates %, which a folder's name may hold.
    config.set_main_option("script_location", str(_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@cache
def head_revision() -> str:
    """The newest migration of this program."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def migrate(url: str) -> None:
    """Upgrade to `head_revision`. `url` must sign in as a role that owns the tables and may create roles."""
    engine = create_engine(engine_url(libpq_url(url, role=None)))
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            # Reading the migrations once is enough where there is nothing to do, as at nearly every start.
            if MigrationContext.configure(connection).get_current_revision() != head_revision():
                command.upgrade(_config(connection), "head")
    finally:
        engine.dispose()


# No sub-select in the policy: the form that also works on tables spread over nodes by seller.
_POLICY = """
CREATE POLICY tenant ON {table}
 USING (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
 WITH CHECK (seller_id = nullif(current_setting('app.seller_id', true), '')::bigint)
"""


def tenant_table(table: str) -> list[str]:
    """The statements that put a new table of a migration under row-level security and give it to the application's role."""
    return [
        *shared_table(table),
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        _POLICY.format(table=table),
    ]


def shared_table(table: str) -> list[str]:
    """The same for a table that belongs to no seller. Granted table by table: distributed tables take no other form."""
    return [f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO cardsync_app"]

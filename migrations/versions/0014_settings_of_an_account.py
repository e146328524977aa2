"""Lines that a seller switched off, the line that a key was asked for with, a task's files and
cycles.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0014"
down_revision = "0013"


def texts(name: str) -> sa.Column:
    return sa.Column(name, postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False)


def upgrade() -> None:
    op.add_column("account", texts("disabled_lines"))
    op.add_column("agent_task", texts("files"))
    op.add_column("agent_task", texts("cycles"))
    op.create_table(
        "upload_request",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("product_line", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_upload_request")),
    )
    op.create_index("uq_upload_request_key", "upload_request", ["seller_id", "key"], unique=True)
    for statement in tenant_table("upload_request"):
        op.get_bind().connection.driver_connection.execute(statement)

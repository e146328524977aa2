"""Notices by mail and webhooks: what was found, who gets it, and what is still to be sent."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0073"
down_revision = "0072"

TABLES = (
    "notice",
    "notice_look",
    "notice_reader",
    "notice_mail",
    "webhook",
    "webhook_delivery",
)


def upgrade() -> None:
    _notices()
    _mail()
    _webhooks()
    for table in TABLES:
        for statement in tenant_table(table):
            op.get_bind().exec_driver_sql(statement)


def _text(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=null, server_default=default)


def _number(name: str, *, null: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=null, autoincrement=False)


def _moment(name: str, *, null: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def _of_seller() -> tuple[sa.Column, sa.Column]:
    return (
        _number("seller_id"),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
    )


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("seller_id", *columns, name=op.f(f"pk_{table}"))


def _notices() -> None:
    op.create_table(
        "notice",
        *_of_seller(),
        *(_text(name) for name in ("kind", "key", "severity", "sentence", "label", "path")),
        _moment("since", null=True),
        sa.Column("money", sa.Numeric(12, 4), nullable=True),
        _moment("deadline", null=True),
        sa.Column("count", sa.Integer(), nullable=False),
        _number("subject", null=True),
        sa.Column("owner_only", sa.Boolean(), nullable=False),
        sa.Column("is_event", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _moment("begun_at"),
        _moment("ended_at", null=True),
        _key("notice", "id"),
    )
    for name, where in (("lasting", "ended_at IS NULL"), ("event", "is_event")):
        op.create_index(
            f"uq_notice_{name}",
            "notice",
            ["seller_id", "key"],
            unique=True,
            postgresql_where=sa.text(where),
        )
    op.create_table(
        "notice_look",
        _number("seller_id"),
        _moment("looked_at"),
        _number("newest_order"),
        _key("notice_look"),
    )


def _mail() -> None:
    op.create_table(
        "notice_reader",
        _number("seller_id"),
        _number("member_id"),
        sa.Column("ways", postgresql.JSONB(), server_default="{}", nullable=False),
        _moment("stopped_at", null=True),
        _key("notice_reader", "member_id"),
    )
    op.create_table(
        "notice_mail",
        *_of_seller(),
        _number("notice_id"),
        _number("member_id"),
        _text("state", default="waiting"),
        _moment("due_at"),
        _text("letter", null=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        _moment("first_try_at", null=True),
        _moment("settled_at", null=True),
        sa.ForeignKeyConstraint(
            ["seller_id", "notice_id"],
            ["notice.seller_id", "notice.id"],
            name=op.f("fk_notice_mail_seller_id_notice"),
            ondelete="CASCADE",
        ),
        _key("notice_mail", "id"),
    )
    op.create_index(
        "uq_notice_mail_member", "notice_mail", ["seller_id", "notice_id", "member_id"], unique=True
    )
    op.create_index(
        "ix_notice_mail_waiting",
        "notice_mail",
        ["seller_id", "due_at"],
        postgresql_where=sa.text("state = 'waiting'"),
    )


def _webhooks() -> None:
    op.create_table(
        "webhook",
        *_of_seller(),
        _text("url"),
        sa.Column("kinds", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("former_secret", sa.LargeBinary(), nullable=True),
        _moment("former_until", null=True),
        _moment("created_at"),
        _moment("off_at", null=True),
        _text("off_why", null=True),
        _moment("last_sent_at", null=True),
        _key("webhook", "id"),
    )
    op.create_table(
        "webhook_delivery",
        *_of_seller(),
        _number("webhook_id"),
        *(_text(name) for name in ("message_id", "kind", "body")),
        _text("state", default="waiting"),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        _moment("created_at"),
        _moment("first_try_at", null=True),
        _moment("next_at"),
        sa.Column("answer", sa.Integer(), nullable=True),
        _text("error", null=True),
        _moment("settled_at", null=True),
        sa.ForeignKeyConstraint(
            ["seller_id", "webhook_id"],
            ["webhook.seller_id", "webhook.id"],
            name=op.f("fk_webhook_delivery_seller_id_webhook"),
            ondelete="CASCADE",
        ),
        _key("webhook_delivery", "id"),
    )
    op.create_index(
        "ix_webhook_delivery_webhook",
        "webhook_delivery",
        ["seller_id", "webhook_id", sa.text("id DESC")],
    )
    op.create_index(
        "ix_webhook_delivery_waiting",
        "webhook_delivery",
        ["seller_id", "next_at"],
        postgresql_where=sa.text("state = 'waiting'"),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)

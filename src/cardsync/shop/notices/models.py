"""The tables of notices, all of them tenant tables: `notice`, `notice_look`, `notice_reader`,
`notice_mail`, `webhook` and `webhook_delivery`.

`notice_mail` and `webhook_delivery` contain the messages to send. They are written in the
transaction that writes the notice.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    ARRAY,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, KeyPart, RowId

Sending = Literal["waiting", "sent", "failed", "dropped"]


class Notice(Base):
    """A reported condition or event, with its texts at the time of the report. `ended_at` is null
    while a condition lasts; an event ends when it begins.
    """

    __tablename__ = "notice"
    __table_args__ = (
        Index(
            "uq_notice_lasting",
            "seller_id",
            "key",
            unique=True,
            postgresql_where=text("ended_at IS NULL"),
        ),
        Index(
            "uq_notice_event", "seller_id", "key", unique=True, postgresql_where=text("is_event")
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    kind: Mapped[str]
    key: Mapped[str]
    severity: Mapped[str]
    sentence: Mapped[str]
    label: Mapped[str]
    path: Mapped[str]
    since: Mapped[datetime | None]
    money: Mapped[Decimal | None]
    deadline: Mapped[datetime | None]
    count: Mapped[int]
    subject: Mapped[BigInt | None]
    owner_only: Mapped[bool]
    is_event: Mapped[bool] = mapped_column(server_default=FALSE)
    begun_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class NoticeLook(Base):
    """The last check of a seller's conditions and events: its time, and the newest order at that
    time.
    """

    __tablename__ = "notice_look"
    seller_id: Mapped[KeyPart]
    looked_at: Mapped[datetime]
    newest_order: Mapped[BigInt]


class NoticeReader(Base):
    """The choices of a member: the ways by kind (`notice_kinds.py`), and the time since which all
    mail is stopped. A member without a row has chosen nothing.
    """

    __tablename__ = "notice_reader"
    seller_id: Mapped[KeyPart]
    member_id: Mapped[KeyPart]
    ways: Mapped[dict[str, str]] = mapped_column(JSONB, server_default="{}")
    stopped_at: Mapped[datetime | None]


class NoticeMail(Base):
    """A notice to mail to a member. `letter` is the Message-ID of the mail with the notice; a mail
    that is sent again after a worker was killed has the same Message-ID. `sent_to` is a former
    address of the member to which the notice is mailed, whatever the member has chosen.
    """

    __tablename__ = "notice_mail"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "notice_id"], ["notice.seller_id", "notice.id"], ondelete="CASCADE"
        ),
        Index("uq_notice_mail_member", "seller_id", "notice_id", "member_id", unique=True),
        Index(
            "ix_notice_mail_waiting",
            "seller_id",
            "due_at",
            postgresql_where=text("state = 'waiting'"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    notice_id: Mapped[BigInt]
    member_id: Mapped[BigInt]
    sent_to: Mapped[str | None]
    state: Mapped[Sending] = mapped_column(Text, server_default="waiting")
    due_at: Mapped[datetime]
    letter: Mapped[str | None]
    tries: Mapped[int] = mapped_column(server_default="0")
    first_try_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]


class Webhook(Base):
    """An address that gets notices. A webhook without `kinds` gets notices of all kinds. Its
    secrets are sealed. The former secret signs messages, too, until `former_until`.
    """

    __tablename__ = "webhook"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    url: Mapped[str]
    kinds: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    former_secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    former_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    off_at: Mapped[datetime | None]
    # The reason why the webhook is off: gone or failing (its receiver), or owner (switched off).
    off_why: Mapped[str | None]
    last_sent_at: Mapped[datetime | None]
    # The receiver's failures since it last accepted a message, and the time until which nothing is
    # sent.
    failures: Mapped[int] = mapped_column(server_default="0")
    rests_until: Mapped[datetime | None]


class WebhookDelivery(Base):
    """A message for a webhook. Each try sends the same bytes with the same `message_id`. `error` is
    our own sentence about the last try, and `answer` is the HTTP status of the receiver's answer.
    """

    __tablename__ = "webhook_delivery"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "webhook_id"], ["webhook.seller_id", "webhook.id"], ondelete="CASCADE"
        ),
        Index("ix_webhook_delivery_webhook", "seller_id", "webhook_id", text("id DESC")),
        Index(
            "ix_webhook_delivery_waiting",
            "seller_id",
            "next_at",
            postgresql_where=text("state = 'waiting'"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    webhook_id: Mapped[BigInt]
    message_id: Mapped[str]
    kind: Mapped[str]
    body: Mapped[str]
    state: Mapped[Sending] = mapped_column(Text, server_default="waiting")
    tries: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime]
    first_try_at: Mapped[datetime | None]
    next_at: Mapped[datetime]
    answer: Mapped[int | None]
    error: Mapped[str | None]
    settled_at: Mapped[datetime | None]

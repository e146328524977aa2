"""Tables of notices, all of them a seller's: `notice`, `notice_look`, `notice_reader` and
`notice_mail`, `webhook` and `webhook_delivery`.

`notice_mail` and `webhook_delivery` hold the unsent messages, written in the transaction that
writes the notice.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base

Sending = Literal["waiting", "sent", "failed", "dropped"]


class Notice(Base):
    """One condition or event, as it was when it was found. `ended_at` is null while a condition
    lasts; an event ends as it begins.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
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
    subject: Mapped[int | None] = mapped_column(BigInteger)
    owner_only: Mapped[bool]
    is_event: Mapped[bool] = mapped_column(server_default=FALSE)
    begun_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class NoticeLook(Base):
    """The time of the last comparison of the seller's conditions, and the newest order at that
    time.
    """

    __tablename__ = "notice_look"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    looked_at: Mapped[datetime]
    newest_order: Mapped[int] = mapped_column(BigInteger)


class NoticeReader(Base):
    """A member who chose something: the ways by kind (`notice_kinds.py`), and since when no mail is
    wanted at all.
    """

    __tablename__ = "notice_reader"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    member_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    ways: Mapped[dict[str, str]] = mapped_column(JSONB, server_default="{}")
    stopped_at: Mapped[datetime | None]


class NoticeMail(Base):
    """A notice for a member. `letter` is the Message-ID of the mail that it was put into: a mail
    that is sent again after a kill keeps its Message-ID. `sent_to` is an address that the member
    had before: that mail goes there, whatever the member chose.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    notice_id: Mapped[int] = mapped_column(BigInteger)
    member_id: Mapped[int] = mapped_column(BigInteger)
    sent_to: Mapped[str | None]
    state: Mapped[Sending] = mapped_column(Text, server_default="waiting")
    due_at: Mapped[datetime]
    letter: Mapped[str | None]
    tries: Mapped[int] = mapped_column(server_default="0")
    first_try_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]


class Webhook(Base):
    """An address that gets notices. A webhook without `kinds` gets all of them. Its secrets are
    sealed; the former one signs, too, until `former_until`.
    """

    __tablename__ = "webhook"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    url: Mapped[str]
    kinds: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    former_secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    former_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    off_at: Mapped[datetime | None]
    # The reason why the webhook is off: its receiver is gone or failing, or an owner switched it
    # off.
    off_why: Mapped[str | None]
    last_sent_at: Mapped[datetime | None]
    # How often its receiver has failed since it took a message, and until when it is left alone.
    failures: Mapped[int] = mapped_column(server_default="0")
    rests_until: Mapped[datetime | None]


class WebhookDelivery(Base):
    """A message for a webhook; each try sends the same bytes with the same `message_id`. `error` is
    our own sentence about the last try, and `answer` is the receiver's status code.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    webhook_id: Mapped[int] = mapped_column(BigInteger)
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

"""The JSON structs of notices and webhooks, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, OfRow, struct_of
from cardsync.shop.notices.models import Sending, Webhook
from cardsync.shop.notices.notice_kinds import Event, Way
from cardsync.shop.today.shop_facts import Kind


class NoticeKindBody(msgspec.Struct):
    """A kind of notice, and the way in which the member gets it by mail."""

    kind: Annotated[str, Like(Kind | Event)]
    """The kind of notice"""
    label: str
    """The name of the kind on pages"""
    group: str
    """The group of the kind on pages"""
    way: Way
    """The way in which the member gets the kind by mail: at_once, daily or never"""


class ChoicesBody(msgspec.Struct):
    """A member's choices. `mail_on` is false if this installation has no mail server; `stopped` is
    true if the member has stopped all mail.
    """

    mail_on: bool
    """Whether this installation sends mail"""
    stopped: bool
    kinds: list[NoticeKindBody]
    """The kinds of notices with their ways"""


class WebhookBody(msgspec.Struct):
    """A webhook. Without `kinds`, it gets notices of all kinds. `off_why` is gone, failing or
    owner. The former secret signs messages, too, until `former_secret_until`.
    """

    id: int
    url: str
    kinds: list[str]
    """The kinds of notices that the webhook gets; empty for all kinds"""
    on: Annotated[bool, OfRow(lambda row: row.off_at is None)]
    """Whether notices are sent to the webhook"""
    off_why: str | None
    """Why the webhook is off: gone, failing or owner"""
    created_at: datetime
    last_sent_at: datetime | None
    """When a message was last delivered; null if never"""
    former_secret_until: datetime | None
    """The time until which the former secret signs messages, too"""


class WebhooksBody(msgspec.Struct):
    webhooks: list[WebhookBody]


class SecretBody(msgspec.Struct):
    """A webhook with its secret, which verifies signatures and is returned only here."""

    webhook: WebhookBody
    secret: str
    """The secret that verifies signatures; it is returned only here"""


class DeliveryBody(msgspec.Struct):
    """A delivery to a webhook. `id` is its id in this API; `message_id` is the value of the header
    webhook-id. `status` and `error` are from the last try.
    """

    id: int
    message_id: str
    """The value of the header webhook-id"""
    type: Annotated[str, Like(Kind | Event | Literal["test"]), Column("kind")]
    """The kind of notice, or test"""
    state: Sending
    tries: int
    """The number of tries"""
    created_at: datetime
    next_try_at: Annotated[
        datetime | None, OfRow(lambda row: row.next_at if row.state == "waiting" else None)
    ]
    """When the delivery is tried next; null if it is not"""
    settled_at: datetime | None
    status: Annotated[int | None, Column("answer")]
    """The HTTP status of the last try"""
    error: str | None
    body: str
    """The body of the message"""


class DeliveriesBody(msgspec.Struct):
    """The deliveries of a webhook, newest first."""

    deliveries: list[DeliveryBody]


def webhook_body(row: Webhook, now: datetime) -> WebhookBody:
    until = row.former_until if row.former_until and row.former_until > now else None
    return struct_of(WebhookBody, row, former_secret_until=until)

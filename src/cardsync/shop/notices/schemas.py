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
    """The subject of the notice"""
    group: str
    """The group that it is shown with"""
    way: Way
    """How the member gets it by mail: at once, daily or never"""


class ChoicesBody(msgspec.Struct):
    """`mail_on` is false where this installation has no mail server; `stopped` is true if the
    member wants no mail at all.
    """

    mail_on: bool
    """This installation sends mail"""
    stopped: bool
    kinds: list[NoticeKindBody]
    """Each kind of notice, and how the member gets it"""


class WebhookBody(msgspec.Struct):
    """Without `kinds` it gets every notice. `off_why` is gone, failing or owner; the former secret
    signs beside the new one until `former_secret_until`.
    """

    id: int
    url: str
    kinds: list[str]
    """The kinds of notices that it gets; empty: every kind"""
    on: Annotated[bool, OfRow(lambda row: row.off_at is None)]
    """It is sent notices"""
    off_why: str | None
    """Why it is off: gone, failing or owner"""
    created_at: datetime
    last_sent_at: datetime | None
    """When it was sent something last; null: never"""
    former_secret_until: datetime | None
    """The former secret signs beside the new one until then"""


class WebhooksBody(msgspec.Struct):
    webhooks: list[WebhookBody]


class SecretBody(msgspec.Struct):
    """`secret` verifies the signatures; it is shown only here."""

    webhook: WebhookBody
    secret: str
    """Verifies the signatures; it is shown once"""


class DeliveryBody(msgspec.Struct):
    """`id` names the delivery here; `message_id` is the header webhook-id. `status` and `error` are
    of the last try.
    """

    id: int
    message_id: str
    """The header webhook-id"""
    type: Annotated[str, Like(Kind | Event | Literal["test"]), Column("kind")]
    """The kind of notice, or test"""
    state: Sending
    tries: int
    """How often it was tried"""
    created_at: datetime
    next_try_at: Annotated[
        datetime | None, OfRow(lambda row: row.next_at if row.state == "waiting" else None)
    ]
    """When it is tried next; null: no more"""
    settled_at: datetime | None
    status: Annotated[int | None, Column("answer")]
    """The HTTP status of the last try"""
    error: str | None
    body: str
    """The text that is sent"""


class DeliveriesBody(msgspec.Struct):
    """The newest deliveries first."""

    deliveries: list[DeliveryBody]


def webhook_body(row: Webhook, now: datetime) -> WebhookBody:
    until = row.former_until if row.former_until and row.former_until > now else None
    return struct_of(WebhookBody, row, former_secret_until=until)

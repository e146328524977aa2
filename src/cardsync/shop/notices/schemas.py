"""The JSON structs of notices and webhooks, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.described import Like
from cardsync.shop.notices.models import Sending, Webhook, WebhookDelivery
from cardsync.shop.notices.notice_kinds import Event, NoticeKind, Way, way_of
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
    on: bool
    """It is sent notices"""
    off_why: str | None
    """Why it is off: gone, failing or owner"""
    created_at: str
    last_sent_at: str | None
    """When it was sent something last; null: never"""
    former_secret_until: str | None
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
    type: Annotated[str, Like(Kind | Event | Literal["test"])]
    """The kind of notice, or test"""
    state: Sending
    tries: int
    """How often it was tried"""
    created_at: str
    next_try_at: str | None
    """When it is tried next; null: no more"""
    settled_at: str | None
    status: int | None
    """The HTTP status of the last try"""
    error: str | None
    body: str
    """The text that is sent"""


class DeliveriesBody(msgspec.Struct):
    """The newest deliveries first."""

    deliveries: list[DeliveryBody]


def kind_body(
    kind: str,
    each: NoticeKind,
    role: str,
    ways: dict[str, str],
) -> NoticeKindBody:
    return NoticeKindBody(kind, each.label, each.group, way_of(kind, role, ways))


def webhook_body(row: Webhook, now: datetime) -> WebhookBody:
    until = row.former_until if row.former_until and row.former_until > now else None
    return WebhookBody(
        row.id,
        row.url,
        row.kinds,
        row.off_at is None,
        row.off_why,
        rfc3339(row.created_at),
        rfc3339_or_none(row.last_sent_at),
        rfc3339_or_none(until),
    )


def delivery_body(row: WebhookDelivery) -> DeliveryBody:
    return DeliveryBody(
        row.id,
        row.message_id,
        row.kind,
        row.state,
        row.tries,
        rfc3339(row.created_at),
        rfc3339(row.next_at) if row.state == "waiting" else None,
        rfc3339_or_none(row.settled_at),
        row.answer,
        row.error,
        row.body,
    )

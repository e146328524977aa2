"""HTTP routes of notices for signed-in members: the notices by mail and, for owners, webhooks."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.read_json import given_fields
from cardsync.platform.settings import Settings
from cardsync.shop.limits import WEBHOOK_KINDS
from cardsync.shop.notices import choices, webhooks
from cardsync.shop.notices.notice_kinds import Way
from cardsync.shop.notices.schemas import (
    ChoicesBody,
    DeliveriesBody,
    DeliveryBody,
    SecretBody,
    WebhookBody,
    WebhooksBody,
    webhook_body,
)
from cardsync.web.public_fetch import CHARACTERS_MOST
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, Deleted, problems

READ_BY_MEMBERS = (*BEHIND_A_KEY, errors.SessionRequired)
READ = (*READ_BY_MEMBERS, errors.OwnerRequired)
WRITTEN = (*FOR_MEMBERS, errors.OwnerRequired)
Url = Annotated[str, msgspec.Meta(max_length=CHARACTERS_MOST)]
Kinds = Annotated[list[str], msgspec.Meta(max_length=WEBHOOK_KINDS)]


class NewChoices(msgspec.Struct, forbid_unknown_fields=True):
    """A member's choices. `ways` maps kinds of notices to at_once, daily or never; kinds that are
    not sent do not change. `stopped` stops all mail, or starts it again.
    """

    ways: dict[str, Way] = {}
    """The way by kind of notice: at_once, daily or never"""
    stopped: bool | UnsetType = UNSET


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """A new webhook. Without `kinds`, it gets notices of all kinds."""

    url: Url
    kinds: Kinds = []
    """The kinds of notices that the webhook gets; by default all kinds"""


class WebhookChange(msgspec.Struct, forbid_unknown_fields=True):
    url: Url | UnsetType = UNSET
    kinds: Kinds | UnsetType = UNSET
    """The kinds of notices that the webhook gets"""
    on: bool | UnsetType = UNSET
    """Whether notices are sent to the webhook"""


@get("/notices/choices", responses=problems(*READ_BY_MEMBERS))
async def read_choices(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> ChoicesBody:
    """The way in which the member gets each kind of notice by mail: at once, once a day, or
    never.
    """
    return await choices.choices(session, caller, settings)


@patch("/notices/choices", responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY))
async def choose(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: NewChoices,
) -> ChoicesBody:
    """Choose the way for kinds of notices. Staff can choose only for the kinds of their role."""
    stopped = None if data.stopped is UNSET else data.stopped
    await choices.choose(session, caller, data.ways, stopped, clock.now())
    return await choices.choices(session, caller, settings)


@get("/webhooks", responses=problems(*READ))
async def list_webhooks(caller: Caller, session: AsyncSession) -> WebhooksBody:
    """The shop's webhooks, without their secrets."""
    now = clock.now()
    return WebhooksBody(
        [webhook_body(row, now) for row in await webhooks.webhooks(session, caller)]
    )


@post("/webhooks", status_code=201, responses=problems(*WRITTEN, *WITH_JSON_BODY))
async def make_webhook(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: NewWebhook,
) -> SecretBody:
    """Create a webhook. Notices are posted to `url`, signed according to Standard Webhooks.
    `secret` is returned only here.
    """
    now = clock.now()
    made = await webhooks.make(session, caller, settings, data.url, data.kinds, now)
    return SecretBody(webhook_body(made.webhook, now), made.secret)


@patch("/webhooks/{webhook_id:int}", responses=problems(*WRITTEN, *WITH_JSON_BODY, errors.NotFound))
async def change_webhook(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: WebhookChange,
) -> WebhookBody:
    """Change a webhook's address or kinds, or switch it on or off."""
    now = clock.now()
    given = given_fields(data)
    row = await webhooks.change(session, caller, settings, webhook_id, now, **given)
    return webhook_body(row, now)


@delete(
    "/webhooks/{webhook_id:int}", status_code=200, responses=problems(*WRITTEN, errors.NotFound)
)
async def delete_webhook(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
) -> Deleted:
    """Delete a webhook and its deliveries."""
    await webhooks.remove(session, caller, webhook_id, clock.now())
    return Deleted(True)


@post(
    "/webhooks/{webhook_id:int}/secret",
    status_code=201,
    responses=problems(*WRITTEN, errors.NotFound),
)
async def rotate_secret(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> SecretBody:
    """Create a new secret. For one day, messages are signed with both the new and the former
    secret.
    """
    now = clock.now()
    made = await webhooks.rotate(session, caller, settings, webhook_id, now)
    return SecretBody(webhook_body(made.webhook, now), made.secret)


@post(
    "/webhooks/{webhook_id:int}/test",
    status_code=201,
    responses=problems(*WRITTEN, errors.NotFound, errors.InvalidPayload),
)
async def send_test(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> DeliveryBody:
    """Send a message of type `test` to the webhook."""
    row = await webhooks.send_test(session, caller, settings, webhook_id, clock.now())
    return struct_of(DeliveryBody, row)


@get("/webhooks/{webhook_id:int}/deliveries", responses=problems(*READ, errors.NotFound))
async def list_deliveries(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
) -> DeliveriesBody:
    """The newest deliveries of a webhook, with their outcomes."""
    _, rows = await webhooks.with_deliveries(session, caller, webhook_id)
    return DeliveriesBody([struct_of(DeliveryBody, row) for row in rows])


@post(
    "/webhooks/{webhook_id:int}/deliveries/{delivery_id:int}/replay",
    status_code=200,
    responses=problems(*WRITTEN, errors.NotFound, errors.InvalidPayload),
)
async def replay_delivery(
    webhook_id: int,
    delivery_id: int,
    caller: Caller,
    session: AsyncSession,
) -> DeliveryBody:
    """Send a message again, with the same bytes and the same id."""
    row = await webhooks.replay(session, caller, webhook_id, delivery_id, clock.now())
    return struct_of(DeliveryBody, row)


router = Router(
    path="",
    route_handlers=[
        read_choices,
        choose,
        list_webhooks,
        make_webhook,
        change_webhook,
        delete_webhook,
        rotate_secret,
        send_test,
        list_deliveries,
        replay_delivery,
    ],
    tags=["notices"],
)

"""HTTP routes of a signed-in member: which notices come by mail and, for owners, webhooks."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.kit.struct_rows import struct_of
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
    """`ways` names kinds with at_once, daily or never; others stay as they are. `stopped` ends all
    mail, or begins it again.
    """

    ways: dict[str, Way] = {}
    """How mail is sent, by the kind of notice: at_once, daily or never"""
    stopped: bool | UnsetType = UNSET


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """Without `kinds` it gets every notice."""

    url: Url
    kinds: Kinds = []
    """The kinds of notices that it gets; without them, every kind"""


class WebhookChange(msgspec.Struct, forbid_unknown_fields=True):
    url: Url | UnsetType = UNSET
    kinds: Kinds | UnsetType = UNSET
    """The kinds of notices that it gets"""
    on: bool | UnsetType = UNSET
    """It is sent notices"""


@get("/notices/choices", responses=problems(*READ_BY_MEMBERS))
async def read_choices(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> ChoicesBody:
    """Show which notices the member gets by mail: at once, once a day, or never."""
    return await choices.choices(session, caller, settings)


@patch("/notices/choices", responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY))
async def choose(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: NewChoices,
) -> ChoicesBody:
    """Choose which notices come by mail. Staff may choose among those of their role."""
    stopped = None if data.stopped is UNSET else data.stopped
    await choices.choose(session, caller, data.ways, stopped, clock.now())
    return await choices.choices(session, caller, settings)


@get("/webhooks", responses=problems(*READ))
async def list_webhooks(caller: Caller, session: AsyncSession) -> WebhooksBody:
    """Show the shop's webhooks, never their secrets."""
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
    """Make a webhook: notices are posted to `url`, signed as Standard Webhooks says. `secret` is
    shown only here.
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
    row = await webhooks.change(
        session,
        caller,
        settings,
        webhook_id,
        now,
        url=None if data.url is UNSET else data.url,
        kinds=None if data.kinds is UNSET else data.kinds,
        on=None if data.on is UNSET else data.on,
    )
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
    """Make a new secret. For a day, messages are signed with both."""
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
    """Send a message of type `test`."""
    row = await webhooks.send_test(session, caller, settings, webhook_id, clock.now())
    return struct_of(DeliveryBody, row)


@get("/webhooks/{webhook_id:int}/deliveries", responses=problems(*READ, errors.NotFound))
async def list_deliveries(
    webhook_id: int,
    caller: Caller,
    session: AsyncSession,
) -> DeliveriesBody:
    """Show the newest deliveries of a webhook, with what became of them."""
    rows = await webhooks.deliveries(session, caller, webhook_id)
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
    """Send a message again: the same bytes with the same id."""
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

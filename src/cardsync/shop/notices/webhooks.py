"""Creates, changes and deletes a shop's webhooks, for its owners, and sends messages again.

A secret is shown only when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, each_of, rows_as
from cardsync.platform.database.session import run
from cardsync.platform.settings import Settings
from cardsync.platform.work.jobs import enqueue, mark_due_by
from cardsync.shop.limits import DELIVERIES_SHOWN, WEBHOOKS_OF_ACCOUNT
from cardsync.shop.notices.look import LOOK
from cardsync.shop.notices.models import Webhook, WebhookDelivery
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.notices.notice_kinds import KINDS, TEST
from cardsync.shop.notices.record_notices import WEBHOOKS, delivery, message_body
from cardsync.shop.notices.send_webhooks import END_WAITING, SWITCHED_OFF, send_webhooks
from cardsync.shop.notices.webhook_signature import Unsealed, new_secret, sealed, unsealed
from cardsync.web.public_fetch import names_inside, problem

FORMER_FOR: Final = timedelta(days=1)


class Made(NamedTuple):
    webhook: Webhook
    secret: str


async def webhooks(source: Source, caller: Caller) -> list[Webhook]:
    """Return the shop's webhooks, oldest first. Raises OwnerRequired."""
    caller.must_be_owner()
    return await rows_as(source, Webhook, caller.seller_id, "ORDER BY id")


async def make(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    url: str,
    kinds: Sequence[str],
    now: datetime,
) -> Made:
    """Create a webhook, and return it with its secret. Raises OwnerRequired, InvalidPayload."""
    caller.must_be_owner()
    url, kinds = _good_url(url, settings), _good_kinds(kinds)
    await locked(session, Lock.SHOP, caller.seller_id)
    count = select(func.count()).where(Webhook.seller_id == caller.seller_id)
    if (await session.scalar(count) or 0) >= WEBHOOKS_OF_ACCOUNT:
        raise errors.InvalidPayload(
            f"url: a shop can have at most {WEBHOOKS_OF_ACCOUNT} webhooks; delete one first"
        )
    secret = new_secret()
    kept = sealed(settings, caller.seller_id, secret)
    row = Webhook(seller_id=caller.seller_id, url=url, kinds=kinds, secret=kept, created_at=now)
    session.add(row)
    await session.flush()
    note(session, caller, "webhook.made", f"webhook {row.id} created", now, risk="medium")
    await mark_due_by(session, caller.seller_id, LOOK, now)
    return Made(row, secret)


async def change(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    webhook_id: int,
    now: datetime,
    *,
    url: str | None = None,
    kinds: Sequence[str] | None = None,
    on: bool | None = None,
) -> Webhook:
    """Change a webhook's address or kinds, or switch it on or off. Switching it off cancels the
    waiting deliveries. Raises OwnerRequired, NotFound, InvalidPayload.
    """
    row = await _own(session, caller, webhook_id)
    before = _plain(row)
    row.url = row.url if url is None else _good_url(url, settings)
    row.kinds = row.kinds if kinds is None else _good_kinds(kinds)
    if on and row.off_at is not None:
        row.off_at = row.off_why = None
        await mark_due_by(session, caller.seller_id, LOOK, now)
    if on is False and row.off_at is None:
        row.off_at, row.off_why = now, "owner"
        values = {"seller": caller.seller_id, "webhook": row.id, "now": now}
        await run(session, END_WAITING, values | {"error": SWITCHED_OFF})
    if (after := _plain(row)) != before:
        row.rests_until = None
        summary = f"webhook {row.id} changed"
        note(
            session, caller, "webhook.changed", summary, now,
            risk="medium", before=before, after=after,
        )  # fmt: skip
    await session.flush()
    return row


async def remove(
    session: AsyncSession,
    caller: Caller,
    webhook_id: int,
    now: datetime,
) -> None:
    """Delete a webhook with its deliveries. Raises OwnerRequired, NotFound."""
    row = await _own(session, caller, webhook_id)
    await session.delete(row)
    note(session, caller, "webhook.deleted", f"webhook {webhook_id} deleted", now, risk="medium")


async def rotate(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    webhook_id: int,
    now: datetime,
) -> Made:
    """Create a new secret. The previous secret signs messages, too, for one day. Raises
    OwnerRequired, NotFound.
    """
    row = await _own(session, caller, webhook_id)
    secret = new_secret()
    try:
        unsealed(settings, caller.seller_id, row.secret)
    except Unsealed:
        row.former_secret = row.former_until = None
    else:
        row.former_secret, row.former_until = row.secret, now + FORMER_FOR
    row.secret = sealed(settings, caller.seller_id, secret)
    await session.flush()
    summary = f"secret of webhook {row.id} rotated"
    note(session, caller, "webhook.rotated", summary, now, risk="medium")
    return Made(row, secret)


async def send_test(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    webhook_id: int,
    now: datetime,
) -> WebhookDelivery:
    """Send a test message to a webhook. Raises OwnerRequired, NotFound, InvalidPayload."""
    row = await _own(session, caller, webhook_id)
    _must_be_on(row)
    row.rests_until = None  # a test ends the pause after failures
    found = NewsItem(
        TEST, TEST, "info", "This is a test.", "See the webhooks", "/settings/webhooks"
    )
    body = message_body(settings, None, found, now)
    made = WebhookDelivery(**delivery(caller.seller_id, row.id, TEST, body, now))
    session.add(made)
    await session.flush()
    await session.refresh(made)
    await _nudge(session, caller, now)
    note(session, caller, "webhook.tested", f"test sent to webhook {row.id}", now)
    return made


async def with_deliveries(
    source: Source, caller: Caller, webhook_id: int
) -> tuple[Webhook, list[WebhookDelivery]]:
    """Return a webhook with its newest deliveries. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    values = {"webhook": webhook_id, "most": DELIVERIES_SHOWN}
    newest = "AND webhook_id = :webhook ORDER BY id DESC LIMIT :most"
    own, deliveries = await each_of(
        source,
        rows_as(source, Webhook, caller.seller_id, "AND id = :webhook", webhook=webhook_id),
        rows_as(source, WebhookDelivery, caller.seller_id, newest, **values),
    )
    if not own:
        raise errors.NotFound(f"there is no webhook {webhook_id}")
    return own[0], deliveries


async def replay(
    session: AsyncSession,
    caller: Caller,
    webhook_id: int,
    delivery_id: int,
    now: datetime,
) -> WebhookDelivery:
    """Send a message again with the same id and bytes; its tries are counted from the beginning.
    Raises OwnerRequired, NotFound, InvalidPayload.
    """
    webhook = await _own(session, caller, webhook_id)
    _must_be_on(webhook)
    webhook.rests_until = None
    own = (
        (WebhookDelivery.seller_id == caller.seller_id)
        & (WebhookDelivery.webhook_id == webhook_id)
        & (WebhookDelivery.id == delivery_id)
    )
    row = await session.scalar(select(WebhookDelivery).where(own).with_for_update())
    if row is None:
        raise errors.NotFound(f"there is no delivery {delivery_id}")
    row.state, row.tries, row.next_at = "waiting", 0, now
    row.first_try_at = row.settled_at = row.answer = row.error = None
    await session.flush()
    await _nudge(session, caller, now)
    summary = f"delivery {delivery_id} of webhook {webhook_id} sent again"
    note(session, caller, "webhook.replayed", summary, now)
    return row


async def _nudge(
    session: AsyncSession,
    caller: Caller,
    now: datetime,
) -> None:
    await mark_due_by(session, caller.seller_id, WEBHOOKS, now)
    await enqueue(session, send_webhooks, seller_id=caller.seller_id)


async def _own(
    session: AsyncSession,
    caller: Caller,
    webhook_id: int,
) -> Webhook:
    caller.must_be_owner()
    own = (Webhook.seller_id == caller.seller_id) & (Webhook.id == webhook_id)
    row = await session.scalar(select(Webhook).where(own).with_for_update())
    if row is None:
        raise errors.NotFound(f"there is no webhook {webhook_id}")
    return row


def _must_be_on(row: Webhook) -> None:
    if row.off_at is not None:
        raise errors.InvalidPayload("this webhook is off; turn it on first")


def _good_url(url: str, settings: Settings) -> str:
    url = url.strip()
    if wrong := problem(url, development=settings.development_clients):
        raise errors.InvalidPayload(f"url: {wrong}")
    if names_inside(url) and not settings.development_clients:
        raise errors.InvalidPayload("url: must be a public https:// address")
    return url


def _good_kinds(kinds: Sequence[str]) -> list[str]:
    for kind in kinds:
        if kind not in KINDS:
            raise errors.InvalidPayload(f"kinds: there is no notice {kind}")
    return [kind for kind in KINDS if kind in kinds]


def _plain(row: Webhook) -> dict[str, object]:
    return {"url": row.url, "kinds": list(row.kinds), "on": row.off_at is None}

"""Writes notices and, in the same transaction, the messages to send: a mail to each member who gets
that kind of notice, and a delivery to each webhook.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account, Member
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.kit.struct_rows import Reads, Usd, struct_of
from cardsync.platform.settings import Settings
from cardsync.platform.work.jobs import mark_due_by
from cardsync.shop.notices.models import Notice, NoticeMail, NoticeReader, Webhook, WebhookDelivery
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.notices.next_times import next_digest
from cardsync.shop.notices.notice_kinds import way_of
from cardsync.shop.notices.webhook_signature import new_message_id

# Streams of the worker (`operations/processes/worker.py`).
MAIL: Final = "mail"
WEBHOOKS: Final = "webhooks"


class NoticeData(msgspec.Struct):
    """The content of a webhook's message about a notice. `url` is the page for the next step."""

    notice_id: int | None
    severity: str
    sentence: str
    since: Annotated[str | None, Reads(rfc3339_or_none)]
    deadline: Annotated[str | None, Reads(rfc3339_or_none)]
    money: Usd | None
    count: int
    subject: int | None
    url: str


class Message(msgspec.Struct):
    type: str
    timestamp: str
    data: NoticeData


class _Reader(NamedTuple):
    member_id: int
    role: str
    ways: dict[str, str]


async def record(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    found: Sequence[NewsItem],
    now: datetime,
    *,
    quietly: bool = False,
) -> None:
    """Write notices and the messages to send. Items that were written before are skipped. With
    `quietly`, no messages are written.
    """
    written = [(id, one) for one in found if (id := await _write(session, seller_id, one, now))]
    if not written or quietly:
        return
    await _to_webhooks(session, settings, seller_id, written, now)
    if settings.sends_mail:
        await _to_members(session, seller_id, written, now)


async def tell_at(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    member_id: int,
    address: str,
    one: NewsItem,
    now: datetime,
) -> None:
    """Write an event for one member, which is mailed immediately to `address`, whatever the member
    has chosen. Do nothing if this installation sends no mail.
    """
    if not settings.sends_mail:
        return
    notice_id = await _write(session, seller_id, one, now)
    row = {
        "seller_id": seller_id,
        "notice_id": notice_id,
        "member_id": member_id,
        "sent_to": address,
        "due_at": now,
    }
    await session.execute(insert(NoticeMail), [row])
    await mark_due_by(session, seller_id, MAIL, now)


async def _write(
    session: AsyncSession,
    seller_id: int,
    one: NewsItem,
    now: datetime,
) -> int | None:
    written = upsert(Notice).values(
        seller_id=seller_id,
        begun_at=now,
        ended_at=now if one.is_event else None,
        **{name: getattr(one, name) for name in NewsItem.__slots__},
    )
    return await session.scalar(written.on_conflict_do_nothing().returning(Notice.id))


async def _to_webhooks(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    written: Sequence[tuple[int, NewsItem]],
    now: datetime,
) -> None:
    on = select(Webhook.id, Webhook.kinds).where(
        Webhook.seller_id == seller_id, Webhook.off_at.is_(None)
    )
    webhooks = (await session.execute(on.order_by(Webhook.id))).all()
    rows = [
        delivery(seller_id, webhook_id, one.kind, message_body(settings, id, one, now), now)
        for id, one in written
        for webhook_id, kinds in webhooks
        if not kinds or one.kind in kinds
    ]
    if rows:
        await session.execute(insert(WebhookDelivery), rows)
        await mark_due_by(session, seller_id, WEBHOOKS, now)


def delivery(
    seller_id: int,
    webhook_id: int,
    kind: str,
    body: str,
    now: datetime,
) -> dict[str, object]:
    """Return the row of a message for a webhook that is due immediately."""
    return {
        "seller_id": seller_id,
        "webhook_id": webhook_id,
        "message_id": new_message_id(),
        "kind": kind,
        "body": body,
        "created_at": now,
        "next_at": now,
    }


def message_body(
    settings: Settings,
    notice_id: int | None,
    one: NewsItem,
    now: datetime,
) -> str:
    data = struct_of(NoticeData, one, notice_id=notice_id, url=settings.origin + one.path)
    return msgspec.json.encode(Message(one.kind, rfc3339(now), data)).decode()


async def _to_members(
    session: AsyncSession,
    seller_id: int,
    written: Sequence[tuple[int, NewsItem]],
    now: datetime,
) -> None:
    zone = await session.scalar(select(Account.time_zone).where(Account.seller_id == seller_id))
    digest_at = next_digest(now, zone or "UTC")
    rows = [
        {
            "seller_id": seller_id,
            "notice_id": id,
            "member_id": reader.member_id,
            "due_at": now if way == "at_once" else digest_at,
        }
        for reader in await _readers(session, seller_id)
        for id, one in written
        if reader.role == "owner" or not one.owner_only
        if (way := way_of(one.kind, reader.role, reader.ways)) != "never"
    ]
    if rows:
        await session.execute(insert(NoticeMail), rows)
        soonest = now if any(row["due_at"] == now for row in rows) else digest_at
        await mark_due_by(session, seller_id, MAIL, soonest)


async def _readers(session: AsyncSession, seller_id: int) -> list[_Reader]:
    """Return the members who have joined and have not stopped all mail."""
    own = (NoticeReader.seller_id == seller_id) & (NoticeReader.member_id == Member.id)
    query = (
        select(Member.id, Member.role, NoticeReader.ways)
        .join(NoticeReader, own, isouter=True)
        .where(
            Member.seller_id == seller_id,
            Member.password_hash.is_not(None),
            NoticeReader.stopped_at.is_(None),
        )
        .order_by(Member.id)
    )
    return [
        _Reader(id, role, ways or {}) for id, role, ways in (await session.execute(query)).all()
    ]

"""Reads and changes the notices that a member gets by mail, and stops all mail to a member."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note, note_by
from cardsync.access.caller import Caller
from cardsync.access.models import Member, Seller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.settings import Settings
from cardsync.shop.notices.models import NoticeReader
from cardsync.shop.notices.notice_kinds import Way, kinds_for, way_of
from cardsync.shop.notices.schemas import ChoicesBody, NoticeKindBody
from cardsync.shop.notices.unsubscribe_links import Unsubscriber


async def choices(
    source: Source,
    caller: Caller,
    settings: Settings,
) -> ChoicesBody:
    """Return the way of each kind of notice: the member's own choice, or else the role's
    default.
    """
    row = await _reader(source, caller.seller_id, _member(caller))
    ways = row.ways if row else {}
    return ChoicesBody(
        settings.sends_mail,
        row is not None and row.stopped_at is not None,
        [
            NoticeKindBody(kind, each.label, each.group, way_of(kind, caller.role, ways))
            for kind, each in kinds_for(caller.role).items()
        ],
    )


async def choose(
    session: AsyncSession,
    caller: Caller,
    ways: Mapping[str, Way],
    stopped: bool | None,
    now: datetime,
) -> None:
    """Set the ways of the kinds in `ways` and, unless `stopped` is None, whether all mail is
    stopped. Raises InvalidPayload.
    """
    allowed = kinds_for(caller.role)
    for kind in ways:
        if kind not in allowed:
            raise errors.InvalidPayload(f"ways: there is no notice {kind}")
    member_id = _member(caller)
    before = await _reader(session, caller.seller_id, member_id)
    kept = (before.ways if before else {}) | dict(ways)
    was_stopped = before.stopped_at if before else None
    stopped_at = was_stopped if stopped is None else ((was_stopped or now) if stopped else None)
    await _put(session, caller.seller_id, member_id, kept, stopped_at)
    note(session, caller, "notices.chosen", "notification choices changed", now)


async def is_reader(session: AsyncSession, who: Unsubscriber) -> str | None:
    """Return the shop's name if the member still exists, else None."""
    member = exists().where(Member.seller_id == who.seller_id, Member.id == who.member_id)
    return await session.scalar(select(Seller.name).where(Seller.id == who.seller_id, member))


async def stop_mail(
    session: AsyncSession,
    who: Unsubscriber,
    now: datetime,
) -> None:
    """Stop all mail to the member of an unsubscribe link. A repeated call changes nothing."""
    before = await _reader(session, who.seller_id, who.member_id)
    if before is not None and before.stopped_at is not None:
        return
    await _put(session, *who, before.ways if before else {}, now)
    actor = f"member {who.member_id}"
    note_by(session, who.seller_id, actor, "notices.unsubscribed", "all mail stopped", now)


def _member(caller: Caller) -> int:
    if caller.member_id is None:
        raise errors.SessionRequired
    return caller.member_id


async def _reader(source: Source, seller_id: int, member_id: int) -> NoticeReader | None:
    own = "AND member_id = :member"
    return next(iter(await rows_as(source, NoticeReader, seller_id, own, member=member_id)), None)


async def _put(
    session: AsyncSession,
    seller_id: int,
    member_id: int,
    ways: dict[str, str],
    stopped_at: datetime | None,
) -> None:
    values = {"ways": ways, "stopped_at": stopped_at}
    written = insert(NoticeReader).values(seller_id=seller_id, member_id=member_id, **values)
    key = [NoticeReader.seller_id, NoticeReader.member_id]
    await session.execute(written.on_conflict_do_update(index_elements=key, set_=values))

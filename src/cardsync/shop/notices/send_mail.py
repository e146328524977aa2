"""Sends mail. One letter has all due notices of a member; a letter without notices is not sent.

A worker claims notices by setting the time of their next try, as if this try had failed. If the
worker is killed, the letter is sent again with the same notices and the same Message-ID, so that
mail programs recognize it as the same mail. The member's role and choices at the time of sending
count.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import procrastinate
import structlog
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import as_owner
from cardsync.access.models import Account, Member, Seller
from cardsync.platform import clock
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.plurals import counted
from cardsync.platform.settings import Settings
from cardsync.platform.telemetry import spans
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import SENDING, Work, jobs
from cardsync.platform.work.metrics import SENT
from cardsync.platform.work.streams import hold_mark, leave_mark
from cardsync.shop.notices.mail_server import NotSent, Undeliverable, hand_over, turn_at
from cardsync.shop.notices.mail_text import SETTINGS, Letter, Line, mail_of, sender_of
from cardsync.shop.notices.marked_streams import stream_of, while_quick
from cardsync.shop.notices.models import Notice, NoticeReader
from cardsync.shop.notices.next_times import next_try
from cardsync.shop.notices.notice_kinds import way_of
from cardsync.shop.notices.record_notices import MAIL
from cardsync.shop.notices.unsubscribe_links import Unsubscriber, unsubscribe_url
from cardsync.shop.today.sync_result import last_brought

log = structlog.get_logger(__name__)

LETTERS_A_TURN: Final = 20
_CLAIMED_FOR: Final = timedelta(minutes=2)
# The time until waiting mails are checked again if no mail server is set.
_NO_SERVER: Final = timedelta(hours=1)
_NEXT: Final = """
    SELECT member_id, letter, sent_to FROM notice_mail
     WHERE seller_id = :seller AND state = 'waiting' AND due_at <= :now
     ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
# A letter that was tried before keeps its notices. A new letter gets all due notices of the member.
_CLAIM: Final = queries_of(__package__)["claim_mails"]
_SETTLE: Final = """
    UPDATE notice_mail SET state = :state, settled_at = :now
     WHERE seller_id = :seller AND id = ANY(:ids) AND state = 'waiting' AND letter = :letter
"""
_LATER: Final = """
    UPDATE notice_mail SET due_at = :until
     WHERE seller_id = :seller AND id = ANY(:ids) AND state = 'waiting' AND letter = :letter
"""
_SOONEST: Final = """
    SELECT min(due_at) FROM notice_mail WHERE seller_id = :seller AND state = 'waiting'
"""


@dataclass(frozen=True)
class Claimed:
    """The notices of one member that this worker sends now."""

    seller_id: int
    member_id: int
    letter: str
    ids: list[int]
    notice_ids: list[int]
    tries: int
    first_at: datetime
    to: str | None


class _Reader(NamedTuple):
    email: str
    role: str
    ways: dict[str, str]
    sees_revenue: bool
    shop: str


async def claim(work: Work, seller_id: int) -> Claimed | None:
    """Claim the notice that has been due longest, with all other due notices of the same member.
    Return None if no notice is due.
    """
    now = clock.now()
    values: dict[str, object] = {"seller": seller_id, "now": now, "until": now + _CLAIMED_FOR}
    async with work.database.tenant(seller_id) as session:
        first = (await session.execute(text(_NEXT), values)).one_or_none()
        if first is None:
            return None
        letter = first.letter or _new_message_id(work.settings)
        values |= {"member": first.member_id, "tried": first.letter, "letter": letter}
        values["to"] = first.sent_to
        rows = (await session.execute(text(_CLAIM), values)).all()
    ids, notice_ids = [row.id for row in rows], [row.notice_id for row in rows]
    tries, first_at = max(row.tries for row in rows), min(row.first_try_at for row in rows)
    return Claimed(
        seller_id, first.member_id, letter, ids, notice_ids, tries, first_at, first.sent_to
    )


def _new_message_id(settings: Settings) -> str:
    domain = sender_of(settings.mail_from or "")[1].rpartition("@")[2]
    return f"<notice.{secrets.token_hex(16)}@{domain}>"


async def write(
    work: Work,
    claimed: Claimed,
    now: datetime,
) -> Letter | None:
    """Return the letter with the claimed notices, or None if the member may get none of them any
    more.
    """
    settings = work.settings
    brought = await _brought(work, claimed.seller_id)
    async with work.database.tenant(claimed.seller_id) as session:
        reader = await _reader(session, claimed)
        if reader is None:
            return None
        own = (Notice.seller_id == claimed.seller_id) & Notice.id.in_(claimed.notice_ids)
        lasting = Notice.is_event | Notice.ended_at.is_(None)
        query = select(Notice).where(own, lasting).order_by(Notice.id)
        notices = (await session.scalars(query)).all()
    chosen = notices if claimed.to else _chosen(notices, reader)
    lines = _lines(chosen, reader, settings)
    if not lines:
        return None
    who = Unsubscriber(claimed.seller_id, claimed.member_id)
    return Letter(
        settings.mail_from or "",
        claimed.to or reader.email,
        reader.shop,
        lines,
        claimed.letter,
        now,
        unsubscribe_url(settings, who),
        settings.origin + SETTINGS,
        brought if reader.sees_revenue else None,
    )


async def _brought(work: Work, seller_id: int) -> Line | None:
    """Return a line with the result of the last sync; None if it changed no prices."""
    owner = await as_owner(work.database, seller_id)
    if owner is None:
        return None
    async with work.database.readings.of(seller_id, work.settings.read_seconds) as reading:
        found = await last_brought(reading, owner)
    if found is None or not (found.raised or found.lowered):
        return None
    said = f"The last sync raised {counted(found.raised, 'price', 'prices')} by"
    said += f" ${found.raised_value} and lowered {counted(found.lowered, 'price', 'prices')} by"
    url = f"{work.settings.origin}/sync/result?cycle={found.id}"
    sentence = f"{said} ${found.lowered_value}."
    return Line("info", sentence, "See what it brought", url, None)


async def _reader(session: AsyncSession, claimed: Claimed) -> _Reader | None:
    """Return the member with its current role and choices; None if the member was removed or has
    stopped all mail.
    """
    choice = (NoticeReader.seller_id == claimed.seller_id) & (NoticeReader.member_id == Member.id)
    query = (
        select(
            Member.email,
            Member.role,
            NoticeReader.ways,
            NoticeReader.stopped_at,
            Account.staff_see_revenue,
            Account.store_name,
            Seller.name,
            Account.suspended,
        )
        .select_from(Member)
        .join(Account, Account.seller_id == claimed.seller_id)
        .join(Seller, Seller.id == claimed.seller_id)
        .join(NoticeReader, choice, isouter=True)
        .where(Member.seller_id == claimed.seller_id, Member.id == claimed.member_id)
    )
    row = (await session.execute(query)).one_or_none()
    if row is None or row.suspended or (row.stopped_at is not None and claimed.to is None):
        return None
    sees = row.role == "owner" or row.staff_see_revenue
    return _Reader(row.email, row.role, row.ways or {}, sees, row.store_name or row.name)


def _chosen(notices: Sequence[Notice], reader: _Reader) -> list[Notice]:
    return [
        one
        for one in notices
        if reader.role == "owner" or not one.owner_only
        if way_of(one.kind, reader.role, reader.ways) != "never"
    ]


def _lines(
    notices: Sequence[Notice],
    reader: _Reader,
    settings: Settings,
) -> list[Line]:
    return [
        Line(
            one.severity,
            one.sentence,
            one.label,
            settings.origin + one.path,
            one.money if reader.sees_revenue else None,
        )
        for one in notices
    ]


async def send_one(work: Work, claimed: Claimed) -> None:
    """Try to send a letter, and record the outcome."""
    now = clock.now()
    bound = log.bind(seller_id=claimed.seller_id, member_id=claimed.member_id)
    letter = await write(work, claimed, now)
    if letter is None:
        await _settle(work, claimed, "dropped")
        return
    try:
        with spans.part("mail", kind="client"):
            settings = work.settings
            await hand_over(settings.mail_url or "", mail_of(letter), settings.mail_seconds)
    except (Undeliverable, ValueError) as e:
        # ValueError means that the address is invalid.
        SENT.labels("mail", "refused").inc()
        bound.warning("mail_refused", reason=type(e).__name__)
        await _settle(work, claimed, "failed")
    except NotSent as e:
        SENT.labels("mail", "failed").inc()
        until = next_try(claimed.tries, claimed.first_at, now, claimed.letter)
        bound.warning("mail_not_sent", reason=str(e), tries=claimed.tries)
        await _settle(work, claimed, "failed" if until is None else "waiting", until)
    else:
        SENT.labels("mail", "sent").inc()
        bound.info("mail_sent", notices=len(letter.lines))
        await _settle(work, claimed, "sent")


async def _settle(
    work: Work,
    claimed: Claimed,
    state: str,
    until: datetime | None = None,
) -> None:
    values = {
        "seller": claimed.seller_id,
        "ids": claimed.ids,
        "letter": claimed.letter,
        "state": state,
        "until": until,
        "now": clock.now(),
    }
    async with work.database.tenant(claimed.seller_id) as session:
        await run(session, _SETTLE if until is None else _LATER, values)


async def send_due(work: Work, seller_id: int) -> None:
    """Send the due letters, and set the mark to the time of the next letter."""
    again: datetime | None = None
    if work.settings.sends_mail:
        for _ in while_quick(LETTERS_A_TURN):
            with turn_at(work.settings.mail_url or "") as again:
                claimed = None if again else await claim(work, seller_id)
                if claimed is None:
                    break
                await send_one(work, claimed)
    else:
        again = clock.now() + _NO_SERVER
    async with work.database.tenant(seller_id) as session:
        if await hold_mark(session, seller_id, MAIL):
            soonest = await session.scalar(text(_SOONEST), {"seller": seller_id})
            if soonest is not None and again is not None:
                soonest = max(soonest, again)
            await leave_mark(session, seller_id, MAIL, soonest)


STREAM: Final = stream_of(MAIL, send_due)


@jobs.task(name="notices.mail", queue=SENDING, pass_context=True)
async def send_mail(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, send_mail, context, seller_id)

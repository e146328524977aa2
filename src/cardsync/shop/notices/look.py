"""Checks regularly what to report of a shop: compares the conditions of Today with the conditions
that are already reported, and reads the events since the last check.

A check is one transaction that locks the seller's mark in `work_due`, so that two workers do not
report the same condition, and a killed worker reports nothing. Each check also reads the events of
the last `_OVERLAP` again, because an event may be committed later than its time. An event is stored
only once, by its key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import procrastinate
from sqlalchemy import exists, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller, as_owner
from cardsync.agents.sync.last_seen import LastSeen
from cardsync.platform import clock
from cardsync.platform.database.session import run
from cardsync.platform.settings import Settings
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, jobs
from cardsync.platform.work.streams import hold_mark, leave_mark
from cardsync.shop.notices.marked_streams import stream_of
from cardsync.shop.notices.models import Notice, NoticeLook, Webhook
from cardsync.shop.notices.news import NewsItem, Reported, news, of_conditions
from cardsync.shop.notices.notice_events import events_since, new_orders, newest_order
from cardsync.shop.notices.record_notices import record
from cardsync.shop.today.conditions import conditions
from cardsync.shop.today.queries import read_facts

LOOK: Final = "notices"
_OVERLAP: Final = timedelta(hours=1)
# After a longer pause between two checks, earlier events are not reported.
_STALE: Final = timedelta(days=1)
_MARK_ALL: Final = """
    INSERT INTO work_due (seller_id, stream, due_at)
    SELECT seller.id, :stream, :now FROM seller
     WHERE NOT EXISTS (SELECT FROM work_due w
                        WHERE w.seller_id = seller.id AND w.stream = :stream)
       AND NOT EXISTS (SELECT FROM account_deletion d
                        WHERE d.seller_id = seller.id AND d.begun_at IS NOT NULL)
    ON CONFLICT DO NOTHING
"""


async def watch_all(work: Work) -> int:
    """Set the mark of each shop without a mark, so that workers check the shop. Return the number
    of new marks. If the installation sends no mail, set none: only webhooks need the checks then,
    and creating a webhook sets the mark.
    """
    if not work.settings.sends_mail:
        return 0
    async with work.database.shared() as session:
        return await run(session, _MARK_ALL, {"stream": LOOK, "now": clock.now()})


async def look(work: Work, seller_id: int) -> None:
    """Report the new conditions and events of a shop, and set the mark to the time of the next
    check.
    """
    settings, now = work.settings, clock.now()
    caller = await as_owner(work.database, seller_id)
    async with work.database.tenant(seller_id) as session:
        due_at = await hold_mark(session, seller_id, LOOK)
        if due_at is None or due_at > now:
            return
        if caller is None or not await _is_wanted(session, settings, seller_id):
            await leave_mark(session, seller_id, LOOK, None)
            return
        if not caller.account.suspended:
            await _report(work, session, caller, now)
        await leave_mark(session, seller_id, LOOK, now + timedelta(seconds=settings.notice_seconds))


async def _is_wanted(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
) -> bool:
    if settings.sends_mail:
        return True
    on = select(exists().where(Webhook.seller_id == seller_id, Webhook.off_at.is_(None)))
    return bool(await session.scalar(on))


async def _report(
    work: Work,
    session: AsyncSession,
    caller: Caller,
    now: datetime,
) -> None:
    seller_id, settings = caller.seller_id, work.settings
    async with work.database.readings.of(seller_id, settings.read_seconds) as reading:
        agent = await LastSeen(work.database).agent(reading, caller)
        facts = await read_facts(caller, reading, agent, now, settings.catalog_renewal_days)
    changed = news(
        await _reported(session, seller_id), of_conditions(conditions(facts, owner=True))
    )
    if changed.ended:
        over = update(Notice).where(Notice.seller_id == seller_id, Notice.id.in_(changed.ended))
        await session.execute(over.values(ended_at=now))
    events = await _events(session, settings, seller_id, now)
    await record(session, settings, seller_id, [*changed.begun, *events], now)


async def _reported(session: AsyncSession, seller_id: int) -> list[Reported]:
    lasting = select(Notice.id, Notice.key, Notice.severity).where(
        Notice.seller_id == seller_id, Notice.ended_at.is_(None)
    )
    return [Reported(*row) for row in (await session.execute(lasting)).all()]


async def _events(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    now: datetime,
) -> list[NewsItem]:
    """Return the events since the last check. At the first check, and after a pause longer than
    `_STALE`, earlier events are stored but not sent.
    """
    last = await session.scalar(select(NoticeLook).where(NoticeLook.seller_id == seller_id))
    newest = await newest_order(session, seller_id)
    since = now if last is None else max(last.looked_at, now - _STALE)
    found = await events_since(session, seller_id, since - _OVERLAP)
    if last is None or last.looked_at < now - _STALE:
        await record(session, settings, seller_id, found, now, quietly=True)
        found = []
    else:
        found += await new_orders(session, seller_id, last.newest_order, now)
    look = {"looked_at": now, "newest_order": newest}
    kept = insert(NoticeLook).values(seller_id=seller_id, **look)
    await session.execute(
        kept.on_conflict_do_update(index_elements=[NoticeLook.seller_id], set_=look)
    )
    return found


STREAM: Final = stream_of(LOOK, look)


@jobs.task(name="notices.look", queue="notices", pass_context=True)
async def look_for_news(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, look_for_news, context, seller_id)

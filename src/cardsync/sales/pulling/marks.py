"""Stores the marks that phones send, and returns the outcome of each mark. A mark reports that
copies of a card were pulled, moved to the end, or not found, or it undoes another mark.

The phone creates a mark's id, by which a mark that is sent twice is stored once. Marks may arrive
in any order. One transaction stores the marks and applies them: an order with all copies pulled is
marked as pulled, and an order with a missing card needs review.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.notify import notify
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.plurals import counted
from cardsync.sales.limits import (
    PULL_LINK_MARKS,
    PULL_LINK_MARKS_A_COPY,
    PULL_LINK_MARKS_MOST,
    PULL_MARKS,
)
from cardsync.sales.orders import pull_sessions
from cardsync.sales.pulling.progress import Mark, Outcome
from cardsync.sales.pulling.queue import OF_LINK, PhoneLink, Queue, read_queue

CLAIM_SECONDS: Final = 60

_STORE = queries_of(__package__)["store_marks"]
# The statement sets `undone` of all marks with an undo, because an undo may arrive before its mark.
_TAKE_BACK = """
UPDATE pull_mark SET undone = true
 WHERE seller_id = :seller AND session_id = :session AND kind <> 'undo' AND NOT undone
   AND id IN (SELECT undoes FROM pull_mark
               WHERE seller_id = :seller AND session_id = :session AND kind = 'undo')
"""


async def record(
    session: AsyncSession,
    caller: Caller,
    link: PhoneLink,
    marks: Sequence[tuple[Mark, int]],
    now: datetime,
) -> Queue:
    """Store and apply the marks, each with its number in its device's sequence, and return the
    updated queue. Raises PullLinkEnded, InvalidPayload.
    """
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    await _link_is_open(session, seller_id, link)
    await _take_only_its_game(session, seller_id, link, marks)
    new = await _store(session, seller_id, link, marks, now)
    if new:
        await _leave_room(session, seller_id, link)
    queue = await read_queue(session, caller, link.session_id, now)
    if new:
        await session.execute(text(_TAKE_BACK), {"seller": seller_id, "session": link.session_id})
        await _release(session, seller_id, link, [m for m, _ in marks if m.id in new])
        await _carry_on(session, caller, link, queue, [m for m, _ in marks if m.id in new], now)
        cards = counted(len(new), "card", "cards")
        games = "all games" if link.product_line is None else link.product_line or "other"
        action_summary = f"phone: {cards} marked ({games}, pull {link.session_id})"
        note(session, caller, "pull_queue.marked", action_summary, now, after={"marks": len(new)})
        await notify(session, pull_sessions.PULLS, f"{seller_id}:{link.session_id}")
    return queue


async def _link_is_open(session: AsyncSession, seller_id: int, link: PhoneLink) -> None:
    """Raise PullLinkEnded if the link has ended, which may happen while the request waits for the
    lock.
    """
    is_open = await session.scalar(
        text("""
            SELECT count(*) FROM pull_link l JOIN pull_session s ON s.seller_id = l.seller_id
                                                                AND s.id = l.session_id
             WHERE l.seller_id = :seller AND s.seller_id = :seller AND l.id = :link
               AND l.revoked_at IS NULL AND s.state = 'open'
        """),
        {"seller": seller_id, "link": link.id},
    )
    if not is_open:
        raise errors.PullLinkEnded


async def _take_only_its_game(
    session: AsyncSession,
    seller_id: int,
    link: PhoneLink,
    marks: Sequence[tuple[Mark, int]],
) -> None:
    """Raise InvalidPayload for a mark on a card of a game that the link does not show. Marks on
    cards that were removed from the session are accepted.
    """
    named = {
        "seller": seller_id,
        "session": link.session_id,
        "line": link.product_line,
        "items": [mark.item_id for mark, _ in marks],
    }
    other: int | None = await session.scalar(
        text(f"""
            SELECT min(item_id) FROM pull_session_item
             WHERE seller_id = :seller AND session_id = :session
               AND item_id = ANY(CAST(:items AS bigint[])) AND NOT {OF_LINK}
        """),
        named,
    )
    if other is not None:
        raise errors.InvalidPayload(f"item_id: card {other} is not of this link's game")


async def _leave_room(session: AsyncSession, seller_id: int, link: PhoneLink) -> None:
    """Raise InvalidPayload if the link or the session has too many marks. Marks of revoked links
    and of members' pages do not count.
    """
    named = {
        "seller": seller_id,
        "session": link.session_id,
        "link": link.id,
        "line": link.product_line,
    }
    counted = await session.execute(
        text("""
            SELECT count(*) FILTER (WHERE m.link_id = :link) AS mine, count(*) AS together
              FROM pull_mark m JOIN pull_link l ON l.seller_id = m.seller_id AND l.id = m.link_id
             WHERE m.seller_id = :seller AND l.seller_id = :seller AND m.session_id = :session
               AND l.revoked_at IS NULL
        """),
        named,
    )
    mine, together = counted.one()
    copies = await session.scalar(
        text(f"""
            SELECT coalesce(sum(coalesce(quantity, 1)), 0) FROM pull_session_item
             WHERE seller_id = :seller AND session_id = :session AND {OF_LINK}
        """),
        named,
    )
    share = PULL_LINK_MARKS + PULL_LINK_MARKS_A_COPY * int(copies)
    if mine > min(share, PULL_LINK_MARKS_MOST):
        raise errors.InvalidPayload(
            "marks: this link has sent more than its cards need; the desk can revoke it and print"
            " another"
        )
    if together > PULL_MARKS:
        raise errors.InvalidPayload(
            f"marks: a pull session can have at most {PULL_MARKS} marks; end it and open another"
        )


async def _store(
    session: AsyncSession,
    seller_id: int,
    link: PhoneLink,
    marks: Sequence[tuple[Mark, int]],
    now: datetime,
) -> set[str]:
    """Store the marks, and return the ids of the marks that were not stored before."""
    rows = await session.scalars(
        text(_STORE),
        {
            "seller": seller_id,
            "session": link.session_id,
            "link": link.id,
            "now": now,
            "ids": [mark.id for mark, _ in marks],
            "items": [mark.item_id for mark, _ in marks],
            "kinds": [mark.kind for mark, _ in marks],
            "quantities": [mark.quantity for mark, _ in marks],
            "undoes": [mark.undoes for mark, _ in marks],
            "devices": [mark.device for mark, _ in marks],
            "sequences": [sequence for _, sequence in marks],
            "people": [mark.person for mark, _ in marks],
        },
    )
    return set(rows)


async def _release(
    session: AsyncSession, seller_id: int, link: PhoneLink, marks: Sequence[Mark]
) -> None:
    await session.execute(
        text("""
            DELETE FROM pull_claim WHERE seller_id = :seller AND session_id = :session
               AND item_id = ANY(CAST(:items AS bigint[]))
        """),
        {
            "seller": seller_id,
            "session": link.session_id,
            "items": [mark.item_id for mark in marks],
        },
    )


async def _carry_on(
    session: AsyncSession,
    caller: Caller,
    link: PhoneLink,
    queue: Queue,
    marks: Sequence[Mark],
    now: datetime,
) -> None:
    """Set `pulled_at` and `missing_at` of the orders of these marks. An undo of a mark may clear
    both.
    """
    touched = {mark.item_id for mark in marks}
    undone = {mark.item_id for mark in marks if mark.kind == "undo"}
    undone |= {mark.item_id for mark in marks if queue.progress.outcomes[mark.id] == "undone"}
    for order_id in sorted({e.order_id for e in queue.entries if e.item_id in touched}):
        entries = [entry for entry in queue.entries if entry.order_id == order_id]
        missing = [e for e in entries if e.line.state == "missing" and e.settled is None]
        some_undone = any(entry.item_id in undone for entry in entries)
        if all(entry.done for entry in entries):
            await pull_sessions.mark_pulled(session, caller, link.session_id, order_id, now)
        elif some_undone:
            await pull_sessions.keep_unpulled(session, caller, link.session_id, order_id, now)
        said = {mark.item_id: mark for mark in reversed(marks) if mark.kind == "missing"}
        lost = [
            pull_sessions.MissingMark(entry.item_id, mark.person, mark.reason)
            if (mark := said.get(entry.item_id))
            else pull_sessions.MissingMark(entry.item_id, "", "not_there")
            for entry in missing
        ]
        await pull_sessions.keep_missing(session, caller, link.session_id, order_id, lost, now)


_IN_QUEUE: Final = f"""
    SELECT count(*) FROM pull_session_item
     WHERE seller_id = :seller AND session_id = :session AND item_id = :item AND {OF_LINK}
"""
# A phone shows one card at a time, so its claims on other cards end.
_FREE: Final = """
    DELETE FROM pull_claim WHERE seller_id = :seller AND session_id = :session
       AND device = :device AND item_id <> :item
"""
_CLAIM: Final = """
    INSERT INTO pull_claim AS c (seller_id, session_id, item_id, device, until)
    VALUES (:seller, :session, :item, :device, :until)
    ON CONFLICT (seller_id, session_id, item_id)
       DO UPDATE SET device = excluded.device, until = excluded.until
     WHERE c.device = excluded.device OR c.until <= :now
"""


async def claim(
    session: AsyncSession,
    caller: Caller,
    link: PhoneLink,
    item_id: int,
    device: str,
    now: datetime,
) -> bool:
    """Claim a card for the phone that shows it; return False if another phone has claimed it.
    Raises PullLinkEnded, NotFound.
    """
    named = {
        "seller": caller.seller_id,
        "session": link.session_id,
        "item": item_id,
        "line": link.product_line,
        "device": device,
        "now": now,
        "until": now + timedelta(seconds=CLAIM_SECONDS),
    }
    await _link_is_open(session, caller.seller_id, link)
    if not await session.scalar(text(_IN_QUEUE), named):
        raise errors.NotFound(f"card {item_id} is no longer in this queue")
    freed = await run(session, _FREE, named)
    taken = await run(session, _CLAIM, named)
    if taken or freed:
        await notify(session, pull_sessions.PULLS, f"{caller.seller_id}:{link.session_id}")
    return taken > 0


def outcome_of(queue: Queue, mark_id: str) -> tuple[Outcome, int]:
    """Return a mark's outcome, and the number of its copies that must be returned to the shelf."""
    progress = queue.progress
    return progress.outcomes.get(mark_id, "gone"), progress.surplus.get(mark_id, 0)

"""Reopens an ended pull session, and marks a pulled order as not pulled."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.notify import notify
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run
from cardsync.sales.orders.pull_models import PullSession
from cardsync.sales.orders.pull_sessions import ENDS, PULLS, order_number

_LATER: Final = """
    SELECT FROM pull_session later
      JOIN pull_session s ON s.seller_id = later.seller_id AND s.opened_at < later.opened_at
     WHERE later.seller_id = :seller AND s.seller_id = :seller AND s.id = :session
"""
_FOLLOW: Final = """
    UPDATE pull_session_order SET in_review = false, changed = '{}'
     WHERE seller_id = :seller AND session_id = :session AND (in_review OR changed <> '{}')
"""
_LEAVE: Final = """
    DELETE FROM pull_session_order p USING orders
     WHERE p.seller_id = :seller AND p.session_id = :session AND orders.seller_id = :seller
       AND orders.id = p.order_id AND orders.pull_dismissed_at IS NOT NULL
"""


async def _ended(undoing: Undoing) -> Swap:
    if await undoing.run(_LATER):
        raise errors.ChangedSince("another pull was started since")
    pull = undoing["session"]
    return Swap({pull: {"state": ENDS[undoing["kind"]]}}, {pull: {"state": "open"}})


async def _reopened(undoing: Undoing) -> None:
    """Make the reopened session show its orders' changes again, without orders that were set aside
    since. The links of its phones work again.
    """
    await undoing.run(_FOLLOW, _LEAVE)
    await notify(undoing.session, PULLS, f"{undoing.seller_id}:{undoing['session']}")


REOPEN: Final = UndoRows(
    RowImages(PullSession, "state", unseen=("completed_at",)),
    "pull {id} is {standing[state]}",
    read=_ended,
    then=_reopened,
)


# The order may be pulled in the open session, which phones show, and in completed sessions.
_UNPULL: Final = """
    UPDATE pull_session_order p SET pulled_at = NULL FROM pull_session s
     WHERE p.seller_id = :seller AND p.order_id = :id AND p.pulled_at IS NOT NULL
       AND s.seller_id = :seller AND s.id = p.session_id AND s.state <> 'cancelled'
    RETURNING p.session_id
"""
_UNMARK: Final = """
    UPDATE pull_mark m SET undone = true FROM pull_session s
     WHERE m.seller_id = :seller AND m.order_id = :id AND m.kind = 'pulled' AND NOT m.undone
       AND s.seller_id = :seller AND s.id = m.session_id AND s.state = 'open'
"""


async def pull_again(session: AsyncSession, caller: Caller, order_id: int, now: datetime) -> None:
    """Mark an order as not pulled in all sessions, so that it can be pulled again. Phones show its
    copies in the open session as not pulled. Idempotent. Raises NotFound.
    """
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    number = await order_number(session, seller_id, order_id)
    named = {"seller": seller_id, "id": order_id}
    sessions = (await session.scalars(text(_UNPULL), named)).all()
    if not sessions:
        return
    await run(session, _UNMARK, named)
    for session_id in sessions:
        await notify(session, PULLS, f"{seller_id}:{session_id}")
    note(session, caller, "order.unmarked_pulled", f"order {number} returned to pulls", now)

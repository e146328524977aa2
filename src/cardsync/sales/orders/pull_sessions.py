"""Opens a pull session with a fixed snapshot of orders, marks its orders, and ends it.

Every write first takes the seller's `Lock.SHOP`, so that writes run one after the other; a unique
index guarantees that at most one session is open. Uploads do not change sessions: a session keeps
its copies of orders and items, and `pull_changes.py` compares them with the current orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.notify import notify
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.sales.errors import PullSessionOpen
from cardsync.sales.orders.filter_sql import KNOWN_SESSION, all_conditions, unknown_session
from cardsync.sales.orders.order_filter import OrderFilter
from cardsync.sales.orders.pull_changes import CHANGED, KEPT_OF_ITEM, KEPT_OF_ORDER
from cardsync.sales.orders.pull_models import MissingReason
from cardsync.sales.orders.pullable import NEEDS_REVIEW, PULLABLE, TO_SHIP_STATUSES

# The notification topic for changed sessions; the payload is `seller:session`.
PULLS: Final = "pulls"
# The actions that end a session and can be undone (`shop/activity/undo_kinds.py`).
COMPLETED: Final = "pull_session.completed"
CANCELLED: Final = "pull_session.cancelled"
ENDS: Final = {COMPLETED: "completed", CANCELLED: "cancelled"}
# The maximum number of unknown orders that an error message lists.
_NAMED: Final = 100


async def open_session(
    session: AsyncSession,
    caller: Caller,
    order_ids: Sequence[int] | None,
    wanted: OrderFilter,
    now: datetime,
) -> int:
    """Open a session of the pullable orders that match the filter and, if `order_ids` is not None,
    are in `order_ids`. Return the session's id.

    Raises PullSessionOpen, and InvalidPayload if an order, or a session in the filter, is not the
    seller's.
    """
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    if isinstance(wanted.pull_session, int):
        asked = {"seller": seller_id, "pull_session": wanted.pull_session}
        if not await session.scalar(text(KNOWN_SESSION), asked):
            raise unknown_session(wanted.pull_session)
    await need_orders(session, seller_id, order_ids or ())
    named = {"seller": seller_id, "now": now}
    opening = (
        "INSERT INTO pull_session (seller_id, opened_at) VALUES (:seller, :now)"
        " ON CONFLICT DO NOTHING RETURNING id"
    )
    session_id = await session.scalar(text(opening), named)
    if session_id is None:
        raise PullSessionOpen
    shown = wanted.asked_by(caller)
    count = await _take(session, seller_id, int(session_id), order_ids, shown)
    note(
        session,
        caller,
        "pull_session.opened",
        f"pull {session_id} opened with {count} orders",
        now,
    )
    return int(session_id)


async def need_orders(session: AsyncSession, seller_id: int, order_ids: Sequence[int]) -> None:
    """Raise InvalidPayload if an order is not the seller's."""
    known = text("SELECT id FROM orders WHERE seller_id = :seller AND id = ANY (:ids)")
    found = await session.scalars(known, {"seller": seller_id, "ids": list(order_ids)})
    if unknown := sorted(set(order_ids).difference(found)):
        named = ", ".join(map(str, unknown[:_NAMED]))
        rest = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
        missing = (
            f"order {named} does not exist"
            if len(unknown) == 1
            else f"orders {named}{rest} do not exist"
        )
        raise errors.InvalidPayload(f"order_ids: {missing}")


async def _take(
    session: AsyncSession,
    seller_id: int,
    session_id: int,
    order_ids: Sequence[int] | None,
    wanted: OrderFilter,
) -> int:
    conditions, values = all_conditions(wanted)
    if order_ids is not None:
        conditions.append("orders.id = ANY(:ids)")
        values["ids"] = list(order_ids)
    to_ship = await session.scalars(text(TO_SHIP_STATUSES), {"seller": seller_id})
    values["to_ship_statuses"] = to_ship.all()
    where = " AND ".join(["orders.seller_id = :seller", PULLABLE, *conditions])
    of_order = ", ".join(KEPT_OF_ORDER)
    of_item = ", ".join(KEPT_OF_ITEM)
    now_of_item = ", ".join(f"i.{name}" for name in KEPT_OF_ITEM)
    # One statement copies orders and items, so that no upload can commit between the two copies.
    taken = await session.execute(
        text(
            queries_of(__package__)["take_orders"].format(
                of_order=of_order,
                kept=", ".join(KEPT_OF_ORDER.values()),
                where=where,
                of_item=of_item,
                now_of_item=now_of_item,
            )
        ),
        {"seller": seller_id, "session": session_id} | values,
    )
    return int(taken.scalar_one())


# If an order is pulled or moved to the end on a member's page, the statement inserts marks for the
# copies that no phone has marked, so that phones show the change. An order that is no longer to be
# pulled gets no marks.
_AT_THE_DESK = queries_of(__package__)["at_the_desk"].format(needs_review=NEEDS_REVIEW)


class _InSession(NamedTuple):
    """An order in a pull session that a caller changes."""

    session: AsyncSession
    caller: Caller
    session_id: int
    order_id: int
    now: datetime

    @property
    def named(self) -> dict[str, int]:
        return {
            "seller": self.caller.seller_id,
            "session": self.session_id,
            "id": self.order_id,
        }


async def _mark_for_phones(place: _InSession, kind: Literal["pulled", "defer"]) -> None:
    stamp = round(place.now.timestamp() * 1_000_000)
    named = place.named | {"kind": kind, "stamp": stamp, "now": place.now}
    await run(place.session, _AT_THE_DESK, named)


async def mark_pulled(
    session: AsyncSession, caller: Caller, session_id: int, order_id: int, now: datetime
) -> None:
    """Mark an order as pulled. A pulled order keeps its first time, so the call is idempotent.
    Raises NotFound, PullSessionNotOpen.
    """
    place = _InSession(session, caller, session_id, order_id, now)
    said = "order {} pulled in pull {}"
    change = "pulled_at = :now, missing_at = NULL"
    if await _change(place, change, "p.pulled_at IS NULL", "pulled", said):
        await _mark_for_phones(place, "pulled")
        await _note_missing(place, ())


async def defer(
    session: AsyncSession, caller: Caller, session_id: int, order_id: int, now: datetime
) -> None:
    """Move an order to the end of the session, unless it is the last order that was moved there.
    Raises NotFound, PullSessionNotOpen.
    """
    place = _InSession(session, caller, session_id, order_id, now)
    last = (
        "(SELECT max(deferred_turn) FROM pull_session_order"
        " WHERE seller_id = :seller AND session_id = :session)"
    )
    change = f"deferred_turn = coalesce({last}, 0) + 1"
    unless_there = f"(p.deferred_turn IS NULL OR p.deferred_turn < {last})"
    said = "order {} pushed to the end of pull {}"
    if await _change(place, change, unless_there, "deferred", said):
        await _mark_for_phones(place, "defer")


async def unassign(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    order_id: int,
    now: datetime,
) -> None:
    """Remove an order from the session; another session may pull it. Raises NotFound,
    PullSessionNotOpen.
    """
    seller_id = caller.seller_id
    await _open_one(session, seller_id, session_id)
    number = await order_number(session, seller_id, order_id)
    if await take_out(session, seller_id, order_id):
        summary = f"order {number} removed from pull {session_id}"
        note(session, caller, "pull_session.unassigned", summary, now)


class MissingMark(NamedTuple):
    """A card that was not found, with the reporting person and the reason."""

    item_id: int
    person: str
    reason: MissingReason


async def keep_missing(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    order_id: int,
    lost: Sequence[MissingMark],
    now: datetime,
) -> None:
    """Store which cards of the order were not found; an empty `lost` means that all were found. A
    card that was already missing keeps its first time, and a card with a decision is unchanged.
    Raises NotFound, PullSessionNotOpen.
    """
    place = _InSession(session, caller, session_id, order_id, now)
    missing = bool(lost)
    await _note_missing(place, lost)
    change = "missing_at = :now" if missing else "missing_at = NULL"
    unless_so = f"p.missing_at IS {'NULL' if missing else 'NOT NULL'}"
    outcome = "is missing" if missing else "was found"
    said = f"a card of order {{}} {outcome} in pull {{}}"
    await _change(place, change, unless_so, "missing" if missing else "found", said)


_NOTE_MISSING: Final = """
    UPDATE pull_session_item SET
           missing_at = CASE WHEN item_id = ANY (CAST(:items AS bigint[]))
                             THEN CAST(:now AS timestamptz) END,
           missing_by = coalesce((CAST(:people AS text[]))[
               array_position(CAST(:items AS bigint[]), item_id)], NULL),
           missing_reason = coalesce((CAST(:reasons AS text[]))[
               array_position(CAST(:items AS bigint[]), item_id)], NULL)
     WHERE seller_id = :seller AND session_id = :session AND order_id = :id
       AND missing_outcome IS NULL
       AND (missing_at IS NOT NULL) <> (item_id = ANY (CAST(:items AS bigint[])))
"""


async def _note_missing(place: _InSession, lost: Sequence[MissingMark]) -> None:
    named = place.named | {
        "items": [one.item_id for one in lost],
        "people": [one.person for one in lost],
        "reasons": [one.reason for one in lost],
        "now": place.now,
    }
    await run(place.session, _NOTE_MISSING, named)


async def keep_unpulled(
    session: AsyncSession, caller: Caller, session_id: int, order_id: int, now: datetime
) -> None:
    """Mark an order as not pulled. Raises NotFound, PullSessionNotOpen."""
    place = _InSession(session, caller, session_id, order_id, now)
    said = "order {} not pulled after all in pull {}"
    await _change(place, "pulled_at = NULL", "p.pulled_at IS NOT NULL", "unpulled", said)


async def end_session(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    end: Literal["completed", "cancelled"],
    now: datetime,
) -> None:
    """Complete or cancel a session. The end can be undone until another session is opened. A
    repeated call changes nothing. Raises NotFound, PullSessionNotOpen.
    """
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    if await session_state(session, seller_id, session_id) == end:
        return
    await _open_one(session, seller_id, session_id)
    await _keep_reviews(session, seller_id, session_id)
    await session.execute(
        text(
            "UPDATE pull_session SET state = :end, completed_at = :completed"
            " WHERE seller_id = :seller AND id = :session"
        ),
        {
            "seller": seller_id,
            "session": session_id,
            "end": end,
            "completed": now if end == "completed" else None,
        },
    )
    await notify(session, PULLS, f"{seller_id}:{session_id}")
    action = f"pull_session.{end}"
    undo = {"kind": action, "session": session_id}
    note(session, caller, action, f"pull {session_id} {end}", now, undo=undo)


async def order_number(session: AsyncSession, seller_id: int, order_id: int) -> str:
    """Return the order's number. Raises NotFound if the seller has no such order."""
    query = text("SELECT order_number FROM orders WHERE seller_id = :seller AND id = :id")
    number: str | None = await session.scalar(query, {"seller": seller_id, "id": order_id})
    if number is None:
        raise errors.NotFound(f"there is no order {order_id}")
    return number


async def take_out(session: AsyncSession, seller_id: int, order_id: int) -> bool:
    """Remove an order from the open session; return whether it was in the open session."""
    taken = await session.execute(
        text("""
            DELETE FROM pull_session_order p USING pull_session s
             WHERE p.seller_id = :seller AND p.order_id = :id
               AND s.seller_id = :seller AND s.id = p.session_id AND s.state = 'open' RETURNING s.id
        """),
        {"seller": seller_id, "id": order_id},
    )
    row = taken.first()
    if row is not None:
        await notify(session, PULLS, f"{seller_id}:{row.id}")
    return row is not None


async def _open_one(session: AsyncSession, seller_id: int, session_id: int) -> None:
    await locked(session, Lock.SHOP, seller_id)
    state = await session_state(session, seller_id, session_id)
    if state != "open":
        raise errors.PullSessionNotOpen(f"pull session {session_id} is {state}")


async def session_state(session: AsyncSession, seller_id: int, session_id: int) -> str:
    query = text("SELECT state FROM pull_session WHERE seller_id = :seller AND id = :id")
    state: str | None = await session.scalar(query, {"seller": seller_id, "id": session_id})
    if state is None:
        raise errors.NotFound(f"there is no pull session {session_id}")
    return state


async def _change(place: _InSession, change: str, condition: str, action: str, said: str) -> bool:
    """Apply the SQL assignment `change` to an order of an open session, and note it in the
    activity. Return whether the order met the SQL `condition`. `said` is the text of the note, a
    format string for the order's number and the session's id.

    Raises NotFound if the order is not in the session, and PullSessionNotOpen.
    """
    session, caller, session_id, order_id, now = place
    await _open_one(session, caller.seller_id, session_id)
    here = "p.seller_id = :seller AND p.session_id = :session AND p.order_id = :id"
    number: str | None = await session.scalar(
        text(f"""
            UPDATE pull_session_order p SET {change} FROM orders
             WHERE {here} AND {condition} AND orders.seller_id = :seller AND orders.id = p.order_id
            RETURNING orders.order_number
        """),
        place.named | {"now": now},
    )
    if number is not None:
        await notify(session, PULLS, f"{caller.seller_id}:{session_id}")
        summary = said.format(number, session_id)
        note(session, caller, f"pull_session.{action}", summary, now)
    elif not await session.scalar(
        text(f"SELECT count(*) FROM pull_session_order p WHERE {here}"), place.named
    ):
        raise errors.NotFound(f"there is no order {order_id} in pull session {session_id}")
    return number is not None


async def _keep_reviews(session: AsyncSession, seller_id: int, session_id: int) -> None:
    """Store the current review of each order, because an ended session ignores later changes."""
    await session.execute(
        text(f"""
            UPDATE pull_session_order p SET in_review = now.in_review, changed = now.changed
              FROM (SELECT orders.id, {NEEDS_REVIEW} AS in_review, {CHANGED} AS changed
                      FROM pull_session_order p
                      JOIN orders ON orders.seller_id = p.seller_id AND orders.id = p.order_id
                     WHERE p.seller_id = :seller AND orders.seller_id = :seller
                       AND p.session_id = :session) now
             WHERE p.seller_id = :seller AND p.session_id = :session AND p.order_id = now.id
               AND (now.in_review OR now.changed <> '{{}}')
        """),
        {"seller": seller_id, "session": session_id},
    )

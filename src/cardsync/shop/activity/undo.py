"""Undoes an entry of the activity feed, and returns the new entry of the undo. A second undo of the
same entry returns the first undo's entry.

The entry's row is locked first, so that the second of two concurrent undos finds the entry of the
first undo.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import Activity, note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.platform import errors
from cardsync.prices.inputs.cards_to_price import ON_SALE
from cardsync.prices.plans.feed_entries import UNDO as PLAN
from cardsync.prices.plans.price_effect import Reach
from cardsync.prices.plans.writer import Waiting, Writer, write
from cardsync.prices.rules.undo_sales import SALE
from cardsync.shop.activity.undo_kinds import KINDS
from cardsync.shop.errors import NotUndoable


def is_undoable(entry: Activity) -> bool:
    """Return whether the entry can be undone and has not been undone yet."""
    return (
        entry.undo is not None
        and entry.undo.get("kind") in (*KINDS, PLAN)
        and entry.outcome == "applied"
        and entry.undone_by is None
    )


async def undo_entry(writer: Writer, entry_id: int) -> Activity:
    """Undo an entry within the loss limits. Raises NeedsReview, ConfirmationNeeded and the errors
    of `_undo`.
    """
    reach = Reach(ON_SALE, {}, anew=True)
    entry = await writer.session.get(Activity, (writer.caller.seller_id, entry_id))
    kept = entry.undo if entry is not None and entry.undo is not None else {}
    source = f"sale {kept['sale']}" if kept.get("kind") == SALE else ""
    async with write(writer, Waiting(entry_id, "/activity", reach)) as written:
        written.source = source
        return await _undo(writer.session, writer.caller, entry_id, writer.now)


async def _undo(
    session: AsyncSession,
    caller: Caller,
    entry_id: int,
    now: datetime,
) -> Activity:
    """Undo an entry. Raises OwnerRequired, NotFound, RefusedByGrant, NotUndoable, or ChangedSince,
    which names the changed fields.
    """
    caller.must_be_owner()
    mine = Activity.seller_id == caller.seller_id
    locked = select(Activity).where(mine, Activity.id == entry_id).with_for_update()
    entry = await session.scalar(locked)
    if entry is None:
        raise errors.NotFound(f"there is no entry {entry_id}")
    if caller.identity.grant_id is not None and entry.actor != caller.actor:
        raise errors.RefusedByGrant("an assistant can undo only what it did itself")
    if entry.undone_by is not None:
        earlier = select(Activity).where(mine, Activity.id == entry.undone_by)
        return (await session.scalars(earlier)).one()
    if not is_undoable(entry) or entry.undo is None:
        raise NotUndoable(f"entry {entry_id} ({entry.action}) can't be undone")
    undone = await _undo_entry(session, caller, entry, now)
    undo_note = note(
        session,
        caller,
        "activity.undone",
        f"entry {entry_id} undone: {entry.summary}",
        now,
        before=entry.after,
        after=entry.before,
    )
    await session.flush()
    for each in undone:
        each.undone_by = undo_note.id
    await session.flush()
    return undo_note


async def _undo_entry(
    session: AsyncSession,
    caller: Caller,
    entry: Activity,
    now: datetime,
) -> list[Activity]:
    """Undo the entry or, for the entry of a plan, the plan's actions that are not undone yet, the
    last action first. Return the undone entries.
    """
    assert entry.undo is not None
    parts = [entry]
    if entry.undo["kind"] == PLAN:
        of_plan = (
            select(Activity)
            .where(
                Activity.seller_id == caller.seller_id,
                Activity.id.in_(entry.undo["entries"]),
                Activity.undone_by.is_(None),
            )
            .order_by(Activity.id.desc())
            .with_for_update()
        )
        parts = list(await session.scalars(of_plan))
    for part in parts:
        assert part.undo is not None
        await KINDS[part.undo["kind"]](Undoing(session, caller, part.undo, now))
    return [entry, *parts]

"""Publishes drafts, so that the export serves them to the agent, and gives the agent a task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked
from cardsync.platform import errors
from cardsync.stock.errors import NotADraft
from cardsync.stock.quick_add.checked_entry import needs_before_listing
from cardsync.stock.quick_add.models import QuickAdd
from cardsync.stock.quick_add.note_changes import note_waiting


async def publish(
    session: AsyncSession,
    caller: Caller,
    ids: Sequence[int],
    now: datetime,
) -> tuple[list[QuickAdd], int | None]:
    """Publish all of the drafts or, if one can't be published, none. Return the entries and the id
    of the agent's task. Entries that are already published, pending or listed do not change.

    Raises OwnerRequired, NotFound, NotADraft for a rejected entry, InvalidPayload.
    """
    caller.must_be_owner()
    await locked(session, caller.seller_id)
    query = (
        select(QuickAdd)
        .where(QuickAdd.seller_id == caller.seller_id, QuickAdd.id.in_(ids))
        .order_by(QuickAdd.id)
        .execution_options(populate_existing=True)
    )
    found = {entry.id: entry for entry in await session.scalars(query)}
    done = 0
    for place, entry_id in enumerate(ids):
        entry = found.get(entry_id)
        if entry is None:
            raise errors.NotFound(f"ids[{place}]: there is no quick-add entry {entry_id}")
        if entry.status == "rejected":
            raise NotADraft(f"ids[{place}]: TCGplayer rejected entry {entry_id}; change it first")
        if entry.status != "draft":
            continue
        lacks = needs_before_listing(entry)
        if lacks is not None:
            raise errors.InvalidPayload(f"{entry.title or entry.product_name} {lacks}")
        entry.status, entry.published_at, entry.updated_at = "published", now, now
        done += 1
    if done:
        note(session, caller, "quick_add.published", f"{done} listings published", now)
    return list(found.values()), await note_waiting(session, caller.seller_id, now, at_once=True)

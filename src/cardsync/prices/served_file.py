"""Chooses the file that an agent downloads: a rollback file, new quick-add rows, the price file, or
"unchanged".

A waiting rollback is served before quick-add rows, and both are served before the price file, even
if the account may not push prices.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform.database.session import Database
from cardsync.prices.files import content, price_updates
from cardsync.prices.files.file_now import fresh_file
from cardsync.prices.rollback.served_rollback import serve
from cardsync.stock.quick_add import served_entries as quick_add
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import UnnamedFile


class ServedFile(NamedTuple):
    """The file for the agent. `body` is the CSV, or None if the agent's copy is still current."""

    body: bytes | UnnamedFile | None
    etag: str | None = None
    empty_reason: str | None = None
    kind: Literal["price_updates", "rollback", "quick_add"] = "price_updates"
    # The ids of the quick-add entries, in the order of the file's rows.
    quick_add_ids: list[int] | None = None
    quick_add_number: int | None = None


async def served_file(
    database: Database,
    caller: Caller,
    heavy: HeavyWork,
    if_none_match: str | None,
    asker: quick_add.Asker,
    now: datetime,
) -> ServedFile:
    if caller.state.lock_kind is not None:
        async with database.tenant(caller.seller_id) as session:
            await sync_state.refresh_lock(session, caller.seller_id, now)
    if content.rollback_waits(caller, now):
        body = await serve(database, heavy, caller, now)
        if body is not None:
            return ServedFile(body, kind="rollback")
    if quick_add.serves(caller, now):
        listing = await quick_add.serve(database, caller, asker, now)
        if listing is not None:
            return ServedFile(
                listing.body,
                kind="quick_add",
                quick_add_ids=listing.ids,
                quick_add_number=listing.number,
            )
    if (etag := content.unchanged(caller, if_none_match, now)) is not None:
        return ServedFile(None, etag)
    updates = await fresh_file(heavy, caller, now)
    if caller.state.quick_add_waits:
        # While quick-add rows wait, the answer has no ETag, because the next answer may be the
        # quick-add file.
        updates = updates._replace(etag=None)
    if updates.etag and content.matches(if_none_match, updates.etag):
        return ServedFile(None, updates.etag)
    if updates.empty_reason is None:
        await price_updates.note_served(database, caller, updates.body)
    return ServedFile(updates.body, updates.etag, updates.empty_reason)

"""Matches the waiting rows of a seller's collections again after a catalog was loaded. The file is
read again, and waiting rows get their new matches. The module defines a stream of
`platform/work/runner.py`, which the load of a catalog marks as due.

Rows that a member chose or left out do not change. Each transaction stores one group of rows and
changes only rows that still wait, so that the successor of a killed worker continues with the rest.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import polars as pl
import procrastinate
import structlog
from sqlalchemy import select, text

from cardsync.access.activity import note_by
from cardsync.access.models import Account
from cardsync.buying.collections.drain_collections import read_again
from cardsync.buying.collections.match_collection import match_rows
from cardsync.buying.collections.models import Collection
from cardsync.platform import clock
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.kept_figures import OneAtATime, forget, give_up, mark_of
from cardsync.platform.errors import InvalidCsv
from cardsync.platform.plurals import counted
from cardsync.platform.storage import ObjectMissing
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import REMATCHED_COLLECTIONS, Work, WorkDue, jobs

log = structlog.get_logger(__name__)

ACTION: Final = "catalog.rows_matched"
ACTOR: Final = "sweep"
_WAITS: Final = """
    r.seller_id = :seller AND r.product_id IS NULL AND NOT r.left_out AND r.chosen_by IS NULL
"""
_OPEN: Final = f"SELECT DISTINCT r.collection_id FROM collection_row r WHERE {_WAITS} ORDER BY 1"
_ROWS: Final = (
    f"SELECT r.row FROM collection_row r WHERE {_WAITS} AND r.collection_id = :collection"
)
# Rows are identified by number and name, because a newer version of the program may read the file
# into rows with other numbers.
_FOUND: Final = {
    "row": "bigint",
    "name": "text",
    "product_id": "bigint",
    "certainty": "text",
    "how": "text",
    "game": "text",
    "finish": "text",
    "condition": "text",
    "language": "text",
    # A SKU identifies finish, condition and language, so a row with a SKU has no reason to wait.
    "reason": "text",
    "text": "text",
}
# Two workers that match the same rows lock them in the same order, so that they do not deadlock.
# The second worker then finds no waiting rows.
_TAKE: Final = queries_of(__package__)["take_rematched"].format(
    waits=_WAITS, identified=", ".join(f"{name} = i.{name}" for name in list(_FOUND)[2:])
)


async def _rematch(work: Work, hold: WorkDue, due: WorkDue) -> None:
    seller = {"seller": due.seller_id}
    async with work.database.tenant(due.seller_id) as session:
        ids = (await session.scalars(text(_OPEN), seller)).all()
        read = Collection.seller_id == due.seller_id, Collection.id.in_(ids)
        found = select(Collection).where(*read, Collection.state == "done").order_by(Collection.id)
        collections = (await session.scalars(found)).all()
    for collection in collections:
        await _again(work, collection)
    async with work.database.tenant(due.seller_id) as session:
        await forget(session, due)


async def _again(work: Work, collection: Collection) -> None:
    values = {"seller": collection.seller_id, "collection": collection.id}
    try:
        rows = await read_again(work, collection)
    except (ObjectMissing, InvalidCsv):
        # The collection was deleted in the meantime, or this version of the program no longer
        # recognizes the file.
        return
    async with work.database.tenant(collection.seller_id) as session:
        waiting = (await session.scalars(text(_ROWS), values)).all()
        account = await session.get_one(Account, collection.seller_id)
        games = list(account.product_lines)
    left = rows.filter(pl.col("row").is_in(waiting))
    for slab in left.iter_slices(work.settings.slab_rows):
        found = await match_rows(work.database, collection.seller_id, games, slab)
        named = found.filter(pl.col("certainty").is_not_null()).select(list(_FOUND))
        if named.height:
            await _take(work, collection, named)


async def _take(work: Work, collection: Collection, found: pl.DataFrame) -> None:
    values = {"seller": collection.seller_id, "collection": collection.id}
    now = clock.now()
    async with work.database.tenant(collection.seller_id) as session:
        await new_table(session, "found_row", found, _FOUND)
        taken = await session.scalar(text(_TAKE), values) or 0
        if taken:
            summary = f"{counted(taken, 'card', 'cards')} of the collection “{collection.name}” found in a catalog"
            note_by(session, collection.seller_id, ACTOR, ACTION, summary, now)
    log.info("collection_matched_again", seller_id=collection.seller_id, rows=taken)


STREAM: Final[runner.Stream[WorkDue, WorkDue]] = runner.Stream(
    REMATCHED_COLLECTIONS,
    OneAtATime(),
    oldest=partial(mark_of, REMATCHED_COLLECTIONS),
    work=_rematch,
    fail=give_up,
)


@jobs.task(name="buying.rematch", queue="imports", pass_context=True)
async def rematch_collections(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, rematch_collections, context, seller_id)

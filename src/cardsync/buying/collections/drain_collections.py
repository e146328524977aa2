"""The stream of a shop's collections for `platform/work/runner.py`. Each job handles one
collection: it reads the file, and matches and stores its rows, with one transaction per group of
rows (a slab).

Each transaction locks the collection's row. If a worker is killed, its successor continues after
the last stored slab.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, NamedTuple

import msgspec
import polars as pl
import procrastinate
import structlog
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.buying.collections.collection_cells import ReadRows, read_rows
from cardsync.buying.collections.collection_text import (
    TEXT_HEADER,
    CollectionText,
    read_text,
)
from cardsync.buying.collections.file_formats import (
    MAPPED,
    PLAIN_TEXT,
    Recognized,
    header_key,
    propose,
    recognize,
)
from cardsync.buying.collections.match_collection import match_rows
from cardsync.buying.collections.models import Collection, CollectionColumns
from cardsync.platform import clock, limits
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.table_text import column_name
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import REMATCHED_COLLECTIONS, Work, jobs, mark_due
from cardsync.platform.work.piece import LeaseLost, Piece

log = structlog.get_logger(__name__)

COLLECTIONS: Final = "collections"
SAMPLES: Final = 5
# The maximum number of rejected rows that are stored with their reasons. All of them are counted.
_LISTED: Final = 1_000
_STORED: Final = (
    "row",
    "copies",
    "name",
    "set_name",
    "set_code",
    "number",
    "finish",
    "condition",
    "language",
    "game",
    "sku",
    "product_id",
    "certainty",
    "how",
    "left_out",
    "line",
    "reason",
    "text",
)
_TYPES: Final = {"copies": "integer", "left_out": "boolean"} | dict.fromkeys(
    ("row", "sku", "product_id", "line"), "bigint"
)
_STORE: Final = f"""
    INSERT INTO collection_row (seller_id, collection_id, {", ".join(_STORED)})
    SELECT :seller, :collection, {", ".join(_STORED)} FROM incoming_row
    ON CONFLICT (seller_id, collection_id, row) DO NOTHING
"""


# If a catalog was loaded while rows were matched, the waiting rows have to be matched again. The
# load's own mark may have been handled before the last rows were stored.
_LOADED_MEANWHILE: Final = """
    SELECT EXISTS (SELECT FROM catalog_import WHERE finished_at > :since)
"""


@jobs.task(
    name="buying.collections",
    queue="imports",
    pass_context=True,
)
async def drain_collections(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(
        STREAM,
        drain_collections,
        context,
        seller_id,
    )


class _ByItsRow:
    """Holds a collection for `platform/work/runner.py` by locking its row, again in each
    transaction.
    """

    async def take(
        self, session: AsyncSession, piece: Collection, settings: Settings
    ) -> Piece | None:
        return await _mine(
            session,
            piece,
            wait=False,
        )

    async def release(self, session: AsyncSession, hold: Piece) -> None:
        """Do nothing, because the lock of the row has ended with its transaction."""

    def kept(self, database: Database, hold: Piece) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def _mine(session: AsyncSession, piece: Piece, *, wait: bool = True) -> Collection | None:
    """Lock and return the collection's row. Return None if the collection is finished, or if
    another transaction has locked the row and `wait` is false.
    """
    statement = (
        select(Collection)
        .where(
            Collection.seller_id == piece.seller_id,
            Collection.id == piece.id,
            Collection.state == "queued",
        )
        .with_for_update(skip_locked=not wait)
    )
    fresh = statement.execution_options(populate_existing=True)
    return (await session.execute(fresh)).scalar_one_or_none()


async def _oldest(session: AsyncSession, seller_id: int) -> Collection | None:
    mine = select(Collection).where(
        Collection.seller_id == seller_id,
        Collection.state == "queued",
    )
    first = mine.order_by(Collection.id).limit(1)
    fresh = first.execution_options(populate_existing=True)
    return (await session.execute(fresh)).scalar_one_or_none()


class _Known(NamedTuple):
    """A file's text and its recognized columns; None if the owner has to name the columns."""

    text: CollectionText
    found: Recognized | None


async def _read(work: Work, hold: Piece, collection: Collection) -> None:
    """Read the file and store its rows, or mark the collection as waiting until the owner names its
    columns.
    """
    data = await work.store.read(collection.storage_key)
    known = await _recognized(
        work,
        collection,
        data,
    )
    if known.found is None:
        await _ask_for_columns(
            work,
            collection,
            known.text,
        )
        return
    read = await _rows_of(known.text, known.found)
    rows = read.frame
    begun = await _begin(
        work,
        collection,
        known,
        known.found.key,
        read,
    )
    async with work.database.tenant(collection.seller_id) as session:
        account = await session.get_one(Account, collection.seller_id)
        games = list(account.product_lines)
    step = work.settings.slab_rows
    for at in range(
        begun,
        rows.height,
        step,
    ):
        slab = rows.slice(at, step)
        matched = await match_rows(
            work.database,
            collection.seller_id,
            games,
            slab,
        )
        await _store(
            work,
            collection,
            matched,
            min(at + step, rows.height),
        )
    await _finish(work, collection)


async def _rows_of(text_: CollectionText, found: Recognized) -> ReadRows:
    header = text_.header or list(TEXT_HEADER)
    return await asyncio.to_thread(read_rows, text_.rows, found, header, text_.form.decimal)


async def read_again(work: Work, collection: Collection) -> pl.DataFrame:
    """Read a collection's file again and return its rows. Return no rows if this version of the
    program does not recognize the file's columns. Raises ObjectMissing.
    """
    data = await work.store.read(collection.storage_key)
    known = await _recognized(work, collection, data)
    if known.found is None:
        return pl.DataFrame(schema={"row": pl.Int64})
    return (await _rows_of(known.text, known.found)).frame


async def _recognized(work: Work, collection: Collection, data: bytes) -> _Known:
    text_ = await asyncio.to_thread(read_text, data)
    if not text_.header:
        columns = {name: [at] for at, name in enumerate(TEXT_HEADER)}
        return _Known(
            text_,
            Recognized(
                PLAIN_TEXT,
                columns,
                "",
            ),
        )
    if collection.columns is not None:
        return _Known(text_, _of_places(collection.columns))
    found = recognize(text_.header)
    if found is not None:
        return _Known(text_, found)
    async with work.database.tenant(collection.seller_id) as session:
        kept = await session.get(
            CollectionColumns, (collection.seller_id, header_key(text_.header))
        )
    return _Known(text_, None if kept is None else _of_kept(text_.header, kept.columns))


def _of_kept(header: list[str], columns: Mapping[str, str]) -> Recognized:
    places = {column_name(name): at for at, name in reversed(list(enumerate(header)))}
    return _of_places({field: places[name] for field, name in columns.items()})


def _of_places(columns: Mapping[str, int]) -> Recognized:
    return Recognized(MAPPED, {field: [at] for field, at in columns.items()})


async def _locked(session: AsyncSession, collection: Collection) -> Collection:
    mine = await _mine(session, collection)
    if mine is None:
        raise LeaseLost
    return mine


async def _ask_for_columns(work: Work, collection: Collection, read: CollectionText) -> None:
    samples = [row.cells for row in read.rows if not row.fault][:SAMPLES]
    async with work.database.tenant(collection.seller_id) as session:
        mine = await _locked(session, collection)
        mine.state = "needs_columns"
        mine.header, mine.samples = read.header, samples
        mine.columns = propose(read.header, samples)
        mine.rows, mine.read_as = len(read.rows), read.form.said()


async def _begin(
    work: Work, collection: Collection, known: _Known, key: str, read: ReadRows
) -> int:
    """Store the file's format and counts. Return how many rows an earlier worker has stored."""
    async with work.database.tenant(collection.seller_id) as session:
        mine = await _locked(session, collection)
        mine.format, mine.rows, mine.empty = key, read.frame.height, read.empty
        mine.read_as = known.text.form.said()
        mine.rejected = msgspec.to_builtins(read.rejected[:_LISTED])
        mine.rejected_count = len(read.rejected)
        return mine.read


async def _store(work: Work, collection: Collection, rows: pl.DataFrame, done: int) -> None:
    named = rows.select(_STORED)
    async with work.database.tenant(collection.seller_id) as session:
        mine = await _locked(session, collection)
        await new_table(session, "incoming_row", named, _TYPES)
        values = {"seller": collection.seller_id, "collection": collection.id}
        await session.execute(text(_STORE), values)
        mine.read = max(mine.read, done)


async def _finish(work: Work, collection: Collection) -> None:
    async with work.database.tenant(collection.seller_id) as session:
        mine = await _locked(session, collection)
        mine.state, mine.finished_at = "done", clock.now()
        if await session.scalar(text(_LOADED_MEANWHILE), {"since": mine.received_at}):
            await mark_due(session, collection.seller_id, REMATCHED_COLLECTIONS)
    log.info(
        "collection_read",
        seller_id=collection.seller_id,
        collection_id=collection.id,
    )


async def _fail(
    work: Work,
    hold: Piece,
    collection: Collection,
    code: str | None,
    why: str,
) -> None:
    """Mark the collection as failed, so that the stream continues with the next collection."""
    async with work.database.tenant(collection.seller_id) as session:
        mine = await _locked(session, collection)
        mine.state, mine.finished_at = "failed", clock.now()
        mine.error = why[: limits.STEP_ERROR_CHARACTERS] or "the file could not be read"


STREAM = runner.Stream[Collection, Piece](
    COLLECTIONS,
    _ByItsRow(),
    oldest=_oldest,
    work=_read,
    fail=_fail,
)

"""Moves old rows into Parquet files of the object store, one slab (a part of a month's rows) at a
time, and deletes expired files.

Each attempt has its own file, recorded in `old_rows` before it is written. Then one transaction
reads the slab, writes the file, reads it back, and deletes the rows. If a worker is killed, the
rows stay where they were, and its file is swept a day later. The writer of a file locks the file's
row in `old_rows`, so that other workers skip it and an erasure of the seller waits.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import polars as pl
import structlog
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.each_seller import all_sellers
from cardsync.access.models import Account
from cardsync.platform import clock
from cardsync.platform.database.copy import read_rows, types_of
from cardsync.platform.database.parquet_sheet import ParquetSheet
from cardsync.platform.database.session import run
from cardsync.platform.old_data.models import OldRows
from cardsync.platform.old_data.old_kinds import FOLDER, KINDS, Kind, month_after, month_of
from cardsync.platform.storage import Store
from cardsync.platform.value_types import JsonObject
from cardsync.platform.work.jobs import Work

log = structlog.get_logger(__name__)

SLAB_ROWS: Final = 20_000
# Longer than any attempt takes.
STRAY_AFTER: Final = timedelta(days=1)
# Seconds of each hour in which a worker moves rows.
SECONDS: Final = 60
_MONTHS: Final = """
    SELECT DISTINCT date_trunc('month', {moment}, 'UTC') FROM {table}
     WHERE seller_id = :seller AND {moment} < :since AND {which} ORDER BY 1
"""
_NAME: Final = """
    INSERT INTO old_rows (seller_id, kind, month, storage_key)
    VALUES (:seller, :kind, :month, :key)
    ON CONFLICT (seller_id, kind) WHERE kept_at IS NULL DO NOTHING
"""
_OF_MONTH: Final = """
    seller_id = :seller AND {moment} >= :month AND {moment} < :end AND {which}
"""
# The rows of one key stay together.
_LAST: Final = f"""
    SELECT min(k), max(k) FROM (SELECT {{key}} AS k FROM {{table}} WHERE {_OF_MONTH}
     ORDER BY 1 LIMIT :most) slab
"""
_SLAB: Final = f"""
    SELECT {{columns}} FROM {{table}} WHERE {_OF_MONTH} AND {{key}} <= :last
     ORDER BY {{key}}, {{moment}}
"""
_MOVED: Final = f"DELETE FROM {{table}} WHERE {_OF_MONTH} AND {{key}} <= :last"
_KEPT: Final = """
    UPDATE old_rows SET kept_at = :now, rows = :rows, first_key = :first, last_key = :last
     WHERE seller_id = :seller AND id = :id
"""
_FORGET: Final = "DELETE FROM old_rows WHERE seller_id = :seller AND id = :id"


class Damaged(Exception):
    """A file's content differs from what was written; its rows stay in the database."""


class _Slab(NamedTuple):
    first: int
    last: int
    rows: int


async def _until(ends: float, slabs: AsyncGenerator[int, None]) -> AsyncIterator[int]:
    """Yield the slabs' row counts until the time is over, then close the generator."""
    async with aclosing(slabs):
        async for rows in slabs:
            yield rows
            if clock.monotonic() >= ends:
                return


async def put_away(work: Work, kinds: Sequence[Kind] = tuple(KINDS.values())) -> int:
    """Move old rows, seller by seller, for a minute; return the number of moved rows. Remaining
    rows, and sellers that fail, are tried again in the next hour.
    """
    sellers = await all_sellers(work.database)
    # The sellers are in random order, so that each seller gets a turn even if a seller has more
    # than an hour's rows.
    random.shuffle(sellers)
    ends = clock.monotonic() + SECONDS
    moved = 0
    for seller_id, kind in product(sellers, kinds):
        try:
            async for rows in _until(ends, slabs(work, seller_id, kind)):
                moved += rows
        except Exception as e:
            # Buckets' errors have no common class.
            name = type(e).__name__
            log.warning("old_rows_stay", seller_id=seller_id, kind=kind.name, error=name)
        if clock.monotonic() >= ends:
            log.info("old_rows_wait", moved=moved)
            break
    return moved


async def slabs(work: Work, seller_id: int, kind: Kind) -> AsyncGenerator[int, None]:
    """Move the old rows slab by slab, oldest first; yield how many rows each had."""
    since = kind.kept_since(work.settings, clock.now())
    async with work.database.tenant(seller_id) as session:
        values = {"seller": seller_id, "since": since}
        months = list(await session.scalars(text(_sql(_MONTHS, kind)), values))
    for month in months:
        while rows := await _move_slab(work, seller_id, kind, month):
            yield rows


async def _move_slab(work: Work, seller_id: int, kind: Kind, month: datetime) -> int:
    """Move a slab of a month; return how many rows it had, 0 if none is left or another worker is
    moving them.
    """
    async with work.database.tenant(seller_id) as session:
        key = await _named(session, seller_id, kind, month)
    async with work.database.tenant(seller_id, snapshot=True) as session:
        file = await _taken(session, seller_id, kind)
        # Another worker's attempt may have replaced the name by now.
        if file is None or file.storage_key != key:
            return 0
        return await _move(session, work.store, kind, file)


async def _named(session: AsyncSession, seller_id: int, kind: Kind, month: datetime) -> str:
    """Record a file name that no earlier attempt writes, because an attempt that lost its row may
    still be writing.
    """
    key = f"{FOLDER}/u{seller_id}/{kind.name}-{uuid.uuid4()}.parquet"
    left = await _taken(session, seller_id, kind)
    if left is not None:
        left.storage_key, left.month = key, month
    elif await session.get(Account, seller_id) is not None:
        named = {"seller": seller_id, "kind": kind.name, "month": month, "key": key}
        await run(session, _NAME, named)
    return key


async def _taken(session: AsyncSession, seller_id: int, kind: Kind) -> OldRows | None:
    """Lock and return the file that is to be written; None if another worker has it."""
    own = (OldRows.seller_id == seller_id) & (OldRows.kind == kind.name)
    written = select(OldRows).where(own, OldRows.kept_at.is_(None))
    file: OldRows | None = await session.scalar(written.with_for_update(skip_locked=True))
    return file


async def _move(session: AsyncSession, store: Store, kind: Kind, file: OldRows) -> int:
    own = {"seller": file.seller_id, "id": file.id}
    of_month = {"seller": file.seller_id, "month": file.month, "end": month_after(file.month)}
    slab = await _written(session, store, kind, file.storage_key, of_month)
    if slab is None:
        await run(session, _FORGET, own)
        return 0
    gone = await run(session, _sql(_MOVED, kind), {**of_month, "last": slab.last})
    if gone != slab.rows:
        raise Damaged(f"{gone} rows would go, and {slab.rows} are in the file")
    kept = {"now": clock.now(), "rows": slab.rows, "first": slab.first, "last": slab.last}
    await run(session, _KEPT, {**own, **kept})
    return slab.rows


async def _written(
    session: AsyncSession, store: Store, kind: Kind, key: str, of_month: JsonObject
) -> _Slab | None:
    """Write the oldest slab of a month into its file. Return None if the month has no rows."""
    bounds = await session.execute(text(_sql(_LAST, kind)), {**of_month, "most": SLAB_ROWS})
    first, last = bounds.one()
    if last is None:
        return None
    types = await types_of(session, f"SELECT * FROM {kind.table} WHERE false")
    del types["seller_id"]
    query = _sql(_SLAB, kind, columns=", ".join(f'"{name}"' for name in types))
    schema = dict.fromkeys(types, pl.String)
    rows = await read_rows(session, query, schema, {**of_month, "last": last})
    with TemporaryDirectory(prefix="cardsync-") as folder:
        made = await asyncio.to_thread(_parquet, rows, types, Path(folder))
    with store.spool() as (path, spooled):
        spooled.write(made)
        spooled.flush()
        await store.write(key, path)
    if await store.read(key) != made:
        raise Damaged(f"{key} does not read back as it was written")
    height = await asyncio.to_thread(lambda: pl.read_parquet(made).height)
    return _Slab(first, last, height)


def _parquet(rows: pl.DataFrame, types: dict[str, tuple[str, int | None]], folder: Path) -> bytes:
    sheet = ParquetSheet(folder, types)
    sheet.append(rows)
    return b"".join(sheet.chunks())


def _sql(statement: str, kind: Kind, columns: str = "") -> str:
    return statement.format(
        table=kind.table, moment=kind.moment, key=kind.key, which=kind.which, columns=columns
    )


async def drop_old(work: Work) -> int:
    """Delete the files of months that have expired in the store, too; return the number of
    files.
    """
    days = timedelta(days=work.settings.old_data_retention_days)
    before = month_of(clock.now() - days)
    dropped = 0
    for seller_id in await all_sellers(work.database):
        try:
            while await _drop_one(work, seller_id, before):
                dropped += 1
        except Exception as e:
            log.warning("old_files_stay", seller_id=seller_id, error=type(e).__name__)
    return dropped


async def _drop_one(work: Work, seller_id: int, before: datetime) -> bool:
    too_old = (
        select(OldRows)
        .where(OldRows.seller_id == seller_id, OldRows.month < before, OldRows.kept_at.is_not(None))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    async with work.database.tenant(seller_id) as session:
        file = await session.scalar(too_old)
        if file is None:
            return False
        # The row is deleted last: if this process is killed, another process tries again.
        await work.store.delete(file.storage_key)
        await session.delete(file)
    return True


async def sweep_strays(work: Work) -> int:
    """Delete the files of failed attempts; return how many."""
    of_sellers: dict[int, set[str]] = {}
    for key in await work.store.keys(f"{FOLDER}/", clock.now() - STRAY_AFTER):
        folder = key.split("/")[1]
        if folder[1:].isdecimal():
            of_sellers.setdefault(int(folder[1:]), set()).add(key)
    swept = 0
    for seller_id, keys in of_sellers.items():
        async with work.database.tenant(seller_id) as session:
            # During an import, files are written before their rows. The files of an erased seller
            # are deleted by the erasure.
            if await session.get(Account, seller_id) is None:
                continue
            own = select(OldRows.storage_key).where(OldRows.seller_id == seller_id)
            strays = keys.difference(await session.scalars(own))
        for key in strays:
            await work.store.delete(key)
        swept += len(strays)
    return swept

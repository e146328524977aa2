"""Reads old rows back from the files of the object store, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import ColumnElement, select

from cardsync.platform.database.session import Database
from cardsync.platform.old_data.models import OldRows
from cardsync.platform.old_data.old_kinds import FOLDER, Kind
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.platform.value_types import JsonObject


class Old(NamedTuple):
    """The database and the store with a seller's old rows."""

    database: Database
    store: Store
    seller_id: int


async def rows_of_key(old: Old, kind: Kind, key: int, most: int) -> list[dict[str, object]]:
    """Return the newest rows of one key, such as a card, newest first."""
    holds = (OldRows.first_key <= key) & (OldRows.last_key >= key)
    found: list[dict[str, object]] = []
    # No two files of the same month contain the same key.
    for file in await _files(old, kind, holds, OldRows.month.desc()):
        frame = await _frame(old.store, file, pl.col(kind.key) == key)
        found += frame.sort(kind.moment, descending=True).to_dicts() if frame.height else []
        if len(found) >= most:
            break
    return found[:most]


async def rows_before(
    old: Old, kind: Kind, before: int | None, above: int, which: pl.Expr, most: int
) -> list[dict[str, object]]:
    """Return the rows with the greatest keys between two bounds, greatest first. The key ranges of
    months may overlap, so a file is skipped only if all its keys are smaller than the rows found so
    far.
    """
    bound = 2**63 - 1 if before is None else before
    holds = (OldRows.first_key < bound) & (OldRows.last_key > above)
    within = (pl.col(kind.key) < bound) & (pl.col(kind.key) > above) & which
    found: list[JsonObject] = []
    for file in await _files(old, kind, holds, OldRows.last_key.desc()):
        if len(found) == most and file.last_key < found[-1][kind.key]:
            break
        found += (await _frame(old.store, file, within)).to_dicts()
        found = sorted(found, key=lambda row: int(row[kind.key]), reverse=True)[:most]
    return found


async def old_files(old: Old) -> AsyncIterator[tuple[str, bytes]]:
    """Yield all files of a seller, each with a name such as `old/history-….parquet`."""
    query = select(OldRows).where(OldRows.seller_id == old.seller_id, OldRows.kept_at.is_not(None))
    async with old.database.tenant(old.seller_id) as session:
        files = (await session.scalars(query.order_by(OldRows.id))).all()
    for file in files:
        with suppress(ObjectMissing):
            data = await old.store.read(file.storage_key)
            yield f"{FOLDER}/{file.storage_key.rpartition('/')[2]}", data


async def _files(
    old: Old, kind: Kind, holds: ColumnElement[bool], order: ColumnElement[Any]
) -> Sequence[OldRows]:
    of_kind = (OldRows.seller_id == old.seller_id) & (OldRows.kind == kind.name)
    query = select(OldRows).where(of_kind, OldRows.kept_at.is_not(None), holds)
    async with old.database.tenant(old.seller_id) as session:
        return (await session.scalars(query.order_by(order, OldRows.id))).all()


async def _frame(store: Store, file: OldRows, which: pl.Expr) -> pl.DataFrame:
    try:
        data = await store.read(file.storage_key)
    except ObjectMissing:
        # The file has expired in the meantime.
        return pl.DataFrame()
    return await asyncio.to_thread(lambda: pl.scan_parquet(data).filter(which).collect())

"""Corrects an upload: a person downloads its rejected rows as a CSV, corrects them and uploads
them, which creates a new upload of the whole file.

The new upload is the whole file, because an upload of a few rows would count all other cards as
absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.imports import accept_inventory, rejected_rows
from cardsync.imports.parse import ProductLines, Rejected, every_rejected
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.read_sources import Source, numbered
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Numbered, Paging
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store, open_store
from cardsync.platform.work.models import Upload
from cardsync.web import bodies
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import begun, making, sent

# Bytes per piece. All rejected rows of a piece are in memory at once, and a broken line may be a
# single byte, so pieces are small.
_PIECE = 1 << 16
_NEVER_READ = ("failed", "cancelled", "discarded")


async def page_of_uploads(source: Source, caller: Caller, paging: Paging) -> Numbered[Upload]:
    """Return a page of uploads of all streams, newest first. Raises OwnerRequired."""
    caller.must_be_owner()
    return await numbered(source, Upload, caller.seller_id, paging)


async def rejected(heavy: HeavyWork, caller: Caller, upload_id: int) -> AsyncGenerator[bytes, None]:
    """Return all rejected rows of an upload as a CSV in parts. Raises OwnerRequired, NotFound."""
    return await begun(heavy, caller, _parts(heavy, caller, upload_id))


async def _parts(heavy: HeavyWork, caller: Caller, upload_id: int) -> AsyncGenerator[bytes, None]:
    # A file may be large even if the shop has few cards, so another process reads it.
    path = await heavy.read_apart(rejected_file, caller, Work.FILE, clock.now(), upload_id)
    async for chunk in sent(path):
        yield chunk


async def rejected_file(
    database: Database, caller: Caller, settings: Settings, now: datetime, upload_id: int
) -> Path:
    upload = await _upload(database, caller, upload_id)
    data = await _content(open_store(settings), upload)
    with making() as (path, file):
        await asyncio.to_thread(
            file.writelines, rejected_rows.rejected_csv(data, _rejected(upload, data))
        )
    return path


def _rejected(upload: Upload, data: bytes) -> Iterable[Rejected]:
    """Return all rejected rows: from the report if it lists them all, otherwise by parsing the file
    again with the same product lines.
    """
    lines = upload.report.get("read_as")
    if lines is None:
        return [Rejected(**row) for row in upload.report["rejected"]]
    read_as = ProductLines(
        NAME_BY_LABEL,
        tuple(lines["enabled"]),
        lines["allow_unknown"],
        tuple(lines["disabled"]),
    )
    pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    return every_rejected(pieces, read_as, upload.product_line)


async def mend(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    heavy: HeavyWork,
    upload_id: int,
    mended: bytes,
) -> int:
    """Accept the upload's file with the corrected rows as a new upload, and return its id. Raises
    OwnerRequired, NotFound, NotTheNewest, InvalidCsv, DecompressedTooLarge.
    """
    upload = await _upload(database, caller, upload_id)
    async with database.tenant(caller.seller_id) as session:
        newest = await session.scalar(
            select(func.max(Upload.id)).where(
                Upload.seller_id == caller.seller_id,
                Upload.stream == "inventory",
                Upload.state.not_in(_NEVER_READ),
            )
        )
    if newest is not None and newest > upload_id:
        raise errors.NotTheNewest(f"upload {newest} is newer than upload {upload_id}")
    now = clock.now()
    whole = await heavy.read_apart(mended_file, caller, Work.FILE, now, upload_id, mended)
    moment = clock.rfc3339(upload.exported_at)
    arrived = accept_inventory.arrival(caller, upload.product_line, None, moment, now)
    return await accept_inventory.accept_bytes(
        database,
        caller,
        store,
        settings,
        sent(whole),
        "text/csv",
        replace(arrived, mends=upload_id),
        limits.PRESIGNED_PLAIN_BYTES,
    )


async def mended_file(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    upload_id: int,
    mended: bytes,
) -> Path:
    """Write the upload's file with the corrected rows to a new file. Raises InvalidCsv."""
    upload = await _upload(database, caller, upload_id)
    data = await _content(open_store(settings), upload)
    rows = _rejected(upload, data)
    whole = await asyncio.to_thread(rejected_rows.merged, data, rows, mended)
    with making() as (path, file):
        await asyncio.to_thread(file.write, whole)
    return path


async def _upload(database: Database, caller: Caller, upload_id: int) -> Upload:
    caller.must_be_owner()
    async with database.tenant(caller.seller_id) as session:
        upload = await accept_inventory.upload_of(session, caller.seller_id, upload_id)
    if upload.stream != "inventory" or not upload.report.get("rejected"):
        raise errors.NotFound(f"upload {upload_id} has no rejected rows")
    return upload


async def _content(store: Store, upload: Upload) -> bytes:
    try:
        data = await store.read(upload.storage_key)
    except ObjectMissing:
        raise errors.NotFound(f"the file of upload {upload.id} is no longer stored") from None
    return await asyncio.to_thread(bodies.plain, data, limits.BODY_INFLATED_BYTES)

"""Exports a seller: every row of one moment and the stored objects, into an archive.

Rows are read by COPY and converted to Parquet in parts, so that memory contains only a part of a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

import polars as pl
from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import __version__
from cardsync.access.each_seller import known_seller
from cardsync.access.models import Seller
from cardsync.operations.moving import archive_file, archive_tables
from cardsync.operations.moving.archive_file import Manifest
from cardsync.operations.moving.archive_tables import Holds, Part
from cardsync.platform import clock, errors
from cardsync.platform.database.copy import read_parts, types_of
from cardsync.platform.database.parquet_sheet import ParquetSheet
from cardsync.platform.database.session import Database
from cardsync.platform.kit.archive_entries import EntryWriter, FileLine
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.shop.notices.webhook_signature import Unsealed, unsealed

Say = Callable[[str], None]
_CHUNK: Final = 1 << 20


async def export(
    database: Database,
    store: Store,
    settings: Settings,
    seller_id: int,
    path: Path,
    holds: Holds,
    tables: Sequence[Table],
    say: Say,
) -> Manifest:
    """Write the archive of a seller to `path`. `tables` are all tables that name a seller, and
    `seller`.

    Raises SellerError. A failed export leaves nothing behind.
    """
    async with database.tenant(seller_id, snapshot=True) as session:
        seller = await known_seller(session, seller_id)
        parts = archive_tables.parts(tables, holds)
        with archive_file.written(path) as writer:
            lines = {}
            for part in [*parts, archive_tables.products(parts, seller_id)]:
                lines[part.name] = await _table(session, writer, settings, seller_id, part, holds)
                if lines[part.name].rows:
                    say(f"{part.name}: {lines[part.name].rows:,} rows")
            # The objects are listed after the snapshot: an object is stored before the row that
            # names it.
            say("collecting the objects …")
            objects = await _objects(store, writer, seller_id)
            manifest = await _manifest(session, seller, holds, lines, objects)
            writer.end(manifest)
    return manifest


async def _manifest(
    session: AsyncSession,
    seller: Seller,
    holds: Holds,
    tables: dict[str, FileLine],
    objects: dict[str, FileLine],
) -> Manifest:
    return Manifest(
        made_at=clock.now(),
        program=__version__,
        revision=await session.scalar(text("SELECT version_num FROM alembic_version")) or "",
        holds=holds,
        seller_id=seller.id,
        name=seller.name,
        email=seller.email,
        created_at=seller.created_at,
        tables=tables,
        objects=objects,
    )


async def _table(
    session: AsyncSession,
    writer: EntryWriter,
    settings: Settings,
    seller_id: int,
    part: Part,
    holds: Holds,
) -> FileLine:
    query = part.query(seller_id)
    columns = await types_of(session, query)
    with TemporaryDirectory(prefix="cardsync-") as folder:
        sheet = ParquetSheet(Path(folder), columns)

        def take(frame: pl.DataFrame) -> None:
            if part.name == "webhook" and holds is Holds.SECRETS:
                frame = _with_secrets(settings, seller_id, frame)
            sheet.append(frame)

        await read_parts(session, query, sheet.cells, take)
        return writer.add(archive_file.table_entry(part.name), sheet.chunks(), sheet.rows)


def _with_secrets(settings: Settings, seller_id: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Write the secrets of webhooks in plain text, because another installation cannot unseal them."""
    try:
        plain = [
            "\\x" + unsealed(settings, seller_id, bytes.fromhex(sealed[2:])).encode().hex()
            for sealed in rows["secret"]
        ]
    except Unsealed:
        raise errors.CommandError(
            "a webhook's secret was sealed with another CARDSYNC_SECRET_KEY: export without"
            " --with-secrets"
        ) from None
    return rows.with_columns(secret=pl.Series(plain, dtype=pl.String))


async def _objects(store: Store, writer: EntryWriter, seller_id: int) -> dict[str, FileLine]:
    lines = {}
    for kind in archive_tables.OBJECTS:
        for key in await store.keys(f"{kind}/u{seller_id}"):
            name = f"{kind}/{key.rpartition('/')[2]}"
            # The object may have expired and been deleted in the meantime.
            with suppress(ObjectMissing), TemporaryDirectory(prefix="cardsync-") as folder:
                path = Path(folder) / "object"
                with path.open("wb") as file:
                    await _copied(store, key, file)
                with path.open("rb") as copied:
                    lines[name] = writer.add(f"{archive_file.OBJECTS}/{name}", _chunks(copied))
    return lines


async def _copied(store: Store, key: str, file: BinaryIO) -> None:
    size = await store.size(key)
    async for chunk in store.read_range(key, 0, size):
        file.write(chunk)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    yield from iter(partial(file.read, _CHUNK), b"")

"""Makes the entries of an account's export, as heavy reads. An entry is a file of the archive with
a table, or with old rows.

Each part of a table is read in a short transaction of its own, so a change during the export may be
in one file and not in another.
"""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy import text

from cardsync.access.caller import Caller
from cardsync.platform.database.copy import Schema, read_rows, types_of, with_values
from cardsync.platform.database.parquet_sheet import ParquetSheet
from cardsync.platform.database.session import Database
from cardsync.platform.kit.archive_entries import CountedFile, EntryWriter, FileLine
from cardsync.platform.kit.csv_table import encoded_frame
from cardsync.platform.old_data.read_back import Old, old_files
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.shop.accounts.export_sheets import SHEETS, Sheet
from cardsync.web.made_files import making

ROWS_AT_ONCE: Final = 20_000
_LEVEL: Final = 4
# The first part is read from this key on; all keys are greater.
_FIRST: Final = -(2**63)


class Entries(NamedTuple):
    """A temporary file with entries. `infos` has the offset of each entry in the file, and `lines`
    are the entries' lines for the manifest.
    """

    path: Path
    infos: list[zipfile.ZipInfo]
    lines: dict[str, FileLine]


@contextmanager
def _writing() -> Iterator[tuple[Entries, EntryWriter]]:
    """Yield a writer of entries to a temporary file. The file has no zip directory, because the
    archive has one directory for all entries.
    """
    with making() as (path, file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as zipped:
            writer = EntryWriter(zipped)
            yield Entries(path, zipped.filelist, writer.lines), writer
            end = zipped.start_dir
        file.truncate(end)


async def table_entries(
    database: Database, caller: Caller, settings: Settings, now: datetime, number: int
) -> Entries:
    """Make the entries of a table, as CSV and as Parquet."""
    sheet = SHEETS[number]
    query = f"SELECT {sheet.columns} FROM {sheet.table} WHERE false"
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        columns = await types_of(
            session, await with_values(session, query, {"seller": caller.seller_id})
        )
    with TemporaryDirectory(prefix="cardsync-") as folder, _writing() as (entries, writer):
        parquet = ParquetSheet(Path(folder), columns)
        with writer.packed(sheet.name) as entry:
            after: int | None = _FIRST
            while after is not None:
                head = after == _FIRST
                part, after = await _part(database, caller, sheet, parquet.cells, after)
                await asyncio.to_thread(_add, entry, parquet, part, head=head)
        name = sheet.name.replace(".csv", ".parquet")
        await asyncio.to_thread(writer.add, name, parquet.chunks())
        return entries


async def old_entries(
    database: Database, caller: Caller, settings: Settings, now: datetime
) -> Entries:
    """Make the entries of old rows, which are copies of the files in the object store."""
    old = Old(database, open_store(settings), caller.seller_id)
    with _writing() as (entries, writer):
        async for name, data in old_files(old):
            writer.add(name, [data])
        return entries


def _add(entry: CountedFile, parquet: ParquetSheet, part: pl.DataFrame, *, head: bool) -> None:
    """Add rows to the CSV and the Parquet file. Only the CSV marks texts that a spreadsheet would
    calculate.
    """
    parquet.append(part)
    entry.write(encoded_frame(part, parquet.texts, head=head))


async def _part(
    database: Database, caller: Caller, sheet: Sheet, cells: Schema, after: int
) -> tuple[pl.DataFrame, int | None]:
    """Return the rows after the key `after`, and the `after` of the next part, or None for the last
    part.
    """
    key = sheet.key
    values: dict[str, object] = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "after": after,
        "most": ROWS_AT_ONCE,
    }
    rows = f"FROM {sheet.table} WHERE seller_id = :seller AND {key} > :after AND {sheet.which}"
    bound = (
        "SELECT coalesce(max(k), :after), count(*)"
        f" FROM (SELECT {key} AS k {rows} ORDER BY {key} LIMIT :most) t"
    )
    query = f"SELECT {sheet.columns} {rows} AND {key} <= :last ORDER BY {key}"
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        last, count = (await session.execute(text(bound), values)).one()
        part = await read_rows(session, query, cells, {**values, "last": last})
    return part, last if count == ROWS_AT_ONCE else None

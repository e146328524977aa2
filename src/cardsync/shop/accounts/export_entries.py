"""Makes the entries of an account's export for the archive that has them, each with a table or with
all old rows, as heavy reads.

Each part of a table is a short transaction of its own: a change meanwhile may appear in one file
and not yet in another.
"""

from __future__ import annotations

import asyncio
import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final, NamedTuple

from sqlalchemy import text

from cardsync.access.caller import Caller
from cardsync.platform.backups.backup_folder import FileLine
from cardsync.platform.database.copy import read_bytes, types_of, with_values
from cardsync.platform.database.parquet_sheet import ParquetSheet
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import encoded_frame
from cardsync.platform.kit.safe_texts import safe_texts
from cardsync.platform.old_data.read_back import Old, old_files
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.shop.accounts.export_sheets import SHEETS, Sheet
from cardsync.web.made_files import making

ROWS_AT_ONCE: Final = 20_000
_LEVEL: Final = 4
# An entry of a zip has a time; these carry the earliest that the format knows.
MOMENT: Final = (1980, 1, 1, 0, 0, 0)


class Entries(NamedTuple):
    """A file of entries; `infos` say where in it each begins, and `lines` are the manifest's."""

    path: Path
    infos: list[zipfile.ZipInfo]
    lines: dict[str, FileLine]


class _Counted:
    """A file of the archive that is hashed while it is written."""

    def __init__(self, entry: IO[bytes]) -> None:
        self._entry, self._hashed, self._size = entry, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self._hashed.update(data)
        self._size += len(data)
        self._entry.write(data)

    def line(self) -> FileLine:
        return FileLine(self._size, self._hashed.hexdigest())


class _Writer:
    """Writes entries, and remembers their sizes and digests."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._lines: dict[str, FileLine] = {}

    @contextmanager
    def entry(self, name: str | zipfile.ZipInfo) -> Iterator[_Counted]:
        """Open an entry: by a name it is deflated, else stored."""
        with self._file.open(name, "w", force_zip64=True) as opened:
            entry = _Counted(opened)
            yield entry
        self._lines[self._file.filelist[-1].filename] = entry.line()

    def written(self, path: Path) -> Entries:
        return Entries(path, self._file.filelist, self._lines)


@contextmanager
def _writing() -> Iterator[tuple[Path, _Writer]]:
    with making() as (path, file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as zipped:
            yield path, _Writer(zipped)
            end = zipped.start_dir
        # The archive has one directory for all entries.
        file.truncate(end)


async def table_entries(
    database: Database, caller: Caller, settings: Settings, now: datetime, number: int
) -> Entries:
    """Make the entries of a table, as CSV and as Parquet."""
    sheet = SHEETS[number]
    columns = await _columns(database, caller, sheet)
    with TemporaryDirectory(prefix="cardsync-") as folder, _writing() as (path, writer):
        parquet = ParquetSheet(Path(folder), columns)
        with writer.entry(sheet.name) as entry:
            last, head = None, True
            while head or last is not None:
                part, last = await _part(database, caller, sheet, last)
                await asyncio.to_thread(_add, entry, parquet, part, head=head)
                head = False
        # Parquet is compressed already.
        with writer.entry(_stored(sheet.name.replace(".csv", ".parquet"))) as entry:
            await asyncio.to_thread(_add_all, entry, parquet.chunks())
        return writer.written(path)


async def old_entries(
    database: Database, caller: Caller, settings: Settings, now: datetime
) -> Entries:
    """Make the entries of the rows that have moved to the object store, as they are there."""
    old = Old(database, open_store(settings), caller.seller_id)
    with _writing() as (path, writer):
        async for name, data in old_files(old):
            with writer.entry(_stored(name)) as entry:
                entry.write(data)
        return writer.written(path)


def _stored(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, MOMENT)


def _add(entry: _Counted, parquet: ParquetSheet, part: bytes, *, head: bool) -> None:
    """Add the rows to both files; Parquet keeps each text as it is, since nothing calculates it."""
    cells = parquet.add(part, head=head)
    safely = safe_texts(cells, parquet.texts if part else ())
    # Rewriting takes longer than reading, and few parts have such a text.
    entry.write(part if safely is cells else encoded_frame(safely, (), head=head))


def _add_all(entry: _Counted, chunks: Iterator[bytes]) -> None:
    for chunk in chunks:
        entry.write(chunk)


async def _columns(
    database: Database,
    caller: Caller,
    sheet: Sheet,
) -> dict[str, tuple[str, int | None]]:
    """Return each column's type, and the decimal places of an amount that has a fixed number."""
    query = f"SELECT {sheet.columns} FROM {sheet.table} WHERE false"
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return await types_of(
            session, await with_values(session, query, {"seller": caller.seller_id})
        )


async def _part(
    database: Database, caller: Caller, sheet: Sheet, after: int | None
) -> tuple[bytes, int | None]:
    """Return the rows after that key, and the key that the next ones come after, if any."""
    key, head = sheet.key, "true" if after is None else "false"
    values: dict[str, Any] = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "after": -(2**63) if after is None else after,
        "most": ROWS_AT_ONCE,
    }
    rows = f"FROM {sheet.table} WHERE seller_id = :seller AND {key} > :after AND {sheet.which}"
    bound = (
        "SELECT coalesce(max(k), :after), count(*)"
        f" FROM (SELECT {key} AS k {rows} ORDER BY {key} LIMIT :most) t"
    )
    copy = (
        f"COPY (SELECT {sheet.columns} {rows} AND {key} <= :last ORDER BY {key})"
        f" TO STDOUT (FORMAT csv, HEADER {head}, ENCODING 'UTF8')"
    )
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        last, count = (await session.execute(text(bound), values)).one()
        copied = await with_values(session, copy, {**values, "last": last})
        data = await read_bytes(session, copied)
    return data, last if count == ROWS_AT_ONCE else None

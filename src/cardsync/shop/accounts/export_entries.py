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
from typing import IO, Final, NamedTuple

from psycopg import sql

from cardsync.access.caller import Caller
from cardsync.platform.backups.backup_folder import FileLine
from cardsync.platform.database.copy import read_bytes
from cardsync.platform.database.parquet_sheet import ParquetSheet
from cardsync.platform.database.session import Database, driver
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
    query = sql.SQL("SELECT {columns} FROM {table} WHERE false").format(
        columns=sql.SQL(sheet.columns).format(seller=sql.Literal(caller.seller_id)),
        table=sql.Identifier(sheet.table),
    )
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        connection = await driver(session)
        async with connection.cursor() as cursor:
            await cursor.execute(query)
            columns_read = cursor.description or []
            types = connection.adapters.types
            known = {column.name: types.get(column.type_code) for column in columns_read}
            return {
                column.name: (kind.name if (kind := known[column.name]) else "text", column.scale)
                for column in columns_read
            }


async def _part(
    database: Database, caller: Caller, sheet: Sheet, after: int | None
) -> tuple[bytes, int | None]:
    """Return the rows after that key, and the key that the next ones come after, if any."""
    names = {
        "table": sql.Identifier(sheet.table),
        "key": sql.SQL(sheet.key),
        "which": sql.SQL(sheet.which).format(member=sql.Literal(caller.member_id)),
    }
    values = {"seller": caller.seller_id, "after": -(2**63) if after is None else after}
    bound = sql.SQL(
        "SELECT max(k), count(*) FROM (SELECT {key} AS k FROM {table}"
        " WHERE seller_id = %(seller)s AND {key} > %(after)s AND {which} ORDER BY {key} LIMIT {most}) t"
    ).format(**names, most=sql.Literal(ROWS_AT_ONCE))
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        connection = await driver(session)
        async with connection.cursor() as cursor:
            await cursor.execute(bound, values)
            row = await cursor.fetchone()
            last, count = row or (None, 0)
            copy = sql.SQL(
                "COPY (SELECT {columns} FROM {table} WHERE seller_id = {seller}"
                " AND {key} > {after} AND {key} <= {last} AND {which} ORDER BY {key})"
                " TO STDOUT (FORMAT csv, HEADER {head}, ENCODING 'UTF8')"
            ).format(
                **names,
                columns=sql.SQL(sheet.columns).format(seller=sql.Literal(caller.seller_id)),
                seller=sql.Literal(caller.seller_id),
                after=sql.Literal(values["after"]),
                last=sql.Literal(values["after"] if last is None else last),
                head=sql.SQL("true" if after is None else "false"),
            )
        data = await read_bytes(session, copy.as_string(connection))
    return data, last if count == ROWS_AT_ONCE else None

"""Exports all data of an account as one zip file. Each table is exported as CSV and as Parquet; old
rows are copied from the object store. The last file, `manifest.json`, lists the size and the
SHA-256 of each other file.

The zip is sent while the tables are read. A slow download occupies no database connection and no
process, only the temporary file of one table.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import aclosing
from typing import Final

from cardsync import __version__
from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.kit.archive_entries import EntryWriter, FileLine
from cardsync.shop.accounts.export_entries import Entries, old_entries, table_entries
from cardsync.shop.accounts.export_sheets import SHEETS
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import begun, sent

ZIP: Final = "application/zip"
# A table may take a minute. With this kind of work, the agent's price file does not wait for it.
_WORK: Final = Work.PRICES_ALL


class _End(io.BytesIO):
    """The end of an archive, from the offset `at` on. The part before it is already sent, so
    positions before `at` can't be written.
    """

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def tell(self) -> int:
        return self._at + super().tell()

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


async def archive(heavy: HeavyWork, caller: Caller) -> AsyncGenerator[bytes, None]:
    """Yield the archive's bytes in parts. Raises OwnerRequired."""
    caller.must_be_owner()
    return await begun(heavy, caller, _parts(heavy, caller))


async def _parts(heavy: HeavyWork, caller: Caller) -> AsyncGenerator[bytes, None]:
    infos: list[zipfile.ZipInfo] = []
    lines: dict[str, FileLine] = {}
    at = 0
    for work in _works(heavy, caller):
        entries = await work
        for info in entries.infos:
            info.header_offset += at
        infos += entries.infos
        lines |= entries.lines
        async with aclosing(sent(entries.path)) as chunks:
            async for chunk in chunks:
                at += len(chunk)
                yield chunk
    yield _ending(at, infos, lines)


def _works(heavy: HeavyWork, caller: Caller) -> Iterator[Awaitable[Entries]]:
    for number in range(len(SHEETS)):
        yield heavy.read(table_entries, caller, _WORK, clock.now(), number)
    yield heavy.read(old_entries, caller, _WORK, clock.now())


def _ending(at: int, infos: list[zipfile.ZipInfo], lines: dict[str, FileLine]) -> bytes:
    """Return the last bytes of the archive: the manifest and the directory of all entries."""
    end = _End(at)
    with zipfile.ZipFile(end, "w") as file:
        file.filelist[:] = infos
        EntryWriter(file).end({"made_at": clock.now(), "program": __version__, "files": lines})
    return end.getvalue()

"""Downloads the files of a source into their own folder with few requests: a file that was
downloaded or checked within the last 20 hours is not requested again, and an older file is
downloaded only if it has changed.

A download is written to the folder `parts`, and moved to `files` when it is complete. An
interrupted download continues where it stopped, if the server supports ranges and the file is
unchanged. Memory holds only a part of a file and the list of files.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from cardsync import __version__
from cardsync.catalog.sources import csv_file, json_file
from cardsync.catalog.sources.declared import Download, Source
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.platform import clock
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.web.public_fetch import HostAway, NotFetched, opened

USER_AGENT: Final = f"cardsync/{__version__}"
# The minimum time between two requests to a source, and between two requests of one file.
PAUSE_SECONDS: Final = 0.15
ONCE: Final = timedelta(hours=20)
SILENCE_SECONDS: Final = 60.0
FILE_SECONDS: Final = 3 * 3600.0
BYTES_MOST: Final = 4_000_000_000
_INDEX_BYTES: Final = 1_000_000
FILES_MOST: Final = 20_000
# The disk space in bytes that downloads must leave free.
_ROOM: Final = 500_000_000
_PART: Final = 1 << 16
# The pauses before an interrupted download continues; after the last one it fails.
_AGAIN_SECONDS: Final = (1.0, 5.0, 20.0)
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FIELD: Final = re.compile(r"\{(\w+)\}")
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")

# Gets the counted unit (bytes or files), the finished number, and the total; 0 is unknown.
Tell = Callable[[str, int, int], None]


class SourceAway(CatalogError):
    """The source does not answer or is busy, or this machine cannot store its files."""


class RememberedFile(msgspec.Struct):
    """The stored state of a file: its address, the server's validators (ETag and date) of this
    edition, the time of the last request, and whether it is compressed.
    """

    address: str
    etag: str = ""
    modified: str = ""
    asked_at: float = 0
    packed: bool = False


class Fetched(NamedTuple):
    """A complete download. `path` is the only file or the folder of files; `digest` is a hash of
    all files.
    """

    path: Path
    files: int
    bytes: int
    digest: str


@dataclass
class _Folder:
    """The files of one catalog on this machine, with the stored state of each."""

    path: Path
    known: dict[str, RememberedFile] = field(default_factory=dict)

    @property
    def _notes(self) -> Path:
        return self.path / "known.json"

    @property
    def files(self) -> Path:
        return self.path / "files"

    def place(self, name: str) -> Path:
        return self.files / name

    def beside(self, name: str) -> Path:
        return self.path / "parts" / name.replace("/", "_")

    def read(self) -> None:
        with suppress(OSError, msgspec.MsgspecError):
            self.known = msgspec.json.decode(
                self._notes.read_bytes(), type=dict[str, RememberedFile]
            )

    def keep(self) -> None:
        """Write the state atomically."""
        new = self._notes.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self.known))
        new.replace(self._notes)

    def forget_others(self, names: set[str]) -> None:
        """Delete the files that the source no longer has."""
        for path in [*self.files.rglob("*")]:
            if path.is_file() and path.relative_to(self.files).as_posix() not in names:
                path.unlink()
        self.known = {name: one for name, one in self.known.items() if name in names}
        self.keep()


def folder_of(settings: Settings, source: Source, game: str) -> Path:
    return settings.catalogs_folder / f"{source.name}-{game}"


def forget(settings: Settings, source: Source, game: str) -> None:
    """Delete the downloaded files, so that the next download fetches each one again."""
    shutil.rmtree(folder_of(settings, source, game), ignore_errors=True)


async def download(settings: Settings, source: Source, game: str, tell: Tell) -> Fetched:
    """Update the downloaded files of a game. Raises CatalogError, and its subclass SourceAway if a
    later try may succeed.
    """
    # Servers and workers check this setting when they start; commands check it only here.
    if not settings.outward_requests:
        raise CatalogError("this installation asks no other host (OUTWARD_REQUESTS)")
    folder = _Folder(folder_of(settings, source, game))
    try:
        return await _download(settings, source, game, folder, tell)
    except OSError as e:
        raise SourceAway(f"{folder.path} cannot be written: {e.strerror or e}") from e


async def _download(
    settings: Settings, source: Source, game: str, folder: _Folder, tell: Tell
) -> Fetched:
    folder.files.mkdir(parents=True, exist_ok=True)
    (folder.path / "parts").mkdir(exist_ok=True)
    with _alone(folder.path):
        folder.read()
        visit = _Visit(settings, source, folder, tell)
        try:
            names = [
                await visit.bring(one, {"game": source.games[game]}) for one in source.downloads
            ]
        except HostAway as e:
            raise SourceAway(f"{source.label} is away: {e}") from e
        except NotFetched as e:
            raise CatalogError(f"{source.label} did not give the file: {e}") from e
        every = sorted(name for some in names for name in some)
        folder.forget_others(set(every))
        whole = len(every) == 1
        path = folder.place(every[0]) if whole else folder.files
        return Fetched(path, len(every), *await asyncio.to_thread(_digest, folder, every))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes of this machine. Raises CatalogError if it is
    locked.
    """
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CatalogError("another process of this machine downloads this catalog") from None
        yield


def _digest(folder: _Folder, names: list[str]) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    for name in names:
        path = folder.place(name)
        size += path.stat().st_size
        with path.open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return size, digest.hexdigest()


class _Visit:
    """The downloads from a source into a folder."""

    def __init__(self, settings: Settings, source: Source, folder: _Folder, tell: Tell) -> None:
        self._settings = settings
        self._source = source
        self._folder = folder
        self._tell = tell

    async def bring(self, wanted: Download, words: Mapping[str, str]) -> list[str]:
        """Download the declared file and the files that it lists; return their names."""
        address = _filled(wanted.address, words, quoted=True)
        if wanted.at:
            address = await self._named(address, wanted.at)
        # Only a single JSON file may be stored compressed, under another name, because readers of
        # several files find these by name.
        is_one = wanted.each is None and len(self._source.downloads) == 1
        may_pack = is_one and wanted.file.endswith(".json")
        name = await self._file(address, _filled(wanted.file, words), may_pack=may_pack)
        if wanted.each is None:
            return [name]
        listed = await asyncio.to_thread(_listed, self._folder.place(name))
        if not 0 < len(listed) <= FILES_MOST:
            raise self._changed(f"its list has {len(listed):,} entries")
        names = [name]
        for at, record in enumerate(listed):
            self._tell("files", at, len(listed))
            each = _words_of(record, wanted.each)
            if each is None:
                raise self._changed(f"entry {at + 1} of its list does not name a file")
            each_address = _filled(wanted.each.address, {**words, **each}, quoted=True)
            names.append(
                await self._file(each_address, _filled(wanted.each.file, {**words, **each}))
            )
        return names

    def _changed(self, how: str) -> CatalogError:
        return CatalogError(f"{self._source.label} has changed its form: {how}")

    async def _named(self, index: str, field: str) -> str:
        """Return the address in the field `field` of a JSON index."""
        async with self._opened(index, {"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise NotFetched(f"{index} was answered with status {answer.status_code}")
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > _INDEX_BYTES:
                    raise self._changed("its index is larger than 1 MB")
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            address = json.loads(body)[field]
        except (ValueError, KeyError, TypeError, RecursionError):
            address = None
        if not isinstance(address, str):
            raise self._changed(f"its index has no {field}")
        return address

    def _opened(self, address: str, headers: dict[str, str]) -> AbstractAsyncContextManager[Any]:
        """Open the response to a request of the address, or, if a mirror is configured, of the
        mirror's address for it.
        """
        settings = self._settings
        mirror = settings.catalog_mirror
        place = None
        if mirror:
            split = urlsplit(address)
            query = f"?{split.query}" if split.query else ""
            address = f"{mirror.rstrip('/')}/{split.netloc}{split.path}{query}"
            place = urlsplit(mirror).netloc
        return opened(
            address,
            {"User-Agent": USER_AGENT, "Accept": "*/*", **headers},
            FILE_SECONDS,
            silence=SILENCE_SECONDS,
            mirror=place,
            development=settings.development_clients,
        )

    async def _file(self, address: str, name: str, *, may_pack: bool = False) -> str:
        """Update one file; return its name, which ends with .gz if the file is compressed."""
        known = self._folder.known
        for kept in (name, f"{name}.gz"):
            one = known.get(kept)
            if one is None or one.address != address or not self._folder.place(kept).exists():
                continue
            if clock.now().timestamp() - one.asked_at < ONCE.total_seconds():
                return kept
        for wait in (*_AGAIN_SECONDS, None):
            try:
                return await self._fetch(address, name, may_pack=may_pack)
            except HostAway:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
            finally:
                await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError

    async def _fetch(self, address: str, name: str, *, may_pack: bool) -> str:
        folder = self._folder
        headers = {"Accept-Encoding": "gzip" if may_pack else "identity"}
        part, begun = folder.beside(name), folder.known.get(f"{name} (a part)")
        have = part.stat().st_size if part.exists() else 0
        if have and begun is not None and begun.address == address and _mark(begun):
            headers |= {"Range": f"bytes={have}-", "If-Range": _mark(begun)}
        else:
            have = 0
        old_name = next((n for n in (name, f"{name}.gz") if self._is_there(n, address)), None)
        if old_name and not have:
            headers |= _conditions(folder.known[old_name])
        async with self._opened(address, headers) as answer:
            status = answer.status_code
            if status == 304 and old_name:
                folder.known[old_name].asked_at = clock.now().timestamp()
                folder.keep()
                return old_name
            if status in (200, 416):
                # The file has changed, or the server does not support ranges.
                have = 0
            if status == 416:
                part.unlink(missing_ok=True)
                raise HostAway("the part that is here is no part of the file any more")
            if status not in (200, 206):
                raise NotFetched(f"{address} was answered with status {status}")
            packed = answer.headers.get("content-encoding", "identity") == "gzip"
            if answer.headers.get("content-encoding", "identity") not in ("identity", "gzip"):
                raise NotFetched(f"{address} came packed in a way that was not asked for")
            if have and begun is not None and packed != begun.packed:
                part.unlink()
                raise HostAway("the rest came packed in another way than the beginning")
            total = _total(answer, have)
            await self._receive(answer, name, address, have, total, packed=packed)
        final = f"{name}.gz" if packed else name
        place = folder.place(final)
        place.parent.mkdir(parents=True, exist_ok=True)
        part.replace(place)
        one = folder.known.pop(f"{name} (a part)")
        one.asked_at = clock.now().timestamp()
        for other in (name, f"{name}.gz"):
            folder.known.pop(other, None)
        folder.known[final] = one
        folder.keep()
        return final

    def _is_there(self, name: str, address: str) -> bool:
        one = self._folder.known.get(name)
        return one is not None and one.address == address and self._folder.place(name).exists()

    async def _receive(
        self, answer: Any, name: str, address: str, have: int, total: int | None, *, packed: bool
    ) -> None:
        """Append the body to the stored part. Raises HostAway if it ends early."""
        folder = self._folder
        if total is not None and total > BYTES_MOST:
            raise NotFetched(f"it is larger than {BYTES_MOST / 1e9:.0f} GB")
        room = shutil.disk_usage(folder.path).free - _ROOM
        if (total or 0) - have > room:
            raise NotFetched(
                f"the disk of {folder.path} has too little room for {(total or 0) / 1e6:,.0f} MB"
            )
        if not have:
            marks = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
            folder.known[f"{name} (a part)"] = RememberedFile(address, *marks, packed=packed)
            folder.keep()
        done = have
        with folder.beside(name).open("ab" if have else "wb", _PART) as file:
            async for piece in answer.aiter_raw():
                file.write(piece)
                done += len(piece)
                if done > min(BYTES_MOST, total or BYTES_MOST):
                    raise NotFetched("more came than it was said to be")
                if total and total > _PART:
                    self._tell("bytes", done, total)
        if total is not None and done < total:
            raise HostAway(f"it ended after {done:,} of {total:,} bytes")


def _mark(known: RememberedFile) -> str:
    """Return the validator for `If-Range`: a strong ETag, or else the date of the file."""
    return known.modified if known.etag.startswith("W/") or not known.etag else known.etag


def _conditions(known: RememberedFile) -> dict[str, str]:
    found = {"If-None-Match": known.etag, "If-Modified-Since": known.modified}
    return {name: value for name, value in found.items() if value}


def _total(answer: Any, have: int) -> int | None:
    """Return the size of the file in bytes; None if the server does not send it."""
    if answer.status_code == 206:
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if found is None or int(found[1]) != have:
            raise NotFetched("another part came than was asked for")
        return int(found[2])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdigit() else None


def _filled(template: str, words: Mapping[str, str], *, quoted: bool = False) -> str:
    return _FIELD.sub(
        lambda found: quote(words[found[1]], safe="") if quoted else words[found[1]], template
    )


def _words_of(record: object, wanted: Download) -> dict[str, str] | None:
    """Return the fields of a listed record that are needed in the address and the file name; None
    if one is missing or is not a valid file name.
    """
    fields = {*_FIELD.findall(wanted.address), *_FIELD.findall(wanted.file)} - {"game"}
    found = {}
    for name in fields:
        value = record.get(name) if isinstance(record, dict) else None
        text = str(value) if isinstance(value, (str, int)) else ""
        if not _FILE_NAME.fullmatch(text):
            return None
        found[name] = text
    return found


def _listed(path: Path) -> list[Json]:
    """Return the entries of a list of files, at most `FILES_MOST` + 1. Raises CatalogError."""
    is_csv = path.suffix == ".csv"
    found = csv_file.rows(path) if is_csv else json_file.items(path, "item", "data.item")
    return [*islice(found, FILES_MOST + 1)]

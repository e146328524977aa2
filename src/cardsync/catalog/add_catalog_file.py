"""Loads a catalog from a file that a person added on a page or through the API. The file is read
from the object store, checked, and loaded like a downloaded catalog. A faulty file changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl
import structlog

from cardsync.catalog import install_state
from cardsync.catalog.install_catalog import (
    UNREADABLE,
    InstalledElsewhere,
    Progress,
    held_alone,
    loaded,
    must_be_read,
)
from cardsync.catalog.install_state import ANY_GAME, Held
from cardsync.catalog.load_catalog import load
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.platform import clock
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.platform.work.jobs import Work

log = structlog.get_logger(__name__)

# The folder of the object store for added files, which are deleted after loading.
FOLDER: Final = "catalogs"
# Local folders older than this belong to killed processes, and are deleted.
_LEFT_SECONDS: Final = 86_400


async def add_catalog_file(work: Work, place: str) -> str:
    """Load the file and return a sentence about the result. Raises CatalogError."""
    name = name_of(place)

    async def begin(held: Held, progress: Progress) -> str:
        return await _load(work, held, progress, name)

    try:
        done = await held_alone(work.database, ANY_GAME, place, name, begin, once=True)
    except InstalledElsewhere:
        raise
    except CatalogError:
        await work.store.delete(key_of(place))
        raise
    await work.store.delete(key_of(place))
    return done


def key_of(place: str) -> str:
    """Return the object store's key of an added file."""
    return f"{FOLDER}/{place}"


def name_of(place: str) -> str:
    """Return the name of an added file, without its folder."""
    return place.rpartition("/")[2]


async def _load(work: Work, held: Held, progress: Progress, name: str) -> str:
    key = key_of(held.source)
    try:
        async with copied(work.store, key, work.settings, name, progress) as file:
            progress.tell("read", 0, 0)
            report = await load(
                work.database,
                file.path,
                "auto",
                None,
                _quiet,
                check=lambda report: must_be_read(report, name),
                tell=progress.tell,
            )
    except ObjectMissing:
        raise CatalogError(f"{name} is no longer there; add it again") from None
    except (pl.exceptions.PolarsError, *UNREADABLE) as e:
        reason = " ".join(str(e).split())[:300]
        raise CatalogError(f"{name} cannot be read as a catalog: {reason}") from e
    now = clock.now()
    kept = loaded(report, file.digest, file.size, now)
    await install_state.succeed(work.database, held, kept, now)
    log.info("catalog_file_loaded", rows=report.products)
    return report.sentence()


class Copied(NamedTuple):
    """A copy of an object on this machine."""

    path: Path
    size: int
    digest: str


@asynccontextmanager
async def copied(
    store: Store, key: str, settings: Settings, name: str, progress: Progress
) -> AsyncIterator[Copied]:
    """Yield a local copy of the object with the file name `name`, and delete it afterwards. Raises
    ObjectMissing.
    """
    folder = _new_folder(settings.catalogs_folder / "added")
    try:
        path = folder / name
        yield Copied(path, *await _fetch(store, key, path, progress))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder(above: Path) -> Path:
    """Create a folder for one file, and delete old folders that killed processes did not delete."""
    old = clock.now().timestamp() - _LEFT_SECONDS
    for left in above.glob("*"):
        if left.stat().st_mtime < old:
            shutil.rmtree(left, ignore_errors=True)
    folder = above / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder


async def _fetch(store: Store, key: str, path: Path, progress: Progress) -> tuple[int, str]:
    """Write the object to the file; return its size and its digest. Raises ObjectMissing."""
    digest = hashlib.sha256()
    size, done = await store.size(key), 0
    with path.open("wb") as file:
        async for piece in store.read_range(key, 0, size):
            await asyncio.to_thread(file.write, piece)
            digest.update(piece)
            done += len(piece)
            progress.tell("download bytes", done, size)
    return size, digest.hexdigest()


def _quiet(line: str) -> None:
    """Print nothing: the page shows the progress."""

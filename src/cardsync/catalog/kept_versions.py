"""Stores the printings of an installed catalog's current and previous versions in the object store,
so that a person can go back to the previous version. Older versions are deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from dataclasses import dataclass
from typing import Final

import polars as pl
import structlog

from cardsync.catalog import install_state
from cardsync.catalog.install_state import Held
from cardsync.platform.database.copy import encode
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store

log = structlog.get_logger(__name__)

FOLDER: Final = "catalog-versions"
# The address of a picture may change daily without a change of the card.
_PASSING: Final = "picture_url"


class StillRefused(Exception):
    """The source has the version that a person went back from, and nothing newer."""


@dataclass
class Keeping:
    """Stores the loaded version, for the process with the hold `held`. With `refuses`, the version
    that a person went back from raises StillRefused.
    """

    database: Database
    store: Store
    held: Held
    refuses: bool
    content: str = ""
    kept: str | None = None

    async def take(self, frame: pl.DataFrame) -> None:
        """Store a version before it is loaded, unless it equals the version in use. Raises
        StillRefused.
        """
        held = self.held
        self.content = await asyncio.to_thread(content_of, frame)
        if self.refuses and held.refused and held.refused.content == self.content:
            raise StillRefused
        if held.kept and held.content == self.content:
            self.kept = held.kept
            return
        try:
            await self._sweep()
            self.kept = await self._keep(frame)
        except Exception as e:
            # The catalog is loaded even if it could not be stored; then a person can't go back to
            # this version.
            log.warning("catalog_version_not_kept", game=held.game, kind=type(e).__name__)

    async def drop_old(self) -> None:
        """Delete all versions but the loaded one and the previous one."""
        held = self.held
        left = held.earlier if held.content == self.content else held.present
        await drop(self.store, held, self.kept, left.kept if left else None)

    async def _keep(self, frame: pl.DataFrame) -> str:
        name = f"{_folder(self.held)}{uuid.uuid4()}.parquet"
        with self.store.spool() as (path, file):
            await asyncio.to_thread(frame.write_parquet, file)
            file.flush()
            await self.store.write(name, path)
        return name

    async def _sweep(self) -> None:
        """Delete objects that killed processes did not record. The recorded keys are read after the
        list of objects, so that no object is deleted that another process has just recorded.
        """
        found = await self.store.keys(_folder(self.held))
        named = await install_state.kept_names(self.database, self.held)
        if named is not None:
            for key in set(found) - named:
                await self.store.delete(key)


async def drop(store: Store, held: Held, *still: str | None) -> None:
    """Delete the stored versions of `held`, except those with the keys `still`."""
    before = {held.kept, held.earlier and held.earlier.kept} - {None, *still}
    for key in before:
        try:
            await store.delete(str(key))
        except Exception as e:
            # The next load deletes the object.
            log.warning("catalog_version_not_deleted", game=held.game, kind=type(e).__name__)


def content_of(frame: pl.DataFrame) -> str:
    """Return the hash of a version's printings, which does not depend on prices and dates in the
    source's file.
    """
    told = frame.drop(_PASSING)
    return hashlib.sha256(encode(told.sort(told.columns))).hexdigest()


def _folder(held: Held) -> str:
    return f"{FOLDER}/{held.source}-{held.game}/"

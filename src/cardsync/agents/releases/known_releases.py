"""Caches the releases and kills in this process, so that offers need no statement. The cache is
read at the start, on each notice of a change and at long intervals.

`offer.choose` uses `shelf(product)`. While the database is unavailable, the cached state is used.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.releases.models import Release, ReleaseKill
from cardsync.agents.releases.offer import (
    PRODUCTS,
    Published,
    Shelf,
    read_version,
    same_platform,
    shelve,
)
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import every
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of

TOPIC = "releases"
READ_SECONDS = 5.0
RETRY_SECONDS = 2.0
# A requested release that is not in the cache may be new, so the cache is read again; but at most
# this often, because strangers may guess addresses.
MISS_SECONDS = 1.0


async def read_shelves(session: AsyncSession) -> dict[str, Shelf]:
    published = [struct_of(Published, row) for row in await session.scalars(select(Release))]
    kills = list(await session.execute(select(ReleaseKill.product, ReleaseKill.version)))
    return {
        product: shelve(
            [release for release in published if release.product == product],
            {version for of, version in kills if of == product},
        )
        for product in PRODUCTS
    }


class KnownReleases:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._shelves = {product: Shelf() for product in PRODUCTS}
        self._changed = asyncio.Event()
        self._read_at = -MISS_SECONDS
        # Reads run one after the other: a slow older read must not replace the result of a newer
        # read.
        self._reading = asyncio.Lock()

    def shelf(self, product: str) -> Shelf:
        return self._shelves[product]

    def invalidate(self, _payload: str = "") -> None:
        """Read again soon, because a notice arrived. Many notices in a row cause one read."""
        self._changed.set()

    async def read(self) -> None:
        async with self._reading:
            self._read_at = clock.monotonic()
            async with self._database.shared() as session:
                self._shelves = await read_shelves(session)

    async def artifact(
        self,
        product: str,
        version: str,
        platform: str,
        file_name: str,
    ) -> Published | None:
        """Return the artifact at a download address; a killed release is no longer served."""
        found = self._find(product, version, platform, file_name)
        if found is None and clock.monotonic() - self._read_at >= MISS_SECONDS:
            await self.read()
            found = self._find(product, version, platform, file_name)
        return found

    async def published(self, product: str, version: str, path: str) -> Published:
        """Return the artifact whose `path` is the platform, which may contain slashes, and the
        file's name. Raises NotFound.
        """
        platform, _, file_name = path.strip("/").rpartition("/")
        release = await self.artifact(product, version, platform, file_name)
        if release is None:
            raise errors.NotFound("there is no such release")
        return release

    def _find(self, product: str, version: str, platform: str, file_name: str) -> Published | None:
        shelf = self._shelves.get(product, Shelf())
        wanted = (read_version(version), file_name, same_platform(platform))
        for release in shelf.releases:
            if (release.version, release.file_name, same_platform(release.platform)) == wanted:
                return None if shelf.has_killed(release.version) else release
        return None

    def kept_fresh(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Read before the first request, if the database answers; then read again in the
        background. After a failed read, retry sooner than the regular interval: an unread row may
        be a kill.
        """
        return every(
            seconds,
            self._read_soon,
            "releases_not_read",
            first=0,
            retry=RETRY_SECONDS,
            wake=self._changed,
        )

    async def _read_soon(self) -> None:
        async with asyncio.timeout(READ_SECONDS):
            await self.read()

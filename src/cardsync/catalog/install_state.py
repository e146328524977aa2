"""Stores the state of installed catalogs: requests, holds, progress and results. Each change is a
short transaction of its own; no transaction is open during a download or an import.

A process that installs a catalog has a hold on it, which expires by the database's clock unless the
process renews it. So only one of several machines installs, and another continues if it dies.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.sources.declared import BY_NAME, SOURCES, Source, of_game
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.platform import clock
from cardsync.platform.database.read_sources import rows_of
from cardsync.platform.database.session import Database, run
from cardsync.platform.database.snapshot_reads import Reading

# True if the installation has only one shop. Its owner decides about catalogs, without an operator.
ONE_SHOP: Final = "(SELECT count(*) = 1 FROM (SELECT FROM seller LIMIT 2) AS few)"
HOLD_SECONDS: Final = 60
# The `game` of a file that a person added, which may contain several games. Its `source` is the
# file's key in the object store without the folder.
ANY_GAME: Final = ""
# The time after which the state of an added file is deleted.
FILES_KEPT: Final = timedelta(days=1)
# The pauses after the first, second and later failures; the last pause repeats.
PAUSES: Final = (
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
)
# The pause after a failure that is not the source's unavailability, such as a changed format.
_CHANGED: Final = timedelta(days=1)

_IS_FREE: Final = "(t.held_until IS NULL OR t.held_until < clock_timestamp())"
_CLAIM: Final = f"""
    INSERT INTO catalog_install AS t (game, source, holder, held_until, step)
    VALUES (:game, :source, :holder, clock_timestamp() + make_interval(secs => :seconds),
      'download')
    ON CONFLICT (game, source) DO UPDATE
       SET holder = excluded.holder, held_until = excluded.held_until, step = 'download',
           done = 0, total = 0
     WHERE {_IS_FREE}
    RETURNING t.asked_at, t.back, t.installed_at, t.digest, t.rows, t.skipped, t.bytes, t.content,
              t.kept, t.earlier, t.refused
"""
_RENEW: Final = """
    UPDATE catalog_install
       SET held_until = clock_timestamp() + make_interval(secs => :seconds),
           step = :step, done = :done, total = :total
     WHERE game = :game AND source = :source AND holder = :holder
"""
_SIZE: Final = """
    UPDATE catalog_install SET bytes = :bytes
     WHERE game = :game AND source = :source AND holder = :holder
"""
_FREED: Final = "holder = NULL, held_until = NULL, step = '', done = 0, total = 0"
_ENDED: Final = f"""{_FREED}, asked_at = NULL, back = false, failed_at = NULL, failure = NULL,
           failures = 0"""
_WELL: Final = f"""
    UPDATE catalog_install
       SET {_ENDED}, checked_at = :now, next_at = NULL {{loaded}}
     WHERE game = :game AND source = :source AND holder = :holder
"""
_VERSION: Final = """installed_at = :installed_at, digest = :digest, rows = :rows,
           skipped = :skipped, bytes = :bytes, content = :content, kept = :kept,
           earlier = CAST(:earlier AS jsonb), refused = CAST(:refused AS jsonb)"""
_WENT_BACK: Final = f"""
    UPDATE catalog_install SET {_ENDED}, next_at = :next_at, {_VERSION}
     WHERE game = :game AND source = :source AND holder = :holder
"""
_FAILED: Final = f"""
    UPDATE catalog_install
       SET {_FREED}, failed_at = :now, failure = :failure, failures = failures + 1,
           next_at = :next_at, back = back AND NOT CAST(:for_good AS boolean),
           asked_at = CASE WHEN CAST(:for_good AS boolean) THEN NULL ELSE asked_at END
     WHERE game = :game AND source = :source AND holder = :holder
    RETURNING failures
"""
_FREE: Final = f"""
    UPDATE catalog_install SET {_FREED}
     WHERE game = :game AND source = :source AND holder = :holder
"""
_ASK: Final = f"""
    INSERT INTO catalog_install AS t (game, source, asked_at) VALUES (:game, :source, :now)
    ON CONFLICT (game, source) DO UPDATE
       SET asked_at = excluded.asked_at, back = false, next_at = NULL, failures = 0
     WHERE {_IS_FREE} AND (t.asked_at IS NULL OR t.next_at IS NOT NULL OR t.back)
"""
_ASK_BACK: Final = f"""
    UPDATE catalog_install AS t SET asked_at = :now, back = true, next_at = NULL, failures = 0
     WHERE game = :game AND source = :source AND earlier IS NOT NULL
       AND {_IS_FREE} AND (t.asked_at IS NULL OR t.next_at IS NOT NULL OR NOT t.back)
"""
_WITH_EARLIER: Final = """
    SELECT source FROM catalog_install WHERE game = :game AND earlier IS NOT NULL ORDER BY source
"""
_FORGET: Final = """
    UPDATE catalog_install SET earlier = NULL
     WHERE game = :game AND source = :source AND holder = :holder
"""
_KEPT: Final = """
    SELECT kept, earlier ->> 'kept' FROM catalog_install
     WHERE game = :game AND source = :source AND holder = :holder
"""
_DUE: Final = f"""
    SELECT t.game, t.source, t.back FROM catalog_install t
     WHERE {_IS_FREE} AND (t.next_at IS NULL OR t.next_at <= :now)
       AND (t.asked_at IS NOT NULL
            OR CAST(:before AS timestamptz) IS NOT NULL AND t.checked_at < :before
               AND t.game <> '{ANY_GAME}')
     ORDER BY t.asked_at, t.checked_at
"""
_ALL: Final = f"""
    SELECT t.game, t.source, t.asked_at, t.installed_at, t.checked_at, t.rows, t.skipped, t.bytes,
           t.failed_at, t.failure, t.next_at, NOT {_IS_FREE} AS runs, t.step, t.done, t.total,
           t.back, t.earlier, t.refused
      FROM catalog_install t ORDER BY t.game, t.source
"""
_ADD: Final = """
    INSERT INTO catalog_install (game, source, asked_at, bytes)
      VALUES (:game, :source, :now, :bytes)
"""
_DROP: Final = f"""
    DELETE FROM catalog_install t WHERE t.game = :game AND t.asked_at IS NULL AND {_IS_FREE}
       AND coalesce(t.checked_at, t.failed_at) < :before
"""
_SOURCES: Final = """
    SELECT source FROM catalog_install WHERE game = :game AND installed_at IS NOT NULL
     ORDER BY source
"""
_COUNTS: Final = """
    SELECT game, sum(printings) FROM catalog_name GROUP BY game HAVING sum(printings) > 0
"""


class Version(msgspec.Struct):
    """A version of a catalog. `kept` is the key of its stored object, `content` the hash of its
    printings, and `digest` that of the downloaded files. `since` is when a person went back from
    this version.
    """

    kept: str
    content: str
    digest: str
    rows: int
    skipped: int
    bytes: int
    installed_at: datetime
    since: datetime | None = None


def _version(found: object) -> Version | None:
    return None if found is None else msgspec.convert(found, Version)


def _json(version: Version | None) -> str | None:
    return None if version is None else msgspec.json.encode(version).decode()


class Install(NamedTuple):
    """The state of a game's catalog from one source. `runs` is True while a process installs it."""

    game: str
    source: str
    asked_at: datetime | None
    installed_at: datetime | None
    checked_at: datetime | None
    rows: int
    skipped: int
    bytes: int
    failed_at: datetime | None
    failure: str | None
    next_at: datetime | None
    runs: bool
    step: str
    done: int
    total: int
    back: bool
    earlier: Version | None
    refused: Version | None


class Due(NamedTuple):
    game: str
    source: str
    back: bool


class Held(NamedTuple):
    """The hold on a catalog, with its last successful install, the previous version (`earlier`),
    and the version that a person went back from (`refused`). `back`: a person requested the
    previous version.
    """

    game: str
    source: str
    holder: str
    was_asked: bool
    back: bool
    installed_at: datetime | None
    digest: str | None
    rows: int
    skipped: int
    bytes: int
    content: str | None
    kept: str | None
    earlier: Version | None
    refused: Version | None

    @property
    def present(self) -> Version | None:
        """Return the version in use, even if its object is not stored, or None."""
        if self.installed_at is None:
            return None
        told = self.content or "", self.digest or "", self.rows, self.skipped, self.bytes
        return Version(self.kept or "", *told, self.installed_at)

    @property
    def key(self) -> dict[str, object]:
        return {"game": self.game, "source": self.source, "holder": self.holder}


def source_for(game: str, name: str | None = None) -> Source:
    """Return the game's source with this name, or the first one. Raises CatalogError."""
    found = [source for source in of_game(game) if source.downloads]
    if name is not None:
        found = [source for source in found if source.name == name]
        if name not in BY_NAME:
            known = ", ".join(source.name for source in SOURCES if source.downloads)
            raise CatalogError(f"{name!r} is no source; there are {known}")
    if not found:
        games = sorted({game for source in SOURCES if source.downloads for game in source.games})
        whose = f"{name} has no catalog of {game!r}" if name else f"no source has {game!r}"
        raise CatalogError(f"{whose}; catalogs can be installed of {', '.join(games)}")
    return found[0]


async def sources_for(session: AsyncSession, game: str, name: str | None = None) -> list[Source]:
    """Return the source with this name. Without a name, return the installed sources of the game,
    or the first source if none is installed. Raises CatalogError.
    """
    first = source_for(game, name)
    found = await session.scalars(text(_SOURCES), {"game": game})
    kept = [BY_NAME[one] for one in found if one in BY_NAME]
    return kept if kept and name is None else [first]


async def claim(database: Database, game: str, source: str, holder: str) -> Held | None:
    """Take the hold and return it; None if another process has it."""
    values = {"game": game, "source": source, "holder": holder, "seconds": HOLD_SECONDS}
    async with database.shared() as session:
        row = (await session.execute(text(_CLAIM), values)).one_or_none()
    if row is None:
        return None
    asked_at, *own = row[:-2]
    known = [*own, *map(_version, row[-2:])]
    return Held(game, source, holder, asked_at is not None, *known)


async def renew(database: Database, held: Held, step: str, done: int, total: int) -> bool:
    """Renew the hold and store the progress. Return False if another process has taken the hold."""
    values = held.key | {"seconds": HOLD_SECONDS, "step": step, "done": done, "total": total}
    async with database.shared() as session:
        return await run(session, _RENEW, values) > 0


async def note_size(database: Database, held: Held, size: int) -> None:
    """Store the size of the download, which pages show before the next install, even if this
    install fails.
    """
    async with database.shared() as session:
        await run(session, _SIZE, held.key | {"bytes": size})


async def kept_names(database: Database, held: Held) -> set[str] | None:
    """Return the keys of the stored versions; None if another process has taken the hold."""
    async with database.shared() as session:
        row = (await session.execute(text(_KEPT), held.key)).one_or_none()
    return None if row is None else {name for name in row if name}


async def succeed(
    database: Database, held: Held, loaded: Version | None, checked_at: datetime
) -> bool:
    """Store a success with the loaded version, or with None if the source has nothing new. Return
    False if another process has taken the hold.
    """
    values = held.key | {"now": checked_at}
    if loaded is not None:
        before = held.present if held.kept else None
        earlier = held.earlier if loaded.content == held.content else before
        values |= _values(loaded, earlier, None)
    statement = _WELL.format(loaded=f", {_VERSION}" if loaded is not None else "")
    async with database.shared() as session:
        return await run(session, statement, values) > 0


async def went_back(
    database: Database, held: Held, to: Version, now: datetime, next_at: datetime | None
) -> bool:
    """Store the return to the previous version; no renewal checks the source before `next_at`.
    Return False if another process has taken the hold.
    """
    left = held.present
    refused = msgspec.structs.replace(left, since=now) if left else None
    values = held.key | {"next_at": next_at} | _values(to, None, refused)
    async with database.shared() as session:
        return await run(session, _WENT_BACK, values) > 0


def _values(
    version: Version, earlier: Version | None, refused: Version | None
) -> dict[str, object]:
    told = msgspec.structs.asdict(version)
    del told["since"]
    return told | {
        "kept": version.kept or None,
        "earlier": _json(earlier),
        "refused": _json(refused),
    }


async def forget_earlier(database: Database, held: Held) -> None:
    """Stop offering the previous version, because it cannot be read."""
    async with database.shared() as session:
        await run(session, _FORGET, held.key)


async def fail(
    database: Database, held: Held, failure: str, *, away: bool, for_good: bool = False
) -> None:
    """Store a failure and release the hold. The pause before the next try grows if the source is
    unavailable (`away`). An install that failed `for_good` is not tried again.
    """
    now = clock.now()
    values = held.key | {
        "now": now,
        "failure": failure[:1000],
        "next_at": None if for_good else now + _CHANGED,
        "for_good": for_good,
    }
    async with database.shared() as session:
        failures = await session.scalar(text(_FAILED), values)
        if away and failures:
            pause = PAUSES[min(failures, len(PAUSES)) - 1]
            later = (
                "UPDATE catalog_install SET next_at = :at WHERE game = :game AND source = :source"
            )
            await run(session, later, held.key | {"at": now + pause})


async def let_go(database: Database, held: Held) -> None:
    """Release the hold without a result."""
    async with database.shared() as session:
        await run(session, _FREE, held.key)


async def ask(session: AsyncSession, source: Source, game: str, now: datetime) -> bool:
    """Request that a worker installs or renews a catalog. Return False if that is already requested
    or running.
    """
    values = {"game": game, "source": source.name, "now": now}
    return await run(session, _ASK, values) > 0


async def ask_back(session: AsyncSession, source: Source, game: str, now: datetime) -> bool:
    """Request that a worker loads the previous version again. Return False without a previous
    version, if a process has the hold, or if that is already requested.
    """
    values = {"game": game, "source": source.name, "now": now}
    return await run(session, _ASK_BACK, values) > 0


async def source_to_go_back(session: AsyncSession, game: str, name: str | None) -> Source:
    """Return the source whose previous version is stored. Raises CatalogError if there is none, or
    if there are several and `name` is None.
    """
    first = source_for(game, name)
    found = await session.scalars(text(_WITH_EARLIER), {"game": game})
    known = [one for one in found if one in BY_NAME and name in (None, one)]
    if not known:
        whose = f" from {first.label}" if name else ""
        raise CatalogError(
            f"no earlier version of {game}{whose} is kept; one is from its second version on"
        )
    if len(known) > 1:
        raise CatalogError(f"{game} has earlier versions from {', '.join(known)}: name the source")
    return BY_NAME[known[0]]


async def add_file(session: AsyncSession, place: str, size: int, now: datetime) -> None:
    """Request that a worker loads a file that a person added, and delete the states of files that
    were loaded or failed before `FILES_KEPT`.
    """
    values = {"game": ANY_GAME, "source": place, "bytes": size, "now": now}
    await run(session, _DROP, values | {"before": now - FILES_KEPT})
    await run(session, _ADD, values)


async def due(session: AsyncSession, now: datetime, before: datetime | None) -> list[Due]:
    """Return the catalogs that a worker must install, renew or return to their previous version
    now, and the added files to load. Installed catalogs that were last checked before `before` are
    due for a renewal.
    """
    rows = await session.execute(text(_DUE), {"now": now, "before": before})
    return [Due(*row) for row in rows if row.source in BY_NAME or row.game == ANY_GAME]


async def installs(source: AsyncSession | Reading) -> list[Install]:
    """Return the state of every catalog that was ever installed or requested."""
    rows = await rows_of(source)(_ALL, {})
    return [Install(*row[:-2], *map(_version, row[-2:])) for row in rows]


async def counts(source: AsyncSession | Reading) -> dict[str, int]:
    """Return the number of printings in the catalogs, by game."""
    return {game: int(count) for game, count in await rows_of(source)(_COUNTS, {})}

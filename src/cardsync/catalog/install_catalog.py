"""Installs a game's catalog from its source: downloads, checks and loads the files, unless the
source has nothing new.

The files are loaded only if they are complete, have their source's format, and have about as many
cards as the last version. Otherwise the existing catalog is unchanged, and its state has the
reason.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl
import structlog

from cardsync.catalog import install_state, source_files
from cardsync.catalog.install_state import Held, Version
from cardsync.catalog.kept_versions import Keeping, StillRefused
from cardsync.catalog.load_catalog import Report, load
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.catalog.set_names import EDITION
from cardsync.catalog.sources.declared import Source
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store

log = structlog.get_logger(__name__)

# A source with more broken records than this has changed its format.
BROKEN_MOST: Final = 0.1
# A catalog with a smaller share of the last version's printings than this is not loaded.
KEPT_LEAST: Final = 0.8
_LOOK_SECONDS: Final = 2.0


# The exceptions that readers raise for malformed files.
UNREADABLE: Final = (LookupError, TypeError, ValueError, RecursionError)


class NotTaken(CatalogError):
    """The files can be read, but the catalog must not be loaded."""


class ForGood(CatalogError):
    """A failure that would repeat, so the install is not tried again."""


class InstalledElsewhere(CatalogError):
    """Another process is installing this catalog."""


class HoldLost(Exception):
    """Another process has taken over the install of this catalog."""


@dataclass
class Progress:
    """The current step and its progress."""

    step: str = "download"
    done: int = 0
    total: int = 0

    def tell(self, step: str, done: int, total: int) -> None:
        self.step, self.done, self.total = step, done, total


async def install(
    database: Database,
    settings: Settings,
    source: Source,
    game: str,
    say: Callable[[str], None],
    *,
    fewer: bool = False,
    renewal: bool = False,
) -> str:
    """Install or renew one catalog and return a sentence about the result. With `fewer`, the
    catalog may have far fewer cards than its last version. An automatic renewal does not install a
    version that a person went back from. Raises CatalogError.
    """
    label = LABEL_BY_NAME[game]

    async def work(held: Held, progress: Progress) -> str:
        if renewal and held.back:
            # The return was requested after this renewal began; the worker's next turn does it.
            await install_state.let_go(database, held)
            return f"{label} is to go back to its last version"
        refuses = renewal and not held.was_asked
        keeping = Keeping(database, open_store(settings), held, refuses)
        return await _install(database, settings, source, keeping, say, progress, fewer=fewer)

    return await held_alone(database, game, source.name, f"{label} from {source.label}", work)


async def held_alone(
    database: Database,
    game: str,
    source: str,
    what: str,
    begin: Callable[[Held, Progress], Coroutine[object, object, str]],
    *,
    once: bool = False,
) -> str:
    """Do the work under a hold that excludes other processes, and record its end. With `once`, a
    failed install is not tried again. Raises CatalogError and its subclass InstalledElsewhere.
    """
    holder = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"
    held = await install_state.claim(database, game, source, holder)
    if held is None:
        raise InstalledElsewhere(f"{what} is being installed by another process")
    progress = Progress()
    try:
        return await _holding(database, held, progress, begin(held, progress))
    except HoldLost:
        raise InstalledElsewhere(f"another process installs {what} by now") from None
    except CatalogError as e:
        away = isinstance(e, source_files.SourceAway)
        for_good = once or isinstance(e, ForGood)
        await install_state.fail(database, held, str(e), away=away, for_good=for_good)
        log.warning("catalog_not_installed", game=game, away=away)
        raise
    except Exception as e:
        # If the database is unavailable, the failure cannot be recorded either: the hold then
        # expires.
        with suppress(Exception):
            why = f"it could not be stored ({type(e).__name__})"
            await install_state.fail(database, held, why, away=True)
        raise
    except BaseException:
        # The process is ending.
        await install_state.let_go(database, held)
        raise


async def _holding(
    database: Database, held: Held, progress: Progress, work: Coroutine[object, object, str]
) -> str:
    """Do the work while renewing the hold and recording the progress. Raises HoldLost."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=_LOOK_SECONDS))[0]:
            told = progress.step, progress.done, progress.total
            try:
                holds = await install_state.renew(database, held, *told)
            except Exception as e:
                log.warning("catalog_hold_not_renewed", kind=type(e).__name__)
                continue
            if not holds:
                raise HoldLost
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def _install(
    database: Database,
    settings: Settings,
    source: Source,
    keeping: Keeping,
    say: Callable[[str], None],
    progress: Progress,
    *,
    fewer: bool,
) -> str:
    held = keeping.held
    label = LABEL_BY_NAME[held.game]
    say(f"{label}: downloading from {source.label} ({source.home})")
    fetched = await source_files.download(settings, source, held.game, _said(say, progress))
    seen_at = clock.now()
    await install_state.note_size(database, held, fetched.bytes)
    # `EDITION` changes with the tables of set names. As a part of the digest, it causes the same
    # files to be loaded again.
    digest = f"{fetched.digest} {EDITION}"
    if held.installed_at and digest == held.digest:
        await install_state.succeed(database, held, None, seen_at)
        return f"{label} is as {source.label} has it: {held.rows:,} printings"
    say(f"{label}: {fetched.bytes / 1e6:,.1f} MB in {_files(fetched.files)}; reading")
    progress.tell("read", 0, held.rows)

    def check(report: Report) -> None:
        _must_fit(report, source, held.game, 0 if fewer else held.rows)

    try:
        report = await load(
            database,
            fetched.path,
            source.name,
            held.game,
            say,
            source.name,
            name=f"{source.label}, {label}",
            check=check,
            take=keeping.take,
            tell=progress.tell,
        )
    except NotTaken:
        raise
    except StillRefused:
        await install_state.succeed(database, held, None, seen_at)
        return f"{label} stays as a person went back to it: {source.label} has nothing newer"
    except (CatalogError, pl.exceptions.PolarsError, *UNREADABLE) as e:
        # The download may be faulty, not the source, so the files are deleted.
        source_files.forget(settings, source, held.game)
        reason = " ".join(str(e).split())[:300]
        raise CatalogError(f"{source.label} has changed its form: {reason}") from e
    version = loaded(report, digest, fetched.bytes, seen_at, keeping)
    if await install_state.succeed(database, held, version, seen_at):
        await keeping.drop_old()
    log.info("catalog_installed", game=held.game, source=source.name, rows=report.products)
    return report.sentence()


def loaded(
    report: Report, digest: str, size: int, at: datetime, keeping: Keeping | None = None
) -> Version:
    """Return the loaded catalog as a version."""
    kept, content = (keeping.kept or "", keeping.content) if keeping else ("", "")
    return Version(kept, content, digest, report.products, len(report.broken), size, at)


def _files(count: int) -> str:
    return f"{count:,} file{'s' if count > 1 else ''}"


def must_be_read(report: Report, why: str) -> None:
    """Raise NotTaken if too few records could be read."""
    broken, good = len(report.broken), report.products
    if not good or broken > BROKEN_MOST * (good + broken):
        first = f" ({report.broken[0].where}: {report.broken[0].reason})" if broken else ""
        raise NotTaken(f"{why}: {broken:,} of {good + broken:,} records cannot be read{first}")


def _must_fit(report: Report, source: Source, game: str, before: int) -> None:
    """Raise NotTaken if the catalog must not be loaded."""
    must_be_read(report, f"{source.label} has changed its form")
    good = report.products
    if good < KEPT_LEAST * before:
        raise NotTaken(
            f"{source.label} has {good:,} printings now and had {before:,}: the catalog stays as it"
            f" was; `cardsync catalog install {game} --fewer` takes the smaller one"
        )


def _said(say: Callable[[str], None], progress: Progress) -> source_files.Tell:
    """Return a function that records the progress, and prints a line for each tenth of it."""
    last = 0

    def tell(counted: str, done: int, total: int) -> None:
        nonlocal last
        progress.tell(f"download {counted}", done, total)
        tenth = 10 * done // total if total else 0
        if tenth > last:
            last = tenth
            say(
                f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
                if counted == "bytes"
                else f"{done:,} of {total:,} files"
            )

    return tell

"""Loads a catalog's previous version again.

The previous version is checked and loaded like a downloaded catalog. Afterwards, an automatic
renewal skips the version that the person replaced, and installs only a newer version. An install
that a person requests loads the source's present version.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import polars as pl
import structlog

from cardsync.catalog import install_state, kept_versions
from cardsync.catalog.add_catalog_file import copied
from cardsync.catalog.install_catalog import UNREADABLE, ForGood, Progress, held_alone, must_be_read
from cardsync.catalog.install_state import Held
from cardsync.catalog.load_catalog import load
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.catalog.sources.declared import Source
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.catalog.update_times import updates_of
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store, open_store

log = structlog.get_logger(__name__)


async def go_back(
    database: Database,
    settings: Settings,
    source: Source,
    game: str,
    say: Callable[[str], None],
) -> str:
    """Load the previous version of a catalog if that is still requested, and return a sentence
    about the result. Raises CatalogError.
    """
    label = LABEL_BY_NAME[game]
    store = open_store(settings)

    async def work(held: Held, progress: Progress) -> str:
        if not held.back:
            await install_state.let_go(database, held)
            return f"{label}: somebody has asked for the newest version since, or has gone back"
        return await _go_back(database, settings, store, source, held, say, progress)

    return await held_alone(database, game, source.name, f"{label} from {source.label}", work)


async def _go_back(
    database: Database,
    settings: Settings,
    store: Store,
    source: Source,
    held: Held,
    say: Callable[[str], None],
    progress: Progress,
) -> str:
    label, earlier = LABEL_BY_NAME[held.game], held.earlier
    if earlier is None:
        raise ForGood(f"no earlier version of {label} from {source.label} is kept")
    name = f"the version of {earlier.installed_at:%Y-%m-%d}"
    try:
        async with copied(store, earlier.kept, settings, "version.parquet", progress) as file:
            say(f"{label}: {name}, {earlier.rows:,} printings; reading")
            progress.tell("read", 0, earlier.rows)
            report = await load(
                database,
                file.path,
                "parquet",
                held.game,
                say,
                source.name,
                name=f"{source.label}, {label}",
                known=source,
                whole=True,
                check=lambda report: must_be_read(report, name),
                tell=progress.tell,
            )
    except (CatalogError, ObjectMissing, pl.exceptions.PolarsError, *UNREADABLE) as e:
        await install_state.forget_earlier(database, held)
        gone = isinstance(e, ObjectMissing)
        reason = "it is no longer kept" if gone else " ".join(str(e).split())[:300]
        raise ForGood(f"going back to {name} failed: {reason}") from e
    async with database.shared() as session:
        days = (await updates_of(session, settings)).days
    now = clock.now()
    next_at = now + timedelta(days=days) if days else None
    if await install_state.went_back(database, held, earlier, now, next_at):
        await kept_versions.drop(store, held, earlier.kept)
    log.info("catalog_went_back", game=held.game, source=source.name, rows=report.products)
    return f"{label} is as it was loaded on {earlier.installed_at:%Y-%m-%d}: {report.sentence()}"

"""The worker's task for catalogs: installs requested catalogs, returns catalogs to their previous
versions on request, loads added files, and renews old catalogs.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

import procrastinate
import structlog
from procrastinate.exceptions import AlreadyEnqueued

from cardsync.catalog import install_state
from cardsync.catalog.add_catalog_file import add_catalog_file
from cardsync.catalog.go_back import go_back
from cardsync.catalog.install_catalog import install
from cardsync.catalog.sources.declared import BY_NAME
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.catalog.update_times import updates_of
from cardsync.platform import clock
from cardsync.platform.work.jobs import Work, jobs, work_of

log = structlog.get_logger(__name__)

# The name of the job's queueing lock: no second job is queued while one is waiting, because one job
# renews all due catalogs.
_TURN: Final = "catalogs"


@jobs.task(name="catalogs.renew", queue="catalogs", pass_context=True)
async def renew_catalogs(context: procrastinate.JobContext) -> None:
    await renew_due(work_of(context))


async def nudge(work: Work) -> bool:
    """Queue the task if a catalog is due; return whether a catalog is due."""
    if not await _due(work):
        return False
    with suppress(AlreadyEnqueued):
        await renew_catalogs.configure(queueing_lock=_TURN).defer_async()
    return True


async def renew_due(work: Work) -> int:
    """Install and renew the due catalogs, one after the other; return their number. A failed
    renewal records its reason in its state and is due again later.
    """
    found = await _due(work)
    for game, source, back in found:
        with suppress(CatalogError):
            if game == install_state.ANY_GAME:
                await add_catalog_file(work, source)
                continue
            how = go_back if back else partial(install, renewal=True)
            await how(work.database, work.settings, BY_NAME[source], game, _quiet)
    return len(found)


async def _due(work: Work) -> list[install_state.Due]:
    now = clock.now()
    async with work.database.shared() as session:
        updates = await updates_of(session, work.settings)
        return await install_state.due(session, now, updates.due_before(now))


def _quiet(line: str) -> None:
    log.debug("catalog_progress", line=line)

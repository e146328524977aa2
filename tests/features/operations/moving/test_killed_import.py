"""An import that is killed, wherever it is, leaves nothing; the next one brings the shop in."""

from __future__ import annotations

import re
from datetime import timedelta

import psycopg
import pytest

from cardsync.operations.processes.worker import sweep
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.work.jobs import WorkDue
from cardsync.shop.accounts import left_objects
from cardsync.tables import seller_tables
from inline_jobs import InlineJobs
from waiting import eventually

WAITS = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
# The objects are written before any row.
MOMENTS = ["order_item", "seller", "account", "card", "work_due", "pull_session_item", "activity"]


def rows_of(owner, since: int) -> dict[str, int]:
    """The rows of sellers whose ids came after that one, but the mark of what is left."""
    counts = {}
    for table in seller_tables():
        owned = "seller_id" if "seller_id" in table.columns else "id"
        but = f" AND stream <> '{left_objects.STREAM}'" if table.name == "work_due" else ""
        query = f"SELECT count(*) FROM {table.name} WHERE {owned} > {since}{but}"
        [counts[table.name]] = owner.execute(query).fetchone()
    return {name: count for name, count in counts.items() if count}


async def objects_of(service, since: int) -> list[str]:
    owners = [(key, re.match("[a-z]+/u([0-9]+)/", key)) for key in await service.objects()]
    return [key for key, owner in owners if owner and int(owner[1]) > since]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.first(1)
async def test_a_killed_import_leaves_nothing(
    shop, service, elsewhere, cardsync, a_process, tmp_path, moment
):
    """A process of its own is killed: the only way to end one between two statements."""
    path = tmp_path / "shop.zip"
    assert (await cardsync(service, "export", shop.id, path)).exit_code == 0
    url = libpq_url(elsewhere.settings.migration_database_url, role=None)
    with psycopg.connect(url, autocommit=True) as watching, psycopg.connect(url) as holding:
        [since] = watching.execute("SELECT coalesce(max(id), 0) FROM seller").fetchone()
        # The mark of what is left is written before.
        importing = None
        if moment != "work_due":
            holding.execute(f"LOCK TABLE {moment} IN SHARE MODE")
            importing = a_process(elsewhere, "import", path)
            await eventually(lambda: watching.execute(WAITS).fetchone() == (1,))
        else:
            importing = a_process(elsewhere, "import", path)
            await eventually(lambda: objects_of(elsewhere, since))
        importing.kill()
        importing.communicate()
        holding.rollback()
        await eventually(lambda: watching.execute(WAITS).fetchone() == (0,))
        assert rows_of(watching, since) == {}
        left = await objects_of(elsewhere, since)
        assert left
        async with elsewhere.database.shared() as session:
            due = clock.now() - timedelta(hours=1)
            await session.execute(WorkDue.__table__.update().values(due_at=due))
        async with InlineJobs.open(elsewhere.work) as jobs:
            await sweep(elsewhere.work)
            await jobs.run()
        assert await objects_of(elsewhere, since) == []
        arrived = await cardsync(elsewhere, "import", path)
        assert arrived.exit_code == 0, arrived.output
        came = len(await objects_of(elsewhere, since))
        # The one that is killed at its first object left fewer.
        assert came == len(left) or (moment == "work_due" and came > len(left))

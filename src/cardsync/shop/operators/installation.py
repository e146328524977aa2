"""Reads the state of the installation for its operators: product lines, queues with their age, slow
SQL statements, releases of the agent, and imports of the catalog.

Rows of sellers, and the values in SQL statements, are not shown.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import LINES
from cardsync.platform.backups.backup_reports import read_state
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.settings import Settings
from cardsync.shop.limits import OPERATOR_ROWS
from cardsync.shop.operators.schemas import (
    CatalogImportShown,
    InstallationShown,
    JobsShown,
    LineShown,
    QueueShown,
    ReleaseShown,
    StatementShown,
)

_PRODUCTS: Final = "SELECT game, sum(printings) FROM catalog_name GROUP BY game"
_QUEUES: Final = """
    SELECT stream, count(*) FILTER (WHERE due_at <= :now) AS waiting,
           min(due_at) FILTER (WHERE due_at <= :now) AS oldest,
           count(*) FILTER (WHERE rests_until > :now) AS resting,
           count(*) FILTER (WHERE put_back_times > 0) AS put_back
      FROM work_due GROUP BY stream ORDER BY 2 DESC, stream
"""
_JOBS: Final = """
    SELECT count(*) FILTER (WHERE status = 'todo') AS todo,
           count(*) FILTER (WHERE status = 'doing') AS doing,
           count(*) FILTER (WHERE status = 'failed') AS failed
      FROM procrastinate_jobs
"""
_RUNNING: Final = """
    SELECT extract(epoch FROM clock_timestamp() - query_start) AS seconds, state, query
      FROM pg_stat_activity
     WHERE usename = current_user AND state <> 'idle' AND pid <> pg_backend_pid()
       AND query_start < clock_timestamp() - interval '1 second'
     ORDER BY query_start LIMIT :most
"""
_EXTENSION: Final = "SELECT to_regclass('pg_stat_statements')"
_KEPT: Final = """
    SELECT mean_exec_time / 1000, calls, query FROM pg_stat_statements
     WHERE userid = (SELECT oid FROM pg_roles WHERE rolname = current_user) AND calls > 4
     ORDER BY mean_exec_time DESC LIMIT :most
"""
_RELEASES: Final = """
    SELECT r.product, r.version, r.platform, r.channel, r.percentage, r.published_at, r.expires_at,
           EXISTS (SELECT FROM release_kill k
                    WHERE k.product = r.product AND k.version = r.version)
      FROM release r ORDER BY r.published_at DESC, r.id DESC LIMIT :most
"""
_IMPORTS: Final = """
    SELECT source, rows, added, changed, vanished, skipped, finished_at FROM catalog_import
     ORDER BY id DESC LIMIT :most
"""
# A value in SQL: a string in quotes or dollar quotes, or a number that is not part of a name.
_VALUE: Final = re.compile(
    r"[eE]?'(?:[^'\\]|''|\\.)*'?|\$(\w*)\$.*?(?:\$\1\$|$)|(?<![\w:$])-?\d+(?:\.\d+)?", re.DOTALL
)
_CHARACTERS: Final = 400


def without_values(statement: str) -> str:
    """Return a SQL statement in one line, with a question mark in place of each value. Pure."""
    bare = " ".join(_VALUE.sub("?", statement).split())
    return bare if len(bare) <= _CHARACTERS else bare[:_CHARACTERS] + "…"


async def read_installation(
    source: Source, caller: Caller, now: datetime, settings: Settings
) -> InstallationShown:
    """Return the state of the installation. Raises OperatorRequired."""
    caller.must_be_operator()
    statements = [_PRODUCTS, _QUEUES, _JOBS, _RELEASES, _IMPORTS]
    (products, queues, [jobs], releases, imports), slow, backups = await each_of(
        source,
        in_one_message(source, statements, {"now": now, "most": OPERATOR_ROWS}),
        _statements(source),
        read_state(source, now, daily=bool(settings.daily_backups)),
    )
    counted = dict(products)
    return InstallationShown(
        [LineShown(*line, int(counted.get(line.name, 0))) for line in LINES],
        settings.allow_unknown_lines,
        [
            QueueShown(stream, waiting, _waited(oldest, now), resting, put_back)
            for stream, waiting, oldest, resting, put_back in queues
        ],
        JobsShown(*jobs),
        slow,
        [ReleaseShown(*row) for row in releases],
        [CatalogImportShown(*row) for row in imports],
        backups,
    )


def _waited(oldest: datetime | None, now: datetime) -> int:
    return max(0, round((now - oldest).total_seconds())) if oldest else 0


async def _statements(source: Source) -> list[StatementShown]:
    most = {"most": OPERATOR_ROWS}
    running, [[extension]] = await in_one_message(source, [_RUNNING, _EXTENSION], most)
    found = [(seconds, 0, state, query) for seconds, state, query in running]
    if extension is not None:
        kept = await rows_of(source)(_KEPT, most)
        found += [(seconds, calls, "finished", query) for seconds, calls, query in kept]
    return [
        StatementShown(round(float(seconds), 3), calls, state, without_values(query))
        for seconds, calls, state, query in found
    ]

"""Metrics of the whole installation, read from the database and the disk on each request of
/metrics: waiting work, backups, agents, free space, and processes that died.

The metrics are read from tables that belong to no seller, as the role that row-level security
binds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import psycopg
import structlog
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from psycopg.rows import TupleRow

from cardsync import __version__
from cardsync.platform import clock
from cardsync.platform.backups.backup_reports import NEWEST
from cardsync.platform.database.urls import connect
from cardsync.platform.settings import Settings

log = structlog.get_logger(__name__)

_SECONDS: Final = 3
# An agent calls every 30 seconds. An agent that has not called for an hour is silent; an agent that
# has not called for a week is not counted.
_AGENTS: Final = """
    SELECT count(*) FILTER (WHERE last_seen_at > %(now)s - interval '2 minutes'),
           count(*) FILTER (WHERE last_seen_at <= %(now)s - interval '1 hour')
      FROM agent_seen WHERE last_seen_at > %(now)s - interval '7 days'
"""
_DUE: Final = """
    SELECT stream, count(*), extract(epoch FROM %(now)s - min(due_at))::float8 FROM work_due
     WHERE due_at <= %(now)s AND (rests_until IS NULL OR rests_until <= %(now)s)
     GROUP BY stream
"""
_RESTING: Final = """
    SELECT stream, count(*) FROM work_due WHERE rests_until > %(now)s GROUP BY stream
"""
_JOBS: Final = "SELECT queue_name, status::text, count(*) FROM procrastinate_jobs GROUP BY 1, 2"
_SIZE: Final = "SELECT pg_database_size(current_database()), (SELECT count(*) FROM seller)"


DEATHS: Final = ("cardsync_process_deaths", "Processes that ended by themselves", ("process",))
# Each gauge's meaning and labels.
GAUGES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cardsync_info": ("The version that runs", ("version",)),
    "cardsync_disk_free_bytes": ("Free bytes of the disk of a folder", ("place",)),
    "cardsync_database_up": ("Whether the database answers", ()),
    "cardsync_database_bytes": ("Size of the database", ()),
    "cardsync_sellers": ("Shops of the installation", ()),
    "cardsync_work_waiting": ("Shops whose work of a stream waits", ("stream",)),
    "cardsync_work_oldest_seconds": ("How long the oldest of it waits", ("stream",)),
    "cardsync_work_resting": ("Shops whose work rests after a failure", ("stream",)),
    "cardsync_jobs": ("Jobs in the queue", ("queue", "state")),
    "cardsync_backup_age_seconds": ("Time since the last good one", ("kind",)),
    "cardsync_backup_failed": ("Whether the newest one failed", ("kind",)),
    "cardsync_backup_bytes": ("Size of the last good one", ("kind",)),
    "cardsync_agents": ("Agents that were seen in the last week", ("state",)),
}
_Rows = Iterable[tuple[tuple[str, ...], float]]


def _gauge(name: str, rows: _Rows) -> Metric:
    meaning, labels = GAUGES[name]
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in rows:
        family.add_metric(values, float(number))
    return family


class InstallationMetrics(Collector):
    """`deaths` counts how often each of the supervisor's processes died."""

    def __init__(self, settings: Settings, deaths: Callable[[], dict[str, int]]) -> None:
        self._settings, self._deaths = settings, deaths

    def describe(self) -> Iterable[Metric]:
        """Describe no metrics, so that the database is not queried before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield _gauge("cardsync_info", [((__version__,), 1)])
        name, meaning, labels = DEATHS
        died = CounterMetricFamily(name, meaning, labels=labels)
        for process, times in self._deaths().items():
            died.add_metric((process,), times)
        yield died
        yield _gauge("cardsync_disk_free_bytes", self._room())
        try:
            found = list(self._of_database())
        except psycopg.Error as e:
            log.warning("metrics_without_database", kind=type(e).__name__)
            found = []
        yield _gauge("cardsync_database_up", [((), bool(found))])
        yield from found

    def _room(self) -> _Rows:
        places = {"data": self._settings.data_dir, "backups": self._settings.backups_folder}
        for place, folder in places.items():
            here = next((one for one in (folder, *folder.parents) if one.exists()), None)
            if here is not None:
                yield (place,), shutil.disk_usage(here).free

    def _of_database(self) -> Iterator[Metric]:
        assert self._settings.database_url is not None
        now = clock.now()
        with connect(self._settings.database_url, seconds=_SECONDS) as connection:
            connection.execute(f"SET statement_timeout = '{_SECONDS}s'".encode())

            def rows(statement: str) -> list[TupleRow]:
                return connection.execute(statement.encode(), {"now": now}).fetchall()

            due, resting = rows(_DUE), rows(_RESTING)
            jobs, reports = rows(_JOBS), rows(NEWEST)
            [(calling, silent)] = rows(_AGENTS)
            [(size, sellers)] = rows(_SIZE)
        yield _gauge("cardsync_work_waiting", [((stream,), count) for stream, count, _ in due])
        oldest = [((stream,), max(0.0, age)) for stream, _, age in due]
        yield _gauge("cardsync_work_oldest_seconds", oldest)
        yield _gauge("cardsync_work_resting", [((stream,), count) for stream, count in resting])
        yield _gauge("cardsync_jobs", [((queue, state), count) for queue, state, count in jobs])
        yield from _backups(reports, now)
        yield _gauge("cardsync_agents", [(("calling",), calling), (("silent",), silent)])
        yield _gauge("cardsync_database_bytes", [((), size)])
        yield _gauge("cardsync_sellers", [((), sellers)])


def _backups(reports: list[Any], now: datetime) -> Iterator[Metric]:
    """Return the figures of backups; `kind` is backup or rehearsal, and a kind without a report has
    no line.
    """
    good = [(kind, (now - at).total_seconds(), size) for kind, at, _, _, size in reports if at]
    yield _gauge("cardsync_backup_age_seconds", [((kind,), age) for kind, age, _ in good])
    yield _gauge("cardsync_backup_bytes", [((kind,), size or 0) for kind, _, size in good])
    failed = [((kind,), why is not None) for kind, _, _, why, _ in reports]
    yield _gauge("cardsync_backup_failed", failed)

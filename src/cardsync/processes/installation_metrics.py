"""Metrics of the installation as a whole, read from the database and the disk whenever somebody
asks for /metrics: what waits, backups, agents, room, and processes that died.

They are read from tables that belong to no seller, as the role that is bound by row-level security.
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

from cardsync import __version__, clock
from cardsync.database.urls import libpq_url
from cardsync.operations.backup_reports import NEWEST
from cardsync.settings import Settings

log = structlog.get_logger(__name__)

_SECONDS: Final = 3
# An agent calls every 30 seconds. One that was not seen for an hour is silent; for a week, gone.
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


def _gauge(name: str, words: str, values: Iterable[tuple[dict[str, str], float]]) -> Metric:
    names: list[str] = []
    values = list(values)
    if values:
        names = list(values[0][0])
    family = GaugeMetricFamily(name, words, labels=names)
    for labels, value in values:
        family.add_metric([labels[one] for one in names], value)
    return family


class InstallationMetrics(Collector):
    """`deaths` counts how often each of the supervisor's processes died."""

    def __init__(self, settings: Settings, deaths: Callable[[], dict[str, int]]) -> None:
        self._settings, self._deaths = settings, deaths

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked of the database before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield _gauge("cardsync_info", "The version that runs", [({"version": __version__}, 1)])
        died = CounterMetricFamily(
            "cardsync_process_deaths", "Processes that ended by themselves", labels=["process"]
        )
        for process, times in self._deaths().items():
            died.add_metric([process], times)
        yield died
        yield from self._room()
        try:
            found = list(self._of_database())
        except psycopg.Error as e:
            log.warning("metrics_without_database", kind=type(e).__name__)
            found = []
        yield _gauge("cardsync_database_up", "Whether the database answers", [({}, bool(found))])
        yield from found

    def _room(self) -> Iterator[Metric]:
        places = {"data": self._settings.data_dir, "backups": self._settings.backups_folder}
        free = []
        for place, folder in places.items():
            here = next((one for one in (folder, *folder.parents) if one.exists()), None)
            if here is not None:
                free.append(({"place": place}, shutil.disk_usage(here).free))
        yield _gauge("cardsync_disk_free_bytes", "Free bytes of the disk of a folder", free)

    def _of_database(self) -> Iterator[Metric]:
        assert self._settings.database_url is not None
        now = clock.now()
        with psycopg.connect(
            libpq_url(self._settings.database_url), connect_timeout=_SECONDS
        ) as connection:
            connection.execute(f"SET statement_timeout = '{_SECONDS}s'".encode())

            def rows(statement: str) -> list[tuple[Any, ...]]:
                return connection.execute(statement.encode(), {"now": now}).fetchall()

            yield from _waiting(rows(_DUE), rows(_RESTING), rows(_JOBS))
            yield from _backups(rows(NEWEST), now)
            [(calling, silent)] = rows(_AGENTS)
            agents = [({"state": "calling"}, calling), ({"state": "silent"}, silent)]
            yield _gauge("cardsync_agents", "Agents that were seen in the last week", agents)
            [(size, sellers)] = rows(_SIZE)
            yield _gauge("cardsync_database_bytes", "Size of the database", [({}, size)])
            yield _gauge("cardsync_sellers", "Shops of the installation", [({}, sellers)])


def _waiting(due: list[Any], resting: list[Any], jobs: list[Any]) -> Iterator[Metric]:
    waits = [({"stream": stream}, number) for stream, number, _ in due]
    oldest = [({"stream": stream}, max(0.0, age)) for stream, _, age in due]
    rests = [({"stream": stream}, number) for stream, number in resting]
    yield _gauge("cardsync_work_waiting", "Shops whose work of a stream waits", waits)
    yield _gauge("cardsync_work_oldest_seconds", "How long the oldest of it waits", oldest)
    yield _gauge("cardsync_work_resting", "Shops whose work rests after a failure", rests)
    states = [({"queue": queue, "state": state}, number) for queue, state, number in jobs]
    yield _gauge("cardsync_jobs", "Jobs in the queue", states)


def _backups(reports: list[Any], now: datetime) -> Iterator[Metric]:
    """`kind` is backup or rehearsal; of none yet there is no line."""
    ages, failed, sizes = [], [], []
    for kind, good, _, why, size in reports:
        labels = {"kind": kind}
        failed.append((labels, float(why is not None)))
        if good is not None:
            ages.append((labels, (now - good).total_seconds()))
            sizes.append((labels, float(size or 0)))
    yield _gauge("cardsync_backup_age_seconds", "Time since the last good one", ages)
    yield _gauge("cardsync_backup_failed", "Whether the newest one failed", failed)
    yield _gauge("cardsync_backup_bytes", "Size of the last good one", sizes)

"""Records the outcomes of backups and restore tests, and reads their state for operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.backups import backup_schedule
from cardsync.platform.database.columns import Base, RowId
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.urls import connect


class BackupReport(Base):
    """`kind` is backup or rehearsal. `failure` is the reason of a failure, null after a success."""

    __tablename__ = "backup_report"
    __table_args__ = (Index("ix_backup_report_kind", "kind", "ended_at"),)
    id: Mapped[RowId]
    kind: Mapped[str]
    name: Mapped[str]
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime]
    failure: Mapped[str | None]
    bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")


NEWEST: Final = """
    SELECT kind, max(ended_at) FILTER (WHERE failure IS NULL),
           max(ended_at) FILTER (WHERE failure IS NOT NULL),
           (array_agg(failure ORDER BY ended_at DESC))[1],
           (array_agg(bytes ORDER BY ended_at DESC) FILTER (WHERE failure IS NULL))[1]
      FROM backup_report GROUP BY kind
"""
_KEPT: Final = 400


class StepState(msgspec.Struct):
    """The last success, the last failure, and the reason if the newest attempt failed."""

    last_good: datetime | None = None
    """When the step last succeeded"""
    last_failed: datetime | None = None
    """When the step last failed"""
    failure: str | None = None
    """Why the newest attempt failed; null: it succeeded"""
    bytes: int = 0
    """The size of the newest successful attempt"""


class BackupState(msgspec.Struct):
    """`daily` is true if this installation makes backups automatically. `wrong` is one sentence
    about the current problem, null without a problem.
    """

    daily: bool
    """The installation makes backups by itself"""
    backup: StepState
    """The newest backup"""
    rehearsal: StepState
    """The newest restore test of a backup"""
    wrong: str | None = None
    """The fault of the backups; null: nothing is wrong"""


def record(
    owner_url: str,
    kind: Literal["backup", "rehearsal"],
    name: str,
    began_at: datetime,
    ended_at: datetime,
    failure: str | None,
    size: int = 0,
) -> None:
    """Record an attempt, as the role that owns the tables."""
    with connect(owner_url, role=None) as connection:
        connection.execute(
            """
            INSERT INTO backup_report (kind, name, began_at, ended_at, failure, bytes)
            VALUES (%s, %s, %s, %s, %s, %s)
            """,
            [kind, name, began_at, ended_at, failure, size],
        )
        connection.execute(
            "DELETE FROM backup_report WHERE id <= (SELECT max(id) FROM backup_report) - %s",
            [_KEPT],
        )


def last_failure(owner_url: str) -> datetime | None:
    """Return when the newest backup attempt failed, or None if it succeeded."""
    with connect(owner_url, role=None) as connection:
        last = connection.execute("""
            SELECT ended_at, failure FROM backup_report WHERE kind = 'backup'
             ORDER BY ended_at DESC LIMIT 1
        """).fetchone()
    return last[0] if last and last[1] is not None else None


async def read_state(source: Source, now: datetime, *, daily: bool) -> BackupState:
    """Return the state of backups; `daily` is whether the installation makes them itself."""
    return state_of(await found(source, NEWEST, {}), now, daily=daily)


def state_of(rows: Iterable[Sequence[Any]], now: datetime, *, daily: bool = False) -> BackupState:
    """Return the state from the rows of `NEWEST`."""
    steps: dict[str, StepState] = {}
    for kind, good, failed, why, size in rows:
        steps[kind] = StepState(good, failed, why, size or 0)
    backup = steps.get("backup", StepState())
    rehearsal = steps.get("rehearsal", StepState())
    return BackupState(daily, backup, rehearsal, _wrong(backup, rehearsal, now))


def _wrong(backup: StepState, rehearsal: StepState, now: datetime) -> str | None:
    if backup.failure is not None:
        return f"The last backup failed: {backup.failure}"
    if backup.last_good and backup_schedule.is_too_old(now, backup.last_good):
        return f"The newest backup, from {backup.last_good:%B %-d}, is too old"
    if rehearsal.failure is not None:
        return f"The newest backup failed its restore test: {rehearsal.failure}"
    # A killed rehearsal has recorded no failure, so the age of the last success is checked, too.
    if rehearsal.last_good and backup_schedule.is_unproven(backup.last_good, rehearsal.last_good):
        return f"No backup has passed a restore test since {rehearsal.last_good:%B %-d}"
    return None

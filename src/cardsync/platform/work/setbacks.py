"""Decides whether failed work is put back until a later time, tried again immediately, or given up
with a reason. The decision depends on the error, earlier setbacks and the time. Pure.

Work waits for an unavailable dependency, longer each time, because the work has no fault. Work that
was put back often enough for long enough is given up, and so is work that can never succeed.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import obstore
import psycopg
from psycopg_pool import PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from cardsync.platform.storage import ObjectMissing

# Work that fails by itself is given up after this many failures.
MAX_FAILURES = 3
# Work that waits for a dependency is given up only after this many tries and this much time. The
# time alone could pass while the machine is off, and the tries alone could end within a minute.
MAX_TIMES = 30
MAX_AGE = timedelta(days=1)
FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(minutes=10)


class Kind(StrEnum):
    """The cause of a failure, as the log names it."""

    AWAY = "away"
    NO_ROOM = "no_room"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    OWN = "own"


_WHY = {
    Kind.AWAY: "the database or the object store did not respond",
    Kind.NO_ROOM: "there was no room to store the result",
    Kind.FORBIDDEN: "the server was not allowed to read or store what it needed",
    Kind.MISSING: "the uploaded file is no longer in the object store",
}

# SQLSTATE classes that report the server's state, not a fault of the statement: connection,
# shutdown, resources, rollback, lock. A read-only server (25006) is included, because another
# server replaces it.
_AWAY_CLASSES = ("08", "57", "53", "40", "55", "25006")
_NO_ROOM_STATE = "53100"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_AWAY = {
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.ENOTCONN,
    errno.EPIPE,
    errno.ETIMEDOUT,
    errno.EHOSTUNREACH,
    errno.EHOSTDOWN,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.EIO,
    errno.ENXIO,
    errno.ENODEV,
    errno.ESTALE,
}


@dataclass(frozen=True)
class Tries:
    """How often a piece of work was put back, and when for the first time."""

    times: int = 0
    since: datetime | None = None


@dataclass(frozen=True)
class PutBack:
    """The work rests until `until`. `tries` are the tries to store."""

    kind: Kind
    until: datetime
    tries: Tries


@dataclass(frozen=True)
class TryAgain:
    """The work is tried again at once. `failures` is the number to store."""

    failures: int


@dataclass(frozen=True)
class GiveUp:
    """The work ends. `why` is for the seller; it is empty if the failure means nothing to a seller."""

    kind: Kind
    why: str


Setback = PutBack | TryAgain | GiveUp


def kind_of(error: BaseException) -> Kind:
    """Return the cause of a failure."""
    match error:
        case DBAPIError():
            return kind_of(error.orig) if error.orig is not None else Kind.AWAY
        case psycopg.Error():
            return _of_database(error)
        case ObjectMissing():
            return Kind.MISSING
        case PoolExhausted() | PoolTimeout() | obstore.exceptions.GenericError():
            return Kind.AWAY
        case obstore.exceptions.PermissionDeniedError() | obstore.exceptions.UnauthenticatedError():
            return Kind.FORBIDDEN
        case OSError():
            return _of_system(error)
    return Kind.OWN


def _of_database(error: psycopg.Error) -> Kind:
    state = error.sqlstate
    if state is None:
        # The error of a lost connection, or of a connection that could not be opened, has no
        # SQLSTATE.
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return Kind.AWAY if lost else Kind.OWN
    if state == _NO_ROOM_STATE:
        return Kind.NO_ROOM
    return Kind.AWAY if state.startswith(_AWAY_CLASSES) else Kind.OWN


def _of_system(error: OSError) -> Kind:
    """Find the cause of an OSError. The class OSError alone proves little: damaged gzip raises it,
    and so does a folder in place of a file.
    """
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror) or error.errno in _AWAY:
        return Kind.AWAY
    if error.errno in _NO_ROOM:
        return Kind.NO_ROOM
    return Kind.FORBIDDEN if error.errno in _FORBIDDEN else Kind.OWN


def decide(error: BaseException, tries: Tries, failures: int, now: datetime) -> Setback:
    """Decide about a failure. `failures` is the number of earlier failures of the work itself."""
    kind = kind_of(error)
    if kind is Kind.MISSING:
        return GiveUp(kind, _WHY[kind])
    if kind is Kind.OWN:
        return GiveUp(kind, "") if failures + 1 >= MAX_FAILURES else TryAgain(failures + 1)
    since = tries.since or now
    times = tries.times + 1
    if times > MAX_TIMES and now - since >= MAX_AGE:
        return GiveUp(
            kind, f"given up after {times} attempts in {_hours(now - since)}: {_WHY[kind]}"
        )
    return PutBack(kind, now + pause(times), Tries(times, since))


def pause(times: int) -> timedelta:
    """Return the pause after the given number of failures in a row."""
    # The exponent is capped before it multiplies, because 2^99 seconds exceed a timedelta.
    doubled: timedelta = FIRST_PAUSE * 2 ** min(times - 1, 20)
    return min(doubled, LONGEST_PAUSE)


def _hours(age: timedelta) -> str:
    return f"{round(age.total_seconds() / 3600)} hours"

"""Work that failed: the cause is judged, the work rests, and in the end it is given up."""

import errno
import gzip
from datetime import UTC, datetime, timedelta

import obstore
import psycopg
import pytest
from psycopg_pool import PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from cardsync.platform.storage import ObjectMissing
from cardsync.platform.work.setbacks import (
    MAX_AGE,
    MAX_TIMES,
    GiveUp,
    Kind,
    PutBack,
    Tries,
    TryAgain,
    decide,
    kind_of,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def of_system(number):
    return OSError(number, "it says")


def of_database(state):
    return psycopg.errors.lookup(state)("it says")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Kind.AWAY),
        (ConnectionResetError(), Kind.AWAY),
        (TimeoutError(), Kind.AWAY),
        (of_system(errno.EHOSTUNREACH), Kind.AWAY),
        (of_system(errno.EIO), Kind.AWAY),
        (of_system(errno.EMFILE), Kind.AWAY),
        (PoolTimeout(), Kind.AWAY),
        (PoolExhausted(), Kind.AWAY),
        (obstore.exceptions.GenericError("500"), Kind.AWAY),
        (psycopg.OperationalError("the connection is lost"), Kind.AWAY),
        (of_database("57P01"), Kind.AWAY),
        (of_database("40P01"), Kind.AWAY),
        (of_database("25006"), Kind.AWAY),
        (DBAPIError("SELECT 1", {}, of_database("53300")), Kind.AWAY),
        (of_system(errno.ENOSPC), Kind.NO_ROOM),
        (of_system(errno.EDQUOT), Kind.NO_ROOM),
        (of_database("53100"), Kind.NO_ROOM),
        (PermissionError(errno.EACCES, "denied"), Kind.FORBIDDEN),
        (of_system(errno.EROFS), Kind.FORBIDDEN),
        (obstore.exceptions.PermissionDeniedError("403"), Kind.FORBIDDEN),
        (ObjectMissing("accepted/u1/x.csv"), Kind.MISSING),
        (IsADirectoryError(errno.EISDIR, "a folder"), Kind.OWN),
        (FileNotFoundError(errno.ENOENT, "not there"), Kind.OWN),
        (of_system(errno.ENAMETOOLONG), Kind.OWN),
        (gzip.BadGzipFile("damaged"), Kind.OWN),
        (OSError("says nothing"), Kind.OWN),
        (of_database("22003"), Kind.OWN),
        (of_database("P0001"), Kind.OWN),
        (ValueError(), Kind.OWN),
    ],
)
def test_whose_fault_it_was(error, kind):
    assert kind_of(error) is kind


def test_the_pause_doubles_up_to_ten_minutes():
    tries, pauses = Tries(), []
    for _ in range(12):
        decided = decide(TimeoutError(), tries, 0, NOW)
        assert isinstance(decided, PutBack)
        assert decided.tries.since == NOW
        tries = decided.tries
        pauses.append(int((decided.until - NOW).total_seconds()))
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]


@pytest.mark.parametrize(
    ("times", "age", "ends"),
    [
        (0, None, False),
        (MAX_TIMES, MAX_AGE, True),
        # A burst of one minute.
        (1000, timedelta(minutes=1), False),
        # A machine that was off for a week.
        (1, timedelta(days=7), False),
        (MAX_TIMES - 1, timedelta(days=7), False),
        (MAX_TIMES, MAX_AGE - timedelta(seconds=1), False),
    ],
)
def test_it_ends_by_count_and_age_together(times, age, ends):
    tries = Tries(times, None if age is None else NOW - age)
    decided = decide(ConnectionResetError(), tries, 0, NOW)
    assert isinstance(decided, GiveUp if ends else PutBack)
    if ends:
        assert decided.why == (
            "given up after 31 attempts in 24 hours: the database or the object store did"
            " not respond"
        )


def test_what_can_never_succeed_is_given_up_at_once():
    told = "the uploaded file is no longer in the object store"
    assert decide(ObjectMissing("key"), Tries(), 0, NOW) == GiveUp(Kind.MISSING, told)


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_what_fails_by_itself_is_tried_three_times(failures):
    decided = decide(ValueError(), Tries(99, NOW), failures, NOW)
    assert decided == (TryAgain(failures + 1) if failures < 2 else GiveUp(Kind.OWN, ""))

"""Converts an operator's database URL into the forms that psycopg and SQLAlchemy take, and opens
connections outside the pools.

The module imports little, because every command needs it.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

APP_ROLE = "cardsync_app"
# This role reads the rows of all shops and writes none.
BACKUP_ROLE = "cardsync_backup"
# A host that vanishes does not close its connections. Without these options a client would wait for
# an answer for hours.
KEPT_ALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


# A connection outside the pools may take this long.
CONNECT_SECONDS = 10


def libpq_url(url: str, *, role: str | None = APP_ROLE) -> str:
    """Return a `postgresql://` URL whose connections act as `role`, whatever user signs in, so that
    row-level security applies.

    The connections use the zone by the name UTC, because frames with times in `Etc/UTC` cannot be
    joined with frames in `UTC`. The connections use no JIT, because the statements are short and
    compiling a statement may take seconds. The URL has all parts of the given URL as parameters,
    because SQLAlchemy reads some other forms differently than libpq.
    """
    given = KEPT_ALIVE | conninfo_to_dict(url)
    wanted = ["TimeZone=UTC", "jit=off"] + (
        [f"role={role}"] if role and given.get("user") != role else []
    )
    options = str(given.get("options") or "")
    given["options"] = " ".join(
        [options, *(f"-c {one}" for one in wanted if one not in options.split())]
    ).strip()
    return f"postgresql:///?{urlencode(given, quote_via=quote)}"


def connect(
    url: str, *, role: str | None = APP_ROLE, seconds: int | None = None, autocommit: bool = False
) -> psycopg.Connection[TupleRow]:
    """Connect outside the pools: before there are pools, or as a role that the pools do not
    have.
    """
    plain, waits = libpq_url(url, role=role), patience(url, seconds)
    return psycopg.connect(plain, autocommit=autocommit, **waits)


def patience(url: str, seconds: int | None = None) -> dict[str, Any]:
    """Return the connect timeout as an option, or no option if the operator sets it."""
    said = "connect_timeout" in conninfo_to_dict(url) or "PGCONNECT_TIMEOUT" in os.environ
    return {} if said else {"connect_timeout": seconds or CONNECT_SECONDS}


def pooler_url(url: str) -> str:
    """Return the URL of a pooler. The zone is the only setting that the pooler passes on, and libpq
    reads it only from the process's environment.
    """
    os.environ["PGTZ"] = "UTC"
    given = KEPT_ALIVE | conninfo_to_dict(url)
    return f"postgresql:///?{urlencode(given, quote_via=quote)}"


def engine_url(plain: str) -> str:
    """Return the same URL for SQLAlchemy."""
    return plain.replace("postgresql://", "postgresql+psycopg://", 1)

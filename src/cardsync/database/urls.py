"""URLs of the database: what an operator gives in, what psycopg and SQLAlchemy take out.

Light: every command needs them.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

APP_ROLE = "cardsync_app"


def libpq_url(url: str, *, role: str | None = APP_ROLE) -> str:
    """A `postgresql://` URL whose connections act as `role` whatever user signs in, so that
    row-level security binds.

    They tell times in UTC by that very name, whatever the server calls it: frames of times in
    `Etc/UTC` join no others. What it says is what libpq reads in the one given, all of it as
    parameters: SQLAlchemy reads some of the other forms differently.
    """
    given = conninfo_to_dict(url)
    wanted = ["TimeZone=UTC"] + ([f"role={role}"] if role and given.get("user") != role else [])
    options = str(given.get("options") or "")
    given["options"] = " ".join(
        [options, *(f"-c {one}" for one in wanted if one not in options.split())]
    ).strip()
    return f"postgresql:///?{urlencode(given, quote_via=quote)}"


def engine_url(plain: str) -> str:
    """The same URL for SQLAlchemy."""
    return plain.replace("postgresql://", "postgresql+psycopg://", 1)

"""URLs of the database: what an operator gives in, what psycopg and SQLAlchemy take out. Light: every command needs them."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

APP_ROLE = "cardsync_app"


def libpq_url(url: str, *, role: str | None = APP_ROLE) -> str:
    """A plain `postgresql://` URL whose connections act as `role` whatever user signs in, so that row-level security binds.

    They tell times in UTC by that very name, whatever the server calls it: frames of times in `Etc/UTC` join no others.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    wanted = ["-c TimeZone=UTC"] + ([f"-c role={role}"] if role and parts.username != role else [])
    given = query.get("options", "")
    query["options"] = " ".join([given, *(one for one in wanted if one.split()[1] not in given.split())]).strip()
    # By hand: `urlunsplit` leaves out the // where no host is named, as for a socket.
    return f"postgresql://{parts.netloc}{parts.path}?{urlencode(query, quote_via=quote)}"


def engine_url(plain: str) -> str:
    """The same URL for SQLAlchemy."""
    return plain.replace("postgresql://", "postgresql+psycopg://", 1)

"""The schemas that shops may have: a dump for each, and a database that is made from one."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from cardsync.platform.database.urls import libpq_url

SCHEMAS = Path(__file__).parent / "schemas"
DUMPS = sorted(path.name.partition(".")[0] for path in SCHEMAS.glob("*.sql.gz"))
_numbers = itertools.count(1)


@contextmanager
def database_of(owner_url: str, revision: str) -> Iterator[str]:
    """The owner's address of a database with the schema and the data of that dump."""
    name = f"{urlsplit(owner_url).path[1:]}_at_{revision}_{next(_numbers)}"
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}")
        try:
            url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
            with psycopg.connect(libpq_url(url, role=None)) as connection:
                connection.execute(text_of(revision))
            yield url
        finally:
            owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


def text_of(revision: str) -> str:
    return gzip.decompress((SCHEMAS / f"{revision}.sql.gz").read_bytes()).decode()


def key_of(revision: str) -> str:
    """The API key of the dump's first shop."""
    found = re.match(r"-- key: (\S+)", text_of(revision))
    assert found is not None
    return found[1]

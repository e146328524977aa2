"""One more database beside that of a test process, as that is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

import citus_cluster
from cardsync.platform.database.urls import libpq_url
from one_run import template_of_run


@contextmanager
def another_database(owner_url: str, name: str) -> Iterator[str]:
    """Yield the URL of a migrated database on the same server or cluster; it is gone afterwards."""
    name = f"{name}_{os.getpid()}"
    if cluster := os.environ.get("CARDSYNC_TEST_CITUS_URL"):
        with citus_cluster.spread_database(cluster, name) as url:
            yield url
        return
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} TEMPLATE {template_of_run()}")
        try:
            yield urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
        finally:
            owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

"""The catalog of each case alone, and the counts of right and wrong by kind at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from builders import Service
from cardsync.catalog.load_catalog import load
from cardsync.platform.database.urls import libpq_url

CATALOGS = Path(__file__).parent / "catalogs"
_TABLES = """
    SELECT table_name FROM information_schema.tables
     WHERE table_schema = 'public'
       AND (table_name IN ('product', 'product_elsewhere') OR table_name LIKE 'catalog\\_%')
"""
_loaded: list[Path] = []


@pytest.fixture
def catalog(
    service: Service, owner_url: str, request: pytest.FixtureRequest
) -> Callable[[str | None], Awaitable[None]]:
    """`await catalog(name)` leaves the products of this catalog and no others."""

    async def only(name: str | None) -> None:
        path = _path(name, request) if name else None
        with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
            if path is not None and _loaded == [path]:
                connection.execute("DELETE FROM product WHERE provisional")
                return
            _empty(connection)
        if path is not None:
            await load(service.database, path, "auto", None, lambda _: None)
            _loaded.append(path)

    return only


@pytest.fixture(scope="module", autouse=True)
def no_catalog_for_other_files(owner_url: str) -> Iterator[None]:
    yield
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        _empty(connection)


def _empty(connection: psycopg.Connection) -> None:
    tables = [table for (table,) in connection.execute(_TABLES)]
    connection.execute(f"TRUNCATE {', '.join(tables)}")
    _loaded.clear()


def _path(name: str, request: pytest.FixtureRequest) -> Path:
    own = CATALOGS / f"{name}.csv"
    if own.is_file():
        return own
    path: Path = request.getfixturevalue("shared_data") / "catalog" / f"{name}.parquet"
    assert path.is_file(), f"neither tests/field/catalogs nor ../shared/data/catalog has {name}"
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cases of each kind are right."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            _, is_field, case = report.nodeid.partition("tests/field/test_field.py::test_case[")
            if is_field:
                counts.setdefault(case.partition(":")[0], Counter())[outcome] += 1
    for kind, of in sorted(counts.items()):
        skipped = f", {of['skipped']} skipped" if of["skipped"] else ""
        wrong = of["failed"] + of["error"]
        terminalreporter.write_line(f"{kind}: {of['passed']} right, {wrong} wrong{skipped}")

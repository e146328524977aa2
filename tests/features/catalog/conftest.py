"""Catalogs of a set that no other test has, since products are shared by all sellers; and a machine
on which catalogs are installed from a server that stands for their sources.
"""

import csv
import uuid

import psycopg
import pytest
from click.testing import CliRunner

from cardsync.catalog import source_files
from cardsync.catalog.load_catalog import COLUMNS, import_catalog
from cardsync.cli import program
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from catalog_site import a_catalog_site


@pytest.fixture
def a_set():
    """A set of this test's own."""
    return f"Set {uuid.uuid4().hex}"


@pytest.fixture
def load(service, tmp_path, a_set):
    """`await load({"product_name": …}, …)` imports a catalog of these products of the test's
    set.
    """

    async def load(*products):
        usual = {
            "game": "magic",
            "set_name": a_set,
            "number": "7",
            "rarity": "Common",
            "language": "en",
        }
        path = tmp_path / f"{uuid.uuid4().hex}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(usual | product for product in products)
        return await import_catalog(service.database, path, "auto", None, lambda _: None)

    return load


@pytest.fixture
def site(monkeypatch, nothing_installed):
    monkeypatch.setattr(source_files, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(source_files, "_AGAIN_SECONDS", (0.01,))
    with a_catalog_site() as made:
        monkeypatch.setenv("CARDSYNC_CATALOG_MIRROR", made.address)
        yield made


@pytest.fixture
def query(owner_url):
    def rows(sql, *values):
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            found = connection.execute(sql, values)
            return found.fetchall() if found.description else []

    return rows


@pytest.fixture
def nothing_installed(query):
    query("DELETE FROM catalog_install")
    yield
    query("DELETE FROM catalog_install")


@pytest.fixture
def here(settings, site, tmp_path):
    """Settings of a machine of the test's own."""
    return settings.model_copy(update={"data_dir": tmp_path, "catalog_mirror": site.address})


@pytest.fixture
def run(in_the_environment, here, monkeypatch):
    """`run("install", "magic")` is `cardsync catalog install magic` on that machine."""
    monkeypatch.setenv("CARDSYNC_DATA_DIR", str(here.data_dir))
    yield lambda *words: CliRunner().invoke(program, ["catalog", *map(str, words)])
    setup_logging("warning", "json")


@pytest.fixture
def names(query, a_set):
    sql = "SELECT product_name FROM product WHERE set_name = %s AND vanished_at IS NULL ORDER BY id"
    return lambda: [name for (name,) in query(sql, a_set)]

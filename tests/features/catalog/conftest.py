"""Catalogs of a set that no other test has: products are shared by all sellers."""

import csv
import uuid

import pytest

from cardsync.catalog.load_catalog import COLUMNS, import_catalog


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

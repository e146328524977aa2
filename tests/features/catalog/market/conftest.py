"""A file of market observations, the command that imports it, and what the tables hold of it."""

import itertools
import random
import uuid

import psycopg
import pytest
from click.testing import CliRunner

from builders import a_csv, a_row
from cardsync.catalog.market.load_observations import load
from cardsync.cli import program
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from market_builder import HEADER, in_the_market

PRODUCTS = itertools.count(random.SystemRandom().randrange(10**9, 10**12))


@pytest.fixture
def product():
    """A product of the marketplace that no other test knows."""
    return next(PRODUCTS)


@pytest.fixture
def run(in_the_environment):
    """`run(path, …)` is `cardsync market import` against the tests' database."""
    yield lambda *options: CliRunner().invoke(
        program, ["market", "import", *(str(option) for option in options)]
    )
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
def stored(owner_url):
    """`stored("market_sale", product)` are the rows of a product, without its id."""

    def read(table, product, columns="*"):
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            return connection.execute(
                f"SELECT {columns} FROM {table} JOIN market_cell c ON c.id = cell"
                " WHERE product_id = %s ORDER BY 1",
                [product],
            ).fetchall()

    return read


@pytest.fixture
def written(tmp_path):
    """`written(lines)` is a CSV file of observations."""
    names = itertools.count(1)

    def write(*lines, header=HEADER):
        path = tmp_path / f"market{next(names)}.csv"
        path.write_text(header + "\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def listed(a_seller, owner_url, product):
    """A seller with card 1, which the catalog knows as the test's product."""

    async def made(**cells):
        seller = await a_seller()
        await seller.import_csv(a_csv(a_row(1, name=f"Card {uuid.uuid4().hex}", **cells)))
        in_the_market(owner_url, seller, {1: product})
        return seller

    return made


@pytest.fixture
def observed(service, written):
    """`await observed(lines)` imports a CSV of observations."""

    async def load_lines(*lines):
        return await load(service.database, written(*lines), lambda _: None)

    return load_lines

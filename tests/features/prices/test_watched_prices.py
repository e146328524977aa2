"""A commit of the program that changes the price file's cards outdates its kept figures, in each test
(`tests/watched_prices.py`): here the watch itself is tested.
"""

from __future__ import annotations

import os
import re

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

import watched_prices
from builders import a_csv, a_row
from cardsync.agents.seller_state.exported import EXPORTED
from cardsync.prices.files import kept_file

pytestmark = pytest.mark.skipif(
    "CARDSYNC_TEST_CITUS_URL" in os.environ, reason="a cluster's tables take no such triggers"
)
MOVED = "UPDATE sync_state SET prices_revision = prices_revision + 1 WHERE seller_id = :id"
CARD = "UPDATE card SET {} WHERE seller_id = :id AND marketplace_id = 2"
CHANGES = [
    *map(
        CARD.format,
        (
            "price = price + 1", "target_price = 9", "quantity = 8", "gone = true", "custom = true",
            "product_line = 'pokemon'", "listing_id = 77", "contribution = 'private'",
            "my_store_priced = true", "marketplace_id = 78",
        ),
    ),
    "DELETE FROM card WHERE seller_id = :id AND marketplace_id = 2",
    """
    INSERT INTO card SELECT (jsonb_populate_record(c, '{"id": 1, "marketplace_id": 79}')).*
      FROM card c WHERE seller_id = :id AND marketplace_id = 2
    """,
    "UPDATE account SET product_lines = '{pokemon}' WHERE seller_id = :id",
]  # fmt: skip
OTHERS = [
    CARD.format("product_name = 'Another', market = 4, rarity = '', updated_at = now()"),
    CARD.format("price = price"),
    "UPDATE account SET product_lines = product_lines WHERE seller_id = :id",
]


async def written(seller, *statements: str) -> None:
    async with seller.service.database.tenant(seller.id) as session:
        for statement in statements:
            assert (await session.execute(text(statement), {"id": seller.id})).rowcount == 1


@pytest.fixture
async def seller(a_seller):
    made = await a_seller()
    await made.import_csv(a_csv(*(a_row(n) for n in range(1, 4))))
    return made


@pytest.mark.parametrize("change", CHANGES)
async def test_a_commit_that_leaves_the_figures_is_refused(seller, change):
    with pytest.raises(DBAPIError, match=watched_prices.REFUSED):
        await written(seller, change)
    await written(seller, change, MOVED)


@pytest.mark.parametrize("change", CHANGES[:1])
async def test_a_revision_of_another_transaction_is_none_of_this(seller, change):
    await written(seller, MOVED)
    with pytest.raises(DBAPIError, match=watched_prices.REFUSED):
        await written(seller, change)


@pytest.mark.parametrize("change", OTHERS)
async def test_other_columns_and_values_that_stay_are_free(seller, change):
    await written(seller, change)


def test_each_column_that_the_figures_read_is_watched():
    read = re.findall(r"\b[cd]\.(\w+)", kept_file._READ.format(which=EXPORTED))
    assert set(read) - {"seller_id", "id"} <= {*watched_prices.COLUMNS}

"""The table of cards is analyzed after an import that has enlarged it, so the planner knows a new
shop before autovacuum has looked at it.
"""

import json
import os
import re

import psycopg
import pytest

from builders import a_csv, a_row
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.stock import STOCK
from cardsync.prices.inputs.price_history import among
from cardsync.prices.inputs.sampled_cards import sample_of

pytestmark = pytest.mark.skipif(
    "CARDSYNC_TEST_CITUS_URL" in os.environ, reason="the tables of nodes are left to autovacuum"
)
ANALYZED = "SELECT last_analyze FROM pg_stat_all_tables WHERE relid = 'card'::regclass"
# The cards are long, so few of them fill many pages of the table.
LONG = "of a long name " * 24


@pytest.fixture
def owner(owner_url):
    """The owner of the table of cards, which autovacuum does not analyze meanwhile."""
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        connection.execute("ALTER TABLE card SET (autovacuum_enabled = off)")
        yield connection
        connection.execute("ALTER TABLE card RESET (autovacuum_enabled)")


def a_file(count):
    return a_csv(*(a_row(number, name=f"{number} {LONG}") for number in range(1, count + 1)))


async def test_a_sample_of_a_new_shop_does_not_read_the_whole_table(a_seller, owner):
    seller = await a_seller()
    before = owner.execute(ANALYZED).fetchone()
    await seller.import_csv(a_file(20))
    assert owner.execute(ANALYZED).fetchone() == before
    await seller.import_csv(a_file(8_000))
    after = owner.execute(ANALYZED).fetchone()
    assert after != before
    async with seller.service.database.tenant(seller.id) as session:
        sample = await sample_of(session, seller.id, 16)
    asked = (
        "EXPLAIN (FORMAT json) SELECT count(price) FROM card c"
        f" WHERE c.seller_id = :seller AND NOT gone AND {among('c.id', sample)}"
    )
    [row] = await seller.service.sql(seller.id, asked, seller=seller.id)
    plan = json.dumps(row["QUERY PLAN"])
    # The index finds the ids of the sample; a filter would read all cards of the shop.
    assert re.search(r'"Index Cond": "[^"]*ANY', plan)
    assert not re.search(r'"Filter": "[^"]*ANY', plan)
    # A table that has hardly grown is left to autovacuum.
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.STOCK)
    await STOCK.work_off(seller.service.work, seller.id)
    assert owner.execute(ANALYZED).fetchone() == after


async def test_a_small_shop_that_statistics_do_not_know_is_analyzed_once(a_seller, owner):
    first, second = await a_seller(), await a_seller()
    await first.import_csv(a_csv(*(a_row(number) for number in range(1, 3_000))))
    owner.execute("ANALYZE card")
    before = owner.execute(ANALYZED).fetchone()
    await second.import_csv(a_csv(*(a_row(number) for number in range(1, 900))))
    assert owner.execute(ANALYZED).fetchone() == before
    await second.import_csv(a_csv(*(a_row(number) for number in range(1, 1_100))))
    after = owner.execute(ANALYZED).fetchone()
    assert after != before
    await second.import_csv(a_csv(*(a_row(number) for number in range(1, 1_200))))
    assert owner.execute(ANALYZED).fetchone() == after

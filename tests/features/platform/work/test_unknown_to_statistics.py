"""A new shop is worked off and shown in a few readings of its rows, although the planner's statistics
know nothing of it: they say that it has one row, so a join may read all rows for each row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date, timedelta
from functools import partial
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from builders import a_csv, a_row, an_order
from cardsync.catalog.market import network_cells
from cardsync.network import offers
from cardsync.platform import clock
from cardsync.platform.derived.sales_by_day import DAYS_AT_ONCE
from discovery_builder import change
from market_builder import in_the_market

CARDS = 800
# A step may read a table so many times over; where each row is joined by reading all, it is 800.
# What a connection has read is reported late, so a step may have the readings of others.
READINGS = 250
_SETTLE = "SELECT pg_stat_force_next_flush()"
SEARCHES = (
    "market>1", "is:stale", "is:moved", "is:drifted", "is:audit", "unshelved>0",
)  # fmt: skip
READS = (
    "/api/recommendations", "/api/customers", "/api/customers/export.csv", "/api/orders",
    "/api/orders/export.csv", "/api/today", "/api/sales/summary", "/api/sales/cards", "/api/movers",
    "/api/returns", "/api/returns/customers", "/api/network", "/api/v1/export/price-updates",
    "/api/cards/export.csv", "/api/pricing/rules/analysis", "/api/pricing/updates.csv",
    "/api/pricing/reviews", *(f"/api/cards?q={quote(search)}" for search in SEARCHES),
)  # fmt: skip
# A table that all shops share may have many rows of other tests, which one scan reads.
_READ = """
    SELECT s.relname, coalesce(s.idx_tup_fetch, 0) + s.seq_tup_read,
           CASE WHEN a.attname IS NULL THEN s.n_live_tup ELSE 0 END
      FROM pg_stat_user_tables s
      LEFT JOIN pg_attribute a ON a.attrelid = s.relid AND a.attname = 'seller_id'
     WHERE s.schemaname = 'public'
"""


def read_so_far(owner_url: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the rows that were read of each table, and the rows of those that shops share."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(_SETTLE)
        rows = connection.execute(_READ).fetchall()
    return {name: read for name, read, _ in rows}, {name: shared for name, _, shared in rows}


class Readings:
    def __init__(self, owner_url: str) -> None:
        self.owner_url, self.over = owner_url, dict[str, dict[str, int]]()

    @asynccontextmanager
    async def of(self, step: str) -> AsyncIterator[None]:
        before, _ = read_so_far(self.owner_url)
        yield
        after, shared = read_so_far(self.owner_url)
        times = {
            name: (read - before.get(name, 0)) // max(CARDS, shared[name])
            for name, read in after.items()
        }
        if over := {name: count for name, count in times.items() if count > READINGS}:
            self.over[step] = over


def file(cards: int, price: str, name: str = "Card") -> bytes:
    return a_csv(
        *(a_row(n, market=price, name=f"{name} {n}", price="1.00") for n in range(1, cards + 1))
    )


def orders(count: int) -> Sequence[dict[str, object]]:
    """Orders of so many days that the oldest, which have few of them, are summed by themselves."""
    newest = date(2026, 7, 31)
    return [
        an_order(
            f"N-{n}",
            buyer_name=f"Buyer {n % 60}",
            order_date=str(newest - timedelta(n % DAYS_AT_ONCE if n > 60 else DAYS_AT_ONCE)),
        )
        for n in range(count)
    ]


def items(count: int) -> Sequence[dict[str, object]]:
    return [
        {
            "order_number": f"N-{n}",
            "items": [{"sku_id": 1 + n, "name": f"Card {n}", "quantity": 1, "price": 1.5}],
        }
        for n in range(count)
    ]


@pytest.mark.day
async def test_each_step_of_a_new_shop_reads_its_rows_a_few_times(a_seller, owner_url) -> None:
    """It alone finds joins that are quick in a small test and take minutes in a new, large shop."""
    readings = Readings(owner_url)
    for count in (20, CARDS):
        # Caps limit all its prices, and need the prices at the beginning of the day.
        seller = await a_seller(capped=True)
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        for step, send in {
            "import": seller.import_csv(file(count, "2.00")),
            "import again": seller.import_csv(file(count, "2.10")),
            "import once more": seller.import_csv(file(count, "2.20")),
            "orders": seller.orders(orders(count)),
            "items": seller.items(items(count)),
            "orders again": seller.orders([one | {"status": "Shipped"} for one in orders(count)]),
            "refunds": seller.refunds(
                [
                    {"order_number": f"N-{n}", "total_amt": 1, "status": "Refunded"}
                    for n in range(count)
                ]
            ),
        }.items():
            async with readings.of(step):
                await send
        async with readings.of("reprice"):
            assert (await seller.post("/api/pricing/reprice", json={})).status_code == 202
            await seller.service.run_jobs()
        for path in READS:
            async with readings.of(path):
                answer = await seller.get(path)
                assert answer.status_code == 200, (path, answer.text)
    assert not readings.over


async def read_again(seller, refresh: Callable[[AsyncSession], Awaitable[int]], table: str) -> int:
    """Refresh again what has not changed, and return the rows read of the temp table, which only
    its own transaction counts.
    """
    read = "SELECT seq_tup_read FROM pg_stat_xact_all_tables WHERE relname = :table"
    async with seller.service.database.tenant(seller.id) as session:
        assert await refresh(session) == 0
        return int((await session.execute(text(read), {"table": table})).scalar_one())


async def test_the_offers_and_cells_of_a_new_shop_are_compared_with_its_cards_once(
    a_seller, owner_url
):
    for count in (20, CARDS):
        seller = await a_seller()
        await seller.import_csv(file(count, "2.00", "In the network"))
        switches = {"network_consent": True, "network_published": True}
        await change(seller.service, seller, **switches)
        offered = partial(offers.refresh, seller_id=seller.id)
        seen = partial(network_cells.refresh, seller_id=seller.id, now=clock.now())
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute("ANALYZE network_offer, network_cell")
        in_the_market(owner_url, seller, {n: 5_000_000 + n for n in range(1, count + 1)})
        async with seller.service.database.tenant(seller.id) as session:
            assert await offered(session) == count
            assert await seen(session) == count
    assert CARDS <= await read_again(seller, offered, "held") < 10 * CARDS
    assert CARDS <= await read_again(seller, seen, "own_evidence") < 10 * CARDS

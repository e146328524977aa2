"""A feed of many entries counts those of long ago only once."""

from __future__ import annotations

import psycopg
import pytest

from cardsync.platform.database.urls import libpq_url
from sent_statements import counting, prepared

FILLED = """
    INSERT INTO activity (seller_id, actor, action, summary, created_at)
    SELECT %s, 'key 1', 'list.created', 'a list', now() - n * interval '1 hour'
      FROM generate_series(2000, 1, -1) n
"""
OLD = """
    DELETE FROM activity WHERE seller_id = %s AND created_at < now() - interval '1500 hours'
"""


@pytest.fixture
async def seller(a_seller, owner_url):
    seller = await a_seller()
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        connection.execute(FILLED, [seller.id])
    return seller


async def total(seller) -> int:
    answer = await seller.get("/api/v1/agent/activity")
    return int(answer.json()["total"])


async def test_the_total_has_new_entries_and_not_those_that_went(seller, owner_url):
    assert [await total(seller) for _ in range(2)] == [2000, 2000]
    await seller.post("/api/lists", json={"name": "Binder"})
    assert await total(seller) == 2001
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        gone = connection.execute(OLD, [seller.id]).rowcount
    assert gone in (500, 501)
    assert [await total(seller) for _ in range(2)] == [2001 - gone] * 2


@prepared
async def test_entries_of_long_ago_are_counted_once(seller):
    async with counting(seller.service.app.state.database) as sent:
        await total(seller)
        sent.read()
        assert sent.statements("id > 0") == 1
        sent.sent.clear()
        await total(seller)
    assert sent.statements("id > ") == 1
    assert sent.statements("id > 0") == 0

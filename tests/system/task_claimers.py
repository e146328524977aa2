"""Agents of many sellers in one process, which claim tasks and complete them until none is left;
and the bare loop over the same table that they are compared with. A process by itself, for
`bench/tasks.py` and for tests: `python task_claimers.py (product|bare) URL FIRST < SELLERS`.

Each line of standard input is a seller and its key's id; the process begins with the line FIRST.
Its output is one line of JSON: the ids of the tasks that it claimed, and the seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from time import perf_counter

import psycopg
import uvloop

from cardsync.access.caller import caller_of
from cardsync.agents.agentwork.claims import Outcome, claim, end_claim
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.settings import Settings

# (seller, key's id) → the task that was claimed and completed, None if none waits.
Take = Callable[[int, int], Awaitable[int | None]]

_CLAIM = """
    UPDATE agent_task SET status = 'claimed', claimed_at = %s, claim_expires_at = %s, token_hash = %s
     WHERE seller_id = %s AND id = (
           SELECT id FROM agent_task WHERE seller_id = %s AND status = 'pending'
            ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id
"""
_COMPLETE = """
    UPDATE agent_task SET status = 'completed', finished_at = %s
     WHERE seller_id = %s AND id = %s AND token_hash = %s AND status = 'claimed'
"""


@asynccontextmanager
async def product(url: str) -> AsyncIterator[Take]:
    settings = Settings(database_url=url)
    async with Database.open(url, pool=1, hot_pool=1) as database:

        async def take(seller_id: int, key_id: int) -> int | None:
            caller = await caller_of(database, seller_id, key_id)
            claimed = await claim(database, caller, None, None, 1, clock.now(), settings)
            for task in claimed.tasks:
                async with database.tenant(seller_id) as session:
                    outcome = Outcome("completed", task.claim_token)
                    await end_claim(session, caller, task.id, outcome, clock.now())
                return task.id
            return None

        yield take


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[Take]:
    async with await psycopg.AsyncConnection.connect(libpq_url(url)) as connection:

        async def take(seller_id: int, _: int) -> int | None:
            scope = f"SET LOCAL app.seller_id = '{int(seller_id)}'"
            now = clock.now()
            hashed = hashlib.sha256(secrets.token_urlsafe(32).encode()).digest()
            values = (now, now + timedelta(minutes=10), hashed, seller_id, seller_id)
            async with connection.transaction():
                await connection.execute(scope.encode())
                row = await (await connection.execute(_CLAIM, values)).fetchone()
            if row is None:
                return None
            async with connection.transaction():
                await connection.execute(scope.encode())
                await connection.execute(_COMPLETE, (now, seller_id, row[0], hashed))
            return int(row[0])

        yield take


async def main(how: str, url: str, first: str) -> None:
    sellers = [(int(seller), int(key)) for seller, key in map(str.split, sys.stdin)]
    # Each process begins elsewhere, and meets the others all the way round.
    sellers = sellers[int(first) :] + sellers[: int(first)]
    taken: list[int] = []
    async with {"product": product, "bare": bare}[how](url) as take:
        began = perf_counter()
        while sellers:
            left = []
            for seller_id, key_id in sellers:
                task = await take(seller_id, key_id)
                if task is not None:
                    taken.append(task)
                    left.append((seller_id, key_id))
            sellers = left
        took = perf_counter() - began
    print(json.dumps([taken, took]))


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    uvloop.run(main(*sys.argv[1:]))

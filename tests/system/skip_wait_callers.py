"""Runs one process of callers who skip the wait by the operation itself: DATABASE_URL API_KEY
CALLERS FIRST.

Each line of standard input is a round: its name, and how many keys all callers of all processes
share. All of this process's callers call at once; the output is, as JSON, their answers: [status,
transaction, how often].
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass

import uvloop
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from cardsync.access.caller import KeyRing, caller_of, owner_of
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.errors import Problem
from cardsync.platform.settings import Settings
from cardsync.shop.credits.skip_wait import skip_wait


@dataclass(frozen=True)
class OneOfMany:
    """With a connection of its own, which stays in the seller's scope: what is tested is the
    charge, not the pool.
    """

    database: Database
    settings: Settings
    seller_id: int
    key_id: int
    connection: AsyncConnection

    async def enter(self) -> None:
        await self.connection.execute(text(f"SET app.seller_id = '{self.seller_id}'"))
        await self.connection.commit()

    async def call(self, key: str) -> tuple[str, int | None]:
        seen = await caller_of(self.database, self.seller_id, self.key_id)
        try:
            async with (
                AsyncSession(self.connection, expire_on_commit=False) as session,
                session.begin(),
            ):
                done = await skip_wait(session, seen, key, clock.now(), self.settings)
        except Problem as e:
            return e.code, None
        return done.status, done.transaction_id


async def main(url: str, api_key: str, callers: str, first: str) -> None:
    async with (
        Database.open(url, pool=int(callers), hot_pool=2) as database,
        AsyncExitStack() as stack,
    ):
        owner = await owner_of(KeyRing(database), f"Bearer {api_key}")
        settings, everyone = Settings(database_url=url), []
        for _ in range(int(callers)):
            connection = await stack.enter_async_context(database.engine.connect())
            everyone.append(OneOfMany(database, settings, *owner, connection))
            await everyone[-1].enter()
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, keys = line.split()
            calls = (
                caller.call(f"{name}-{n % int(keys)}")
                for n, caller in enumerate(everyone, int(first))
            )
            told = Counter(await asyncio.gather(*calls))
            print(json.dumps([[*said, times] for said, times in told.items()]), flush=True)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))

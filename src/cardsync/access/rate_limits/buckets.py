"""The token buckets of a process, which it shares with other processes through the table
`rate_limit`.

A process admits requests by its own state and reports them later. One statement per second sends
the requests of all buckets and returns what the other processes admitted. A bucket that has used a
large part of the remaining requests is reported at once, before it admits more. Processes may
together admit more requests than the limit between two reports; these requests move the arrival
time and delay later ones, so the rate is exact in the long run. See docs/adr/0006.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice

import structlog
from sqlalchemy import CursorResult, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.rate_limits.bucket import Bucket, Verdict
from cardsync.access.rate_limits.groups import Group
from cardsync.platform import clock
from cardsync.platform.concurrency import every
from cardsync.platform.database.columns import Base
from cardsync.platform.database.session import Database
from cardsync.platform.limits import Limit


class RateLimit(Base):
    """A token bucket, computed with GCRA. The table is global, and unlogged because a crash of the
    database loses only the state of the limits. `bucket` names the group and the holder
    (`general:k17`, `anonymous:192.0.2.7`). `tat` is the theoretical arrival time.
    """

    __tablename__ = "rate_limit"
    __table_args__ = {"prefixes": ["UNLOGGED"]}  # noqa: RUF012
    bucket: Mapped[str] = mapped_column(primary_key=True)
    tat: Mapped[datetime]


log = structlog.get_logger(__name__)

# Times are sent and read relative to the database's clock, because all hosts share only that clock.
EXCHANGE_SQL = """
    INSERT INTO rate_limit AS b (bucket, tat)
    SELECT bucket, now() + spent * interval '1 second'
      FROM unnest(%s::text[], %s::float8[]) AS s (bucket, spent) ORDER BY bucket
    ON CONFLICT (bucket) DO UPDATE SET tat = greatest(b.tat, now()) + (excluded.tat - now())
    RETURNING b.bucket, extract(epoch FROM b.tat - now())::float8
"""
# SKIP LOCKED, because this statement must not wait for an exchange that may wait for it.
DROP_PAST_SQL = text("""
    DELETE FROM rate_limit WHERE bucket IN
        (SELECT bucket FROM rate_limit WHERE tat < now() - interval '10 minutes'
            FOR UPDATE SKIP LOCKED)
""")
EXCHANGE_ROWS = 5_000
EXCHANGE_SECONDS = 2.0
# For this time after a failed exchange, no request waits for another exchange.
REST_SECONDS = 1.0


class Buckets:
    def __init__(self, database: Database, size: int = 50_000) -> None:
        self._database = database
        self._size = size
        # Each group has its own maximum number of buckets, so that requests from many addresses
        # cannot evict the buckets of keys.
        self._kept: dict[Group, OrderedDict[str, Bucket]] = {
            group: OrderedDict() for group in Group
        }
        self._noted: dict[str, Bucket] = {}
        self._asked: dict[str, Bucket] = {}
        self._turn = asyncio.Lock()
        self._rests_until = 0.0

    def find(self, group: Group, limit: Limit, holder: str) -> Bucket:
        kept = self._kept[group]
        bucket = kept.get(holder)
        if bucket is None:
            bucket = kept[holder] = Bucket(group, limit, holder)
            if len(kept) > self._size:
                self._noted.pop(kept.popitem(last=False)[1].name, None)
        else:
            kept.move_to_end(holder)
        return bucket

    async def take(self, bucket: Bucket) -> bool:
        """Return whether one request is admitted, and count it."""
        while True:
            now = clock.monotonic()
            verdict = bucket.verdict(now)
            if verdict is not Verdict.REPORT_FIRST or now < self._rests_until:
                break
            await self._report(bucket)
        self.note(bucket)
        if verdict is Verdict.REFUSE:
            return False
        bucket.admit(now)
        return True

    async def settle(self, bucket: Bucket) -> None:
        """Report the admitted requests before a refusal names the time to wait. A later report
        would count from a later time, so the time to wait would be too short.
        """
        if bucket.unsaid and clock.monotonic() >= self._rests_until:
            await self._report(bucket)

    def note(self, bucket: Bucket) -> None:
        """Add the bucket to the next flush, which reports it and reads its state. So a refusal
        needs no statement of its own.
        """
        self._noted[bucket.name] = bucket

    async def _report(self, bucket: Bucket) -> None:
        """Report a bucket. Only one statement runs at a time, and the buckets that wait for it
        share the next statement. A burst of requests therefore uses only one connection.
        """
        self._asked[bucket.name] = bucket
        async with self._turn:
            if bucket.name in self._asked:
                await self._exchange_or_rest()

    async def flush(self) -> None:
        """Report the requests that this process admitted, and read those of other processes."""
        self._asked.update(islice(self._noted.items(), EXCHANGE_ROWS))
        async with self._turn:
            if self._asked:
                await self._exchange_or_rest()

    async def _exchange_or_rest(self) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_SECONDS):
                await self._exchange()
        except Exception as e:
            # After a failed exchange each process applies the limits by its own state, so that no
            # request fails.
            self._rests_until = clock.monotonic() + REST_SECONDS
            log.warning("rate_limits_not_exchanged", kind=type(e).__name__)

    async def _exchange(self) -> None:
        batch = self._asked
        self._asked = {}
        said = [bucket.unsaid for bucket in batch.values()]
        spent = [
            times * bucket.limit.emission
            for times, bucket in zip(said, batch.values(), strict=True)
        ]
        for name in batch:
            self._noted.pop(name, None)
        asked_at = clock.monotonic()
        try:
            async with self._database.hot.connection() as connection:
                rows = await (
                    await connection.execute(EXCHANGE_SQL, (list(batch), spent))
                ).fetchall()
        except BaseException:
            for bucket in batch.values():
                self.note(bucket)
            raise
        answered: dict[str, float] = dict(rows)
        for times, (name, bucket) in zip(said, batch.items(), strict=True):
            bucket.learn(asked_at, answered[name], times)

    @asynccontextmanager
    async def exchanging(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with every(seconds, self.flush, "rate_limits_not_exchanged"):
                try:
                    yield
                finally:
                    # Wait for a running exchange before canceling the task: canceling an exchange
                    # would close its connection and leave no time to report the rest.
                    await self._turn.acquire()
        finally:
            self._turn.release()
            await self.flush()


async def drop_past(database: Database) -> int:
    """Delete full buckets. A missing bucket counts as full."""
    async with database.shared() as session:
        gone = await session.execute(DROP_PAST_SQL)
    assert isinstance(gone, CursorResult)
    return int(gone.rowcount)

"""Counts unmet demand (misses): products that callers requested and no exposed seller offered. If
at least `MISS_CALLERS` callers requested a product recently, sellers see the product with the
number of callers.

Each process collects misses in memory and writes them regularly with one statement. A caller is
stored as a keyed hash of the product and the caller's seller id. Hashes can be counted, but they do
not reveal the caller, and the same caller has another hash for each product. Old rows are deleted,
and the number of rows is limited.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import text

from cardsync.network.limits import MISS_CALLERS, MISS_DAYS, MISSES, MISSES_NOTED, UNMET_SHOWN
from cardsync.network.network_schemas import UnmetBody
from cardsync.network.resolve import EXPOSED
from cardsync.platform.concurrency import every
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database, run

log = structlog.get_logger(__name__)

_PURPOSE: Final = b"cardsync unmet demand\0"
_WRITE = f"""
    INSERT INTO network_miss AS m (product_id, caller, asked_on)
    SELECT noted.product_id, noted.caller, :day
      FROM unnest(CAST(:products AS bigint[]), CAST(:callers AS bytea[]))
           AS noted (product_id, caller)
     WHERE (SELECT count(*) FROM network_miss) < {MISSES}
     ORDER BY noted.product_id, noted.caller
    ON CONFLICT (product_id, caller) DO UPDATE SET asked_on = excluded.asked_on
     WHERE m.asked_on < excluded.asked_on
"""
_UNMET = queries_of(__package__)["unmet"].format(
    miss_callers=MISS_CALLERS, exposed=EXPOSED, unmet_shown=UNMET_SHOWN
)


class Misses:
    """The misses of a web process that are not in the database yet."""

    def __init__(self, database: Database, key: Callable[[], bytes]) -> None:
        self._database = database
        self._key = key
        self._noted: dict[tuple[int, bytes], datetime] = {}

    def note(self, product_ids: Iterable[int], seller_id: int, now: datetime) -> None:
        for product_id in product_ids:
            if len(self._noted) < MISSES_NOTED:
                self._noted[product_id, self._hashed(product_id, seller_id)] = now

    def _hashed(self, product_id: int, seller_id: int) -> bytes:
        message = _PURPOSE + b"%d,%d" % (product_id, seller_id)
        return hmac.digest(self._key(), message, "sha256")[:16]

    async def flush(self) -> None:
        """Write the collected misses. If that fails, they are lost, because demand is only an
        estimate.
        """
        noted, self._noted = self._noted, {}
        if not noted:
            return
        async with self._database.shared() as session:
            await session.execute(
                text(_WRITE),
                {
                    "products": [product_id for product_id, _ in noted],
                    "callers": [caller for _, caller in noted],
                    "day": max(noted.values()).date(),
                },
            )

    def flushing(self, seconds: float) -> AbstractAsyncContextManager[None]:
        return every(seconds, self.flush, "network_misses_flush_failed", last=True)


async def unmet(source: Source, seller_id: int, now: datetime) -> list[UnmetBody]:
    """Return the products that at least `MISS_CALLERS` callers requested recently and no exposed
    seller offers.
    """
    since = (now - timedelta(days=MISS_DAYS)).date()
    rows = await found(source, _UNMET, {"since": since, "seller": seller_id, "now": now})
    return [UnmetBody(*row) for row in rows]


async def drop_old(database: Database, now: datetime) -> int:
    """Delete misses that are older than `MISS_DAYS`, and return their number."""
    since = (now - timedelta(days=MISS_DAYS)).date()
    async with database.shared() as session:
        return await run(
            session, "DELETE FROM network_miss WHERE asked_on <= :since", {"since": since}
        )

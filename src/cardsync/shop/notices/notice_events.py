"""Reads the events of a shop since the last check: new orders, ended syncs, and rejected
uploads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.plurals import counted
from cardsync.platform.value_types import Row
from cardsync.sales.orders.pullable import PULLABLE, TO_SHIP_STATUSES
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.today.sync_result import EVENTS, NEXT_STARTED, moves_of

_MOST: Final = 50
_CYCLES: Final = f"""
    SELECT c.id, c.status, c.logged_at, c.sync_cycle_id AS name, c.started_at AS started,
           {NEXT_STARTED} AS next
      FROM sync_cycle c
     WHERE c.seller_id = :seller AND NOT c.placeholder
       AND c.status IN ('success', 'partial', 'failed') AND c.logged_at > :since
     ORDER BY c.id DESC LIMIT :most
"""
_UPLOADS: Final = """
    SELECT id, kind, finished_at FROM upload
     WHERE seller_id = :seller AND state = 'failed' AND finished_at > :since
     ORDER BY id DESC LIMIT :most
"""
_NEWEST: Final = "SELECT coalesce(max(id), 0) FROM orders WHERE seller_id = :seller"
_ORDERS: Final = f"""
    SELECT count(*), max(orders.id), sum(orders.total_amt) FROM orders
     WHERE orders.seller_id = :seller AND orders.id > :newest AND {PULLABLE}
"""
_OF_UPLOAD: Final = {
    "inventory": "your inventory",
    "orders": "orders",
    "refunds": "refunds",
    "items": "order items",
    "shipping": "shipping data",
}


async def newest_order(session: AsyncSession, seller_id: int) -> int:
    return int(await session.scalar(text(_NEWEST), {"seller": seller_id}) or 0)


async def new_orders(
    session: AsyncSession,
    seller_id: int,
    newest: int,
    now: datetime,
) -> list[NewsItem]:
    """Return one event about all orders to pull whose ids are above `newest`, or no event if there
    are none.
    """
    own = {"seller": seller_id}
    statuses = [status for (status,) in await session.execute(text(TO_SHIP_STATUSES), own)]
    values = own | {"newest": newest, "to_ship_statuses": statuses}
    count, last, money = (await session.execute(text(_ORDERS), values)).one()
    return [_orders(count, last, money, now)] if count else []


def _orders(
    count: int,
    last: int,
    money: Decimal | None,
    now: datetime,
) -> NewsItem:
    return NewsItem(
        "orders_new",
        f"orders_new:{last}",
        "info",
        f"{counted(count, 'new order', 'new orders')} to pull.",
        "See the orders",
        "/orders?pull_session=none&direction=asc",
        now,
        money,
        count=count,
        owner_only=False,
        is_event=True,
    )


async def events_since(
    session: AsyncSession,
    seller_id: int,
    since: datetime,
) -> list[NewsItem]:
    """Return the events of syncs and uploads that have ended since `since`, each the oldest
    first.
    """
    values = {"seller": seller_id, "since": since, "most": _MOST}
    cycles = (await session.execute(text(_CYCLES), values)).all()
    uploads = (await session.execute(text(_UPLOADS), values)).all()
    ended = []
    for id, status, at, name, started, following in reversed(cycles):
        own = {"seller": seller_id, "name": name, "started": started, "next": following}
        rows = (await session.execute(text(EVENTS), own)).all()
        _, raised, up, lowered, down = moves_of([tuple(row) for row in rows])
        ended.append((id, status, at, raised, lowered, up - down))
    return [*_of_cycles(ended), *_of_uploads(uploads)]


def _of_cycles(rows: Sequence[tuple[int, str, datetime, int, int, Decimal]]) -> Iterator[NewsItem]:
    for id, status, at, raised, lowered, worth in rows:
        kind = "sync_failed" if status == "failed" else "sync_done"
        moved = f": {counted(raised, 'price', 'prices')} raised, {lowered} lowered"
        brought = moved if raised or lowered else ""
        sentence = {
            "success": f"A sync is done{brought}.",
            "partial": f"A sync is done, but some of its steps failed{brought}.",
            "failed": "A sync failed.",
        }[status]
        yield NewsItem(
            kind,
            f"{kind}:{id}",
            "info" if status == "success" else "warn",
            sentence,
            "See what it brought" if brought else "See the sync",
            f"/sync/result?cycle={id}" if brought else "/today#sync",
            at,
            # The amount by which the prices raise the listed value.
            worth if brought and worth > 0 else None,
            subject=id,
            owner_only=False,
            is_event=True,
        )


def _of_uploads(rows: Sequence[Row]) -> Iterator[NewsItem]:
    for id, kind, at in reversed(rows):
        yield NewsItem(
            "upload_rejected",
            f"upload_rejected:{id}",
            "bad",
            f"An upload of {_OF_UPLOAD.get(kind, kind)} was rejected.",
            "See why",
            f"/sync/uploads/{id}",
            at,
            subject=id,
            is_event=True,
        )

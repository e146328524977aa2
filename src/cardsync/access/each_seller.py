"""Runs housekeeping for one seller after the other, with few rows in each transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Seller
from cardsync.platform.database.session import Database
from cardsync.platform.errors import CommandError

T = TypeVar("T")
AT_ONCE: Final = 1_000


async def all_sellers(database: Database) -> list[int]:
    async with database.shared() as session:
        return list(await session.scalars(select(Seller.id).order_by(Seller.id)))


async def in_parts(
    database: Database,
    some: Callable[[AsyncSession, int], Awaitable[int]],
    most: int = AT_ONCE,
) -> int:
    """Call `some` repeatedly for each seller, until a call processes fewer than `most` rows. Each
    call has its own transaction. Return the total number of rows.
    """
    done = 0
    for seller_id in await all_sellers(database):
        part = most
        while part == most:
            async with database.tenant(seller_id) as session:
                part = await some(session, seller_id)
            done += part
    return done


async def expire(
    database: Database,
    table: type[T],
    is_over: ColumnElement[bool],
    end: Callable[[AsyncSession, T], None],
) -> int:
    """Call `end` for each row of the tenant table that fulfills `is_over`. Return the number of
    rows. A row that another transaction has locked, because somebody is deciding about it, is left
    to that transaction.
    """
    rows: Any = table

    async def some(session: AsyncSession, seller_id: int) -> int:
        over = (rows.seller_id == seller_id) & is_over
        if not await session.scalar(select(exists().where(over))):
            return 0
        first = select(table).where(over).order_by(rows.id).limit(AT_ONCE)
        locked = (await session.scalars(first.with_for_update(skip_locked=True))).all()
        for row in locked:
            end(session, row)
        return len(locked)

    return await in_parts(database, some)


async def known_seller(session: AsyncSession, seller_id: int) -> Seller:
    """Return the seller. Raises CommandError if there is none."""
    seller = await session.get(Seller, seller_id)
    if seller is None:
        raise CommandError(f"there is no seller {seller_id}")
    return seller

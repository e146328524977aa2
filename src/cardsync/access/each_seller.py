"""Runs housekeeping for one seller after the other, with few rows in a transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Seller
from cardsync.platform.database.session import Database
from cardsync.platform.errors import CommandError

AT_ONCE: Final = 1_000


async def all_sellers(database: Database) -> list[int]:
    async with database.shared() as session:
        return list(await session.scalars(select(Seller.id).order_by(Seller.id)))


async def in_parts(
    database: Database,
    some: Callable[[AsyncSession, int], Awaitable[int]],
    most: int = AT_ONCE,
) -> int:
    """Call `some` for each seller until it processes fewer than `most` rows, each call in its own
    transaction; return the number of rows.
    """
    done = 0
    for seller_id in await all_sellers(database):
        part = most
        while part == most:
            async with database.tenant(seller_id) as session:
                part = await some(session, seller_id)
            done += part
    return done


async def known_seller(session: AsyncSession, seller_id: int) -> Seller:
    """Raises CommandError."""
    seller = await session.get(Seller, seller_id)
    if seller is None:
        raise CommandError(f"there is no seller {seller_id}")
    return seller

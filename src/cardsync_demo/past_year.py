"""Adds the prices of the past year for the demo's cards, and the listed value of each day."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import text

from cardsync.platform import clock
from cardsync.platform.database.marketplace_time import MARKETPLACE_ZONE
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database
from cardsync.platform.old_data.old_kinds import month_of
from cardsync.platform.settings import Settings
from cardsync_demo import demo_catalog, price_walk

_CARDS: Final = text("""
    SELECT id, listing_id, quantity FROM card WHERE seller_id = :seller AND NOT gone
""")
_COLUMNS: Final = {"price": demo_catalog.PRICE, **demo_catalog.MARKET}
_OBSERVED: Final = text("""
    INSERT INTO price_observation
           (seller_id, card_id, observed_at, quantity, price, market, low, low_with_shipping,
            direct_low)
    VALUES (:seller, :id, :at, :quantity, :price, :market, :low, :low_with_shipping, :direct_low)
    ON CONFLICT DO NOTHING
""")
_OPENED: Final = text("""
    UPDATE card SET created_at = :at WHERE seller_id = :seller AND created_at > :at
""")
# The listed value of a day uses each card's newest observation before the end of that day.
_LISTED: Final = text(queries_of(__package__)["listed"])


async def write(settings: Settings, seller_id: int) -> int:
    """Write the observations of the past year; return their number."""
    assert settings.database_url is not None
    today = _midnight(clock.now())
    async with (
        Database.open(settings.database_url, pool=1, hot_pool=1) as opened,
        opened.tenant(seller_id) as session,
    ):
        for month in sorted({month_of(_seen_at(today, age)).date() for age in price_walk.ages()}):
            await session.execute(
                text("SELECT ensure_price_observation_partition(:month)"), {"month": month}
            )
        rows = {int(row["TCGplayer Id"]): row for row in demo_catalog.whole_rows()}
        cards = (await session.execute(_CARDS, {"seller": seller_id})).all()
        observed = [
            {
                "seller": seller_id,
                "id": card.id,
                "at": _seen_at(today, age),
                "quantity": card.quantity,
                **_amounts(rows[card.listing_id], age),
            }
            for card in cards
            if card.listing_id in rows
            for age in price_walk.ages()
        ]
        if not observed:
            return 0
        await session.execute(_OBSERVED, observed)
        opened_at = _seen_at(today, price_walk.DAYS)
        await session.execute(_OPENED, {"seller": seller_id, "at": opened_at})
        await session.execute(
            _LISTED,
            {
                "seller": seller_id,
                "first": today - timedelta(days=price_walk.DAYS),
                "last": today - timedelta(days=1),
            },
        )
    return len(observed)


def _midnight(now: datetime) -> datetime:
    zone = ZoneInfo(MARKETPLACE_ZONE)
    return datetime.combine(now.astimezone(zone).date(), time(), zone)


def _seen_at(today: datetime, age: int) -> datetime:
    """Return the time of an observation: `age` days ago, before that day's first order."""
    return today - timedelta(days=age, minutes=30)


def _amounts(row: dict[str, str], age: int) -> dict[str, Decimal | None]:
    then = demo_catalog.amounts_at(row, age)
    return {name: then.get(column) for name, column in _COLUMNS.items()}

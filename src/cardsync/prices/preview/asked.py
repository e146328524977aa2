"""Makes previews for web processes, each in its own snapshot. These functions may run in a process
for heavy work (`web/heavy_work.py`), so their arguments and results are pickled.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from cardsync.access.caller import Caller
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.preview import backtest, draft, presets, preview, promotion
from cardsync.prices.preview.backtest import PastAsked
from cardsync.prices.preview.draft import Draft, DraftAsked
from cardsync.prices.preview.presets import Compared
from cardsync.prices.preview.preview import PricesAsked
from cardsync.prices.preview.promotion import PromotionAsked
from cardsync.prices.preview.schemas import Backtest, Preview, PromotionEffect
from cardsync.web.made_files import Made, made


async def asked_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    given: PricesAsked,
) -> Preview:
    """Return the figures of all cards. Raises InvalidRule, InvalidQuery, InvalidPayload."""
    async with preview.reading(database, caller, settings) as reads:
        effect = await preview.priced(reads, caller, given, now)
        return await preview.figures(reads, caller, effect)


async def table_of_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    given: PricesAsked,
    kind: str,
) -> bytes | Made:
    """Return every card as CSV or Parquet. Raise the same errors as `asked_prices`."""
    async with preview.reading(database, caller, settings) as reads:
        effect = await preview.priced(reads, caller, given, now)
        return await asyncio.to_thread(lambda: made(preview.every_card(effect.cards, kind)))


async def compared_presets(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> Compared:
    async with preview.reading(database, caller, settings) as reads:
        return await presets.compare(reads, caller, now, sample=False)


async def sampled_presets(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> Compared:
    """Compare the presets on a sample of the cards if there are many. Like a draft, it holds no
    lease.
    """
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await presets.compare(reads, caller, now, sample=True)


async def drafted_rule(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    given: DraftAsked,
) -> Draft:
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await draft.preview_draft(reads, caller, given, now)


async def drafted_promotion(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    given: PromotionAsked,
) -> PromotionEffect:
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await promotion.preview_promotion(reads, caller, given, now)


async def past_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    given: PastAsked,
) -> Backtest:
    seconds = settings.backtest_seconds
    async with database.bounded(
        caller.seller_id, seconds, snapshot=True, work=Work.PRICES_ALL
    ) as session:
        most = timedelta(seconds=seconds)
        return await backtest.backtest(session, caller, given, now, most)

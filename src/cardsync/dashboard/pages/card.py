"""The page of one card: its printing, prices of all sources with their age, history, places and
lists, and why it asks what it asks.
"""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.response import Template

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.cards.queries import read_card
from cardsync.cards.shown import with_history
from cardsync.dashboard.shell import PageRequest, show
from cardsync.database.session import Database
from cardsync.pricing.receipts.explain import explain_card
from cardsync.settings import Settings
from cardsync.storage import Store

SERIES = {
    "Price": "price",
    "Market": "market_price",
    "Low": "low_price",
    "Direct low": "direct_low",
}


@get("/cards/{card_id:int}", opt=BY_FORM)
async def card_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    card_id: int,
) -> Template:
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        row, history = await read_card(reading, caller, card_id)
    card = with_history(row, history)
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        why: dict[str, Any] | None = None
        if card.contribution is None:
            try:
                why = await explain_card(
                    session, caller.seller_id, store, card.marketplace_id, clock.now()
                )
            except errors.NotFound:
                why = None
    points = [
        (seen.observed_at, {name: getattr(seen, key) for name, key in SERIES.items()})
        for seen in card.history
    ]
    return show(
        request, caller, "card.html", card=card, why=why, points=points, series=list(SERIES)
    )

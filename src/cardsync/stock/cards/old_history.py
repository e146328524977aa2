"""Reads what was observed of a card, with what has moved to the object store."""

from __future__ import annotations

from datetime import datetime

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.old_data.old_kinds import HISTORY
from cardsync.platform.old_data.read_back import Old, rows_of_key
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.stock.cards.queries import read_card
from cardsync.stock.cards.schemas import CardRow, ObservationRow
from cardsync.stock.limits import CARD_HISTORY_WHOLE


async def read_whole_card(
    database: Database, caller: Caller, settings: Settings, now: datetime, card_id: int
) -> tuple[CardRow, list[ObservationRow]]:
    """Return the card, and its observations, newest first. Raises NotFound."""
    most = CARD_HISTORY_WHOLE
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        card, history = await read_card(reading, caller, card_id, most)
    # The connection is given back before the files are read.
    old = Old(database, open_store(settings), caller.seller_id)
    rows = await rows_of_key(old, HISTORY, card_id, most - len(history))
    older = (ObservationRow._make(map(row.get, ObservationRow._fields)) for row in rows)
    return card, [*history, *older]

"""Streams the cards that a filter selects, as a CSV. A card that changes during the download
appears once, with its old or its new values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from psycopg.errors import QueryCanceled

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.kit.row_pages import cut
from cardsync.platform.settings import Settings
from cardsync.stock.cards.card_filter import CardFilter
from cardsync.stock.cards.queries import cards_after
from cardsync.stock.cards.schemas import card_body
from cardsync.stock.search.fields import QueryError
from cardsync.web.csv_parts import PART, Part, part_of, streamed
from cardsync.web.heavy_work import HeavyWork

HEADERS = {"Content-Disposition": 'attachment; filename="cards.csv"'}
_TABLE: Final = CsvTable(
    ("id", "marketplace_id", "product_name", "set_name", "number", "rarity", "game",
     "condition_label", "printing", "language", "quantity", "price", "target_price",
     "market_price", "low_price", "low_price_with_shipping", "direct_low", "status", "locations",
     "lists", "updated_at"),
    locations=lambda card: " ".join(f"{one.code}:{one.quantity}" for one in card.locations),
    lists=lambda card: " ".join(entry.slug for entry in card.lists),
)  # fmt: skip


async def cards_as_csv(
    heavy: HeavyWork, caller: Caller, wanted: CardFilter
) -> AsyncIterator[bytes]:
    """Return the CSV file in parts. Raises InvalidPayload for a search that cannot be parsed."""
    return await streamed(heavy, caller, _TABLE, part_of_cards, wanted)


async def part_of_cards(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    after: int,
    wanted: CardFilter,
) -> Part:
    """Return the next `PART` cards after the id `after`, ordered by id. Raises InvalidPayload."""
    seconds = settings.read_seconds
    try:
        async with database.readings.of(caller.seller_id, seconds) as reading:
            rows = await cards_after(reading, caller, wanted, after, PART + 1)
    except QueryError as e:
        raise errors.InvalidPayload(f"search: {e} (at {e.offset})") from e
    except QueryCanceled as e:
        raise errors.InvalidPayload(
            f"search: it takes longer than {seconds:g} s: narrow the search"
        ) from e
    return await part_of(_TABLE, cut(rows, PART, lambda row: row.id), card_body)

"""Streams the cards that a filter selects, as a CSV.

Each part is a reading of its own, so that a slow reader keeps no connection: a card that changes
meanwhile appears once, as it was or as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from psycopg.errors import QueryCanceled

from cardsync import errors
from cardsync.access.caller import Caller
from cardsync.cards.card_filter import CardFilter
from cardsync.cards.queries import cards_after
from cardsync.cards.shown import CardRow, card_body
from cardsync.database.session import Database
from cardsync.search.fields import QueryError
from cardsync.web.as_csv import streamed

HEADERS = {"Content-Disposition": 'attachment; filename="cards.csv"'}
COLUMNS = (
    "id", "marketplace_id", "product_name", "set_name", "number", "rarity", "game",
    "condition_label", "printing", "language", "quantity", "price", "target_price", "market_price",
    "low_price", "low_price_with_shipping", "direct_low", "status", "locations", "lists",
    "updated_at",
)  # fmt: skip
# Others have their turn between parts, and a part has at most so many cards.
PART = 1_000


async def cards_as_csv(
    database: Database,
    caller: Caller,
    wanted: CardFilter,
    seconds: float,
) -> AsyncIterator[bytes]:
    """Return the file in parts; the first one is there already, so that a search which cannot be
    read is refused before anything is sent. Raises InvalidPayload.
    """

    async def read(last: CardRow | None) -> list[CardRow]:
        async with database.readings.of(caller.seller_id, seconds) as reading:
            return await cards_after(reading, caller, wanted, last.id if last else 0, PART)

    turn = database.file_turn(caller.seller_id)
    try:
        return await streamed(turn, COLUMNS, read, _line, PART)
    except QueryError as e:
        raise errors.InvalidPayload(f"search: {e} (at {e.offset})") from e
    except QueryCanceled as e:
        raise errors.InvalidPayload(
            f"search: it takes longer than {seconds:g} s: narrow the search"
        ) from e


def _line(row: CardRow) -> list[Any]:
    card = card_body(row)
    cells = {name: getattr(card, name) for name in COLUMNS}
    cells["locations"] = " ".join(f"{place.code}:{place.quantity}" for place in card.locations)
    cells["lists"] = " ".join(entry.slug for entry in card.lists)
    return [cells[name] for name in COLUMNS]

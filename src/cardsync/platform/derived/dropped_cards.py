"""Selects the cards that left a seller's stock recently without a sale. Today counts them, and the
search `is:dropped` finds them.
"""

from __future__ import annotations

from typing import Final

from cardsync.platform.database.room_sql import queries_of

DROPPED_DAYS: Final = 7
# A sale up to this many days before the card left the stock explains why it left.
SOLD_DAYS: Final = 14

# A card left the stock at the observation after its newest observation with copies, or else at its
# current state. So a card that files have listed with a quantity of zero for years has left long
# ago. A seller without orders has no dropped cards, because there are no sales to compare with.
DROPPED: Final = queries_of(__package__)["dropped"].format(
    dropped_days=DROPPED_DAYS, counted_days=DROPPED_DAYS + SOLD_DAYS
)

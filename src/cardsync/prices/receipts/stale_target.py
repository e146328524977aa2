"""Finds the reason why a card's stored target differs from the present result of its steps: the
change since the last run that priced all cards.
"""

from __future__ import annotations

from typing import Final

from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.money import dollars, to_units
from cardsync.platform.value_types import NamedRow
from cardsync.prices.receipts.archive import PricedCard
from cardsync.prices.receipts.schemas import StaleReason, StaleTarget

# A deleted rule, a changed setting and a removed pin are visible only in Activity's entries.
_SINCE: Final = queries_of(__package__)["stale_since"]
_SAYS: Final[dict[StaleReason, str]] = {
    "pin_waits": "The pin waits until the card is back in stock; until then {stored}.",
    "rule_changed": "Rules, pins, promotions or settings changed since the last run; {now}.",
    "new_prices": "There are new prices of the card since the last run; {now}.",
    "time_passed": "A day, a promotion or market evidence is another since the last run; {now}.",
}


async def stale_target(session: Source, card: PricedCard, row: NamedRow) -> StaleTarget | None:
    """Return the reason, or None if the stored target equals the steps' result. `row` is the
    engine's row.
    """
    asked: int | None = row["target"]
    stored = None if card.target_price is None else to_units(card.target_price)
    if asked == stored:
        return None
    reason: StaleReason = "pin_waits"
    if row["pin"] is None:
        values = {"seller": card.seller_id, "card": card.id}
        [[rule_changed, new_prices]] = await rows_of(session)(_SINCE, values)
        reason = "rule_changed" if rule_changed else "new_prices" if new_prices else "time_passed"
    said = _SAYS[reason].format(
        stored="the card has no target" if stored is None else f"the target is {dollars(stored)}",
        now="the next run prices nothing"
        if asked is None
        else f"the next run sets {dollars(asked)}",
    )
    return StaleTarget(reason, said)

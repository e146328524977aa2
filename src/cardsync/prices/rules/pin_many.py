"""Pins many cards at their current prices, or unpins them. One Activity entry undoes all
of them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run_all
from cardsync.platform.money import to_units
from cardsync.platform.settings import Settings
from cardsync.prices import standing
from cardsync.prices.decisions.set_targets import retarget
from cardsync.prices.limits import PINNED_AT_ONCE
from cardsync.prices.models import PriceDecision
from cardsync.stock.cards.bulk_selection import Selection, run_picked

KIND: Final = "pricing.pins"
PIN: Final = "pricing.pin"


class Pinned(NamedTuple):
    """The result of a request. `truncated`: the request selects more cards than one request may
    change; the same request again changes the next cards.
    """

    changed: int
    requested: int
    truncated: bool


# A pin is in whole cents: for a fraction of a cent, the marketplace would store another price.
_PIN = queries_of(__package__)["pin"]
_UNPIN = queries_of(__package__)["unpin"]


async def pin_many(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    now: datetime,
    settings: Settings,
) -> Pinned:
    """Pin the cards at their current prices; cards without a price stay as they are. Raises
    OwnerRequired, InvalidPayload.
    """
    return await _change(session, caller, selection, _PIN, "pricing.pinned_many", now, settings)


async def unpin_many(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    now: datetime,
    settings: Settings,
) -> Pinned:
    """Let the rules price the cards again. Raises OwnerRequired, InvalidPayload."""
    return await _change(session, caller, selection, _UNPIN, "pricing.unpinned_many", now, settings)


async def _change(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    statement: str,
    action: str,
    now: datetime,
    settings: Settings,
) -> Pinned:
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    values = {"most": PINNED_AT_ONCE, "now": now}
    found = await run_picked(session, caller, selection, statement, values, settings.read_seconds)
    [(requested, truncated, cards, was, until, became)] = found
    changed = len(cards or ())
    if changed:
        pins = [standing.drop(caller.seller_id, "pin", cards)]
        if statement is _PIN:
            prices, by = [to_units(Decimal(price)) for price in became], caller.actor
            pins.append(standing.put(caller.seller_id, "pin", cards, now, prices=prices, by=by))
        await run_all(session, pins)
        await retarget(session, state, cards, now)
        done = "pinned" if statement is _PIN else "unpinned"
        note(
            session,
            caller,
            action,
            f"{changed:,} cards {done}",
            now,
            undo={
                "kind": KIND,
                "cards": cards,
                "was": was,
                "until": [end and end.isoformat() for end in until],
                "became": became,
            },
        )
    return Pinned(changed, requested, truncated)


def still_applied(marketplace_id: str, until: str) -> str:
    """Return an SQL condition: the applied recommendation that set the card's pin with this end was
    not undone.
    """
    return f"""EXISTS (
        SELECT FROM proposal r JOIN card c ON c.seller_id = :seller AND c.id = r.card_id
         WHERE r.seller_id = :seller AND c.marketplace_id = {marketplace_id}
           AND r.state IN ('accepted', 'auto_applied') AND r.expires_at = {until})"""


# A pin is not restored if it would have ended by now, or if its recommendation was undone.
_AGAIN = f"""
    SELECT w.id, CAST(w.price AS text), CAST(w.until AS text)
      FROM unnest(CAST(:cards AS bigint[]), CAST(CAST(:was AS text[]) AS numeric[]),
                  CAST(CAST(:until AS text[]) AS timestamptz[])) AS w (id, price, until)
     WHERE w.price IS NOT NULL
       AND (w.until IS NULL OR w.until > :now AND {still_applied("w.id", "w.until")})
"""


async def _read(undoing: Undoing) -> Swap:
    entry = undoing.entry
    if "cards" not in entry:
        one = {name: [entry.get(name)] for name in ("was", "became", "until")}
        entry = {"cards": [entry["marketplace_id"]], **one}
    # Older entries have no `until`.
    values = {"until": [], **entry}
    by = {"since": undoing.now.isoformat(), "decided_by": undoing.caller.actor}
    pins = {
        ("pin", card): price and {"price": price}
        for card, price in zip(entry["cards"], entry["became"], strict=True)
    }
    again = await undoing.run(_AGAIN, **values)
    former = {("pin", id): {"price": price, "until": until, **by} for id, price, until in again}
    return Swap(pins, {**dict.fromkeys(pins), **former})


async def _retargeted(undoing: Undoing) -> None:
    state = await sync_state.locked(undoing.session, undoing.seller_id)
    cards = undoing.entry.get("cards") or [undoing["marketplace_id"]]
    await retarget(undoing.session, state, cards, undoing.now)


_UNDO: Final = UndoRows(
    RowImages(
        PriceDecision,
        "price",
        unseen=("until", "since", "decided_by"),
        keys=("kind", "marketplace_id"),
    ),
    "the pin of card {id} was changed in the meantime",
    Lock.STATE,
    read=_read,
    then=_retargeted,
)
_NOW_AT: Final = "card {id} is now pinned at {standing[price]:.2f}"
UNDO: Final = {
    KIND: _UNDO,
    PIN: replace(_UNDO, changed=_NOW_AT, gone="card {id} is no longer pinned"),
}

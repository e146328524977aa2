"""Pins many cards at their current prices, or unpins them. One Activity entry undoes all
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.money import to_units
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonMapping
from cardsync.prices import standing
from cardsync.prices.decisions.set_targets import retarget
from cardsync.prices.limits import PINNED_AT_ONCE
from cardsync.stock.cards.bulk_selection import Selection, run_picked

KIND: Final = "pricing.pins"


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
        await standing.drop(session, caller.seller_id, "pin", cards)
        if statement is _PIN:
            prices = [to_units(Decimal(price)) for price in became]
            await standing.put(
                session, caller.seller_id, "pin", cards, now, prices=prices, by=caller.actor
            )
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


_NOW = """
    SELECT w.id FROM unnest(CAST(:cards AS bigint[]), CAST(:became AS numeric[])) AS w (id, price)
      LEFT JOIN price_decision p
             ON p.seller_id = :seller AND p.kind = 'pin' AND p.marketplace_id = w.id
     WHERE p.price IS DISTINCT FROM w.price LIMIT 1
"""


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
    SELECT w.id, (w.price * 10000)::bigint AS price, w.until
      FROM unnest(CAST(:cards AS bigint[]), CAST(:was AS numeric[]),
                  CAST(:until AS timestamptz[])) AS w (id, price, until)
     WHERE w.price IS NOT NULL
       AND (w.until IS NULL OR w.until > :now AND {still_applied("w.id", "w.until")})
"""


async def undo_pins(
    session: AsyncSession,
    caller: Caller,
    undo: JsonMapping,
    now: datetime,
) -> None:
    """Restore the former pins. Raise ChangedSince if a pin was changed since."""
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    values = {
        "seller": caller.seller_id,
        "cards": undo["cards"],
        "was": _amounts(undo["was"]),
        "became": _amounts(undo["became"]),
        # Older Activity entries lack the ends.
        "until": [end and datetime.fromisoformat(end) for end in undo.get("until", ())],
        "now": now,
    }
    bound = {name: values[name] for name in ("seller", "cards", "became")}
    other = await session.scalar(text(_NOW), bound)
    if other is not None:
        raise errors.ChangedSince(f"the pin of card {other} was changed in the meantime")
    await standing.drop(session, caller.seller_id, "pin", undo["cards"])
    named = {name: values[name] for name in ("seller", "cards", "was", "until", "now")}
    again = (await session.execute(text(_AGAIN), named)).all()
    await standing.put(
        session,
        caller.seller_id,
        "pin",
        [row.id for row in again],
        now,
        prices=[row.price for row in again],
        ends=[row.until for row in again],
        by=caller.actor,
    )
    await retarget(session, state, undo["cards"], now)


def _amounts(texts: Sequence[str | None]) -> list[Decimal | None]:
    return [None if amount is None else Decimal(amount) for amount in texts]

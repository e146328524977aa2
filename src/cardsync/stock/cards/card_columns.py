"""Reads and stores the columns of the cards' table. A member's own choice overrides the shop's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading

COLUMNS: Final = (
    "set",
    "number",
    "rarity",
    "condition",
    "printing",
    "language",
    "quantity",
    "price",
    "target",
    "change",
    "trend",
    "market",
    "low",
    "low_with_shipping",
    "direct_low",
    "location",
    "lists",
    "game",
    "marketplace_id",
    "updated",
    "cost",
    "margin",
    "rule",
    "last_sold",
)
DEFAULT: Final = (
    "condition",
    "quantity",
    "trend",
    "market",
    "price",
    "target",
    "change",
    "location",
)
# The row of the shop's own choice has this value as its member id.
SHOP: Final = 0


def read_columns(given: str) -> tuple[str, ...]:
    """Read column names separated by commas; skip duplicates and unknown names. Pure."""
    named = dict.fromkeys(name.strip() for name in given.split(","))
    return tuple(name for name in named if name in COLUMNS)


_CHOSEN = """
    SELECT columns FROM card_columns
     WHERE seller_id = :seller AND member_id IN (0, :member) ORDER BY member_id DESC LIMIT 1
"""


async def chosen_columns(reading: Reading, caller: Caller) -> tuple[str, ...]:
    """Return the caller's columns, else the shop's, else the defaults."""
    values = {"seller": caller.seller_id, "member": caller.member_id or SHOP}
    rows = await reading.rows(_CHOSEN, values)
    return read_columns(",".join(rows[0][0])) if rows else DEFAULT


_WAS = """
    SELECT columns FROM card_columns
     WHERE seller_id = :seller AND member_id = :member FOR UPDATE
"""
_CHOOSE = """
    INSERT INTO card_columns (seller_id, member_id, columns)
    VALUES (:seller, :member, CAST(:columns AS text[]))
    ON CONFLICT (seller_id, member_id) DO UPDATE SET columns = excluded.columns
"""


async def choose_columns(
    session: AsyncSession,
    caller: Caller,
    columns: Sequence[Any],
    now: datetime,
    *,
    shop: bool = False,
) -> tuple[str, ...]:
    """Store the caller's or, with `shop`, the shop's columns. Raises OwnerRequired,
    InvalidPayload.
    """
    if shop:
        caller.must_be_owner()
    wrong = [name for name in columns if name not in COLUMNS]
    if wrong or not columns:
        problem = f"{str(wrong[0])[:60]!r} is not one of" if wrong else "choose at least one of"
        raise errors.InvalidPayload(f"columns: {problem} {', '.join(COLUMNS)}")
    kept = list(dict.fromkeys(columns))
    member = SHOP if shop else caller.member_id or SHOP
    named = {"seller": caller.seller_id, "member": member}
    was = await session.scalar(text(_WAS), named)
    if was != kept:
        await run(session, _CHOOSE, named | {"columns": kept})
        whose = "everybody" if member == SHOP else caller.actor
        summary = f"card columns for {whose}"
        before = None if was is None else {"columns": was}
        note(session, caller, "cards.columns", summary, now, before=before, after={"columns": kept})
    return tuple(kept)

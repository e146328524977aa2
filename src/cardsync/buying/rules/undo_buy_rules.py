"""Undoes a change of buy rules, in the way of pricing rules (`prices/rules/undo_rules.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.rules.models import StoredBuyRule
from cardsync.platform.database.row_images import RowImages
from cardsync.prices.rules import undo_rules
from cardsync.prices.rules.file_queries import NOBODY

KIND: Final = "buying.rules"
_IMAGES: Final = RowImages(StoredBuyRule, *undo_rules.COLUMNS)
image_of: Final = _IMAGES.of


def undo_of(
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the values with which `undo_change` undoes a change of rules. Pure."""
    return undo_rules.undo_of(before, after, KIND)


async def undo_change(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Undo a change. Raises ChangedSince unless the rules are as the change left them."""
    await undo_rules.undo_images(session, caller, undo, now, _IMAGES, NOBODY)

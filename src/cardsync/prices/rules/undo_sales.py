"""Undoes a change of a sale or of the pricing settings: restores the former values, if nothing has
changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.access.undo_rows import Undoing, UndoRows
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.row_images import SHOP, Image, RowImages
from cardsync.platform.money import usd
from cardsync.platform.value_types import JsonObject
from cardsync.prices.decisions.on_sale import note_until
from cardsync.prices.inputs.rule_rows import SALE_COLUMNS
from cardsync.prices.limits import SALES
from cardsync.prices.models import PricingSale
from cardsync.prices.rules.undo_rules import undo_queried
from cardsync.prices.runs.sale_runs import set_timer
from cardsync.sales.lots.profit_by_day import mark_days

SALE: Final = "pricing.sale"
SETTINGS: Final = "pricing.settings"
IMAGES: Final = RowImages(PricingSale, *(name for name in SALE_COLUMNS if name != "id"))


def undo_of(sale_id: int, was: Image | None, became: Image | None) -> JsonObject:
    """Return the values with which a change is undone; None means that the sale does not exist.
    Pure.
    """
    return {"kind": SALE, "sale": sale_id, "was": was, "became": became}


async def times_changed(session: AsyncSession, state: SyncState, now: datetime) -> None:
    """Update the times that depend on sales: when the price file's fingerprint is outdated, and
    when the timer of sales is due.
    """
    await note_until(session, state.seller_id, now)
    await set_timer(session, state, now)


async def _times_changed(undoing: Undoing) -> None:
    state = await sync_state.locked(undoing.session, undoing.seller_id)
    await times_changed(undoing.session, state, undoing.now)


UNDO_SALE: Final = undo_queried(
    IMAGES,
    (SALES, "promotions, the most allowed"),
    what="sale",
    of_query="promotion",
    key="sale",
    then=_times_changed,
)


def plain_settings(account: Account, names: Iterable[str]) -> JsonObject:
    """Return settings in the form that Activity stores."""
    values = {name: getattr(account, name) for name in names}
    return {name: usd(v) if isinstance(v, Decimal) else v for name, v in values.items()}


async def _fees_changed(undoing: Undoing) -> None:
    if "fee_level" in undoing["became"]:
        await mark_days(undoing.session, undoing.seller_id)


UNDO_SETTINGS: Final = UndoRows(
    RowImages(Account, keys=SHOP),
    "pricing settings: {columns} changed in the meantime",
    Lock.STATE,
    then=_fees_changed,
)

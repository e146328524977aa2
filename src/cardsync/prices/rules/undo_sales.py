"""Undoes a change of a sale or of the pricing settings: restores the former values, if nothing has
changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.platform import errors
from cardsync.platform.database.row_images import Image, RowImages
from cardsync.platform.money import usd
from cardsync.prices.decisions.on_sale import note_until
from cardsync.prices.inputs.rule_file import MONEY_SETTINGS
from cardsync.prices.inputs.rule_rows import SALE_COLUMNS, all_rows
from cardsync.prices.limits import SALES
from cardsync.prices.models import PricingSale
from cardsync.prices.rules.undo_rules import changed_since, need_query
from cardsync.prices.runs.sale_runs import set_timer
from cardsync.sales.lots.profit_by_day import mark_days

SALE: Final = "pricing.sale"
SETTINGS: Final = "pricing.settings"
IMAGES: Final = RowImages(PricingSale, *(name for name in SALE_COLUMNS if name != "id"))


def undo_of(sale_id: int, was: Image | None, became: Image | None) -> dict[str, Any]:
    """Return the values with which `undo_sale` undoes a change; None means that the sale does not
    exist. Pure.
    """
    return {"kind": SALE, "sale": sale_id, "was": was, "became": became}


async def times_changed(session: AsyncSession, state: SyncState, now: datetime) -> None:
    """Update the times that depend on sales: when the price file's fingerprint is outdated, and
    when the timer of sales is due.
    """
    await note_until(session, state.seller_id, now)
    await set_timer(session, state, now)


async def undo_sale(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Restore a sale. Raise ChangedSince if the sale changed meanwhile."""
    id, was, became = (undo[name] for name in ("sale", "was", "became"))
    state = await sync_state.locked(session, caller.seller_id)
    rows = {row.id: row for row in await all_rows(session, PricingSale, caller.seller_id)}
    if was is not None:
        if id not in rows and len(rows) >= SALES:
            raise errors.ChangedSince(f"there are now {SALES} promotions, the most allowed")
        if id not in rows or rows[id].query != was["query"]:
            await need_query(session, caller.seller_id, f"promotion {id}", was["query"])
    otherwise = await IMAGES.swap(session, caller.seller_id, {id: became}, {id: was}, now)
    if otherwise is not None:
        raise changed_since("sale", otherwise, became)
    await times_changed(session, state, now)


def plain_settings(account: Account, names: Iterable[str]) -> dict[str, Any]:
    """Return settings in the form that Activity stores."""
    values = {name: getattr(account, name) for name in names}
    return {name: usd(value) if name in MONEY_SETTINGS else value for name, value in values.items()}


async def undo_settings(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Restore pricing settings. Raise ChangedSince if they changed meanwhile."""
    await sync_state.locked(session, caller.seller_id)
    account = await session.get_one(Account, caller.seller_id, with_for_update=True)
    became, present = undo["became"], plain_settings(account, undo["became"])
    changed = [name for name in became if present[name] != became[name]]
    if changed:
        raise errors.ChangedSince(f"pricing settings: {', '.join(changed)} changed in the meantime")
    for name, value in undo["was"].items():
        amount = name in MONEY_SETTINGS and value is not None
        setattr(account, name, Decimal(value) if amount else value)
    await session.flush()
    if "fee_level" in became:
        await mark_days(session, caller.seller_id)

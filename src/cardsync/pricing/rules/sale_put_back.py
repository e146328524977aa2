"""Undoes a change of a sale or of the pricing settings: it brings back what was before, if nothing
has changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.limits import SALES
from cardsync.money import dollars, to_units
from cardsync.pricing.decisions.on_sale import note_until
from cardsync.pricing.inputs.rule_file import MONEY_SETTINGS
from cardsync.pricing.inputs.rule_queries import need_readable
from cardsync.pricing.inputs.rule_rows import all_rows
from cardsync.pricing.models import PricingSale
from cardsync.pricing.runs.sale_runs import set_timer
from cardsync.seller_state import state as sync_state
from cardsync.seller_state.models import SyncState

SALE: Final = "pricing.sale"
SETTINGS: Final = "pricing.settings"
_COLUMNS: Final = ("name", "priority", "enabled", "query", "adjust_bp")
_TIMES: Final = ("starts_at", "ends_at")
_INSERT = """
    INSERT INTO pricing_sale (seller_id, id, name, priority, enabled, query, adjust_bp, starts_at,
                              ends_at, floor, created_at, updated_at)
    OVERRIDING SYSTEM VALUE
    VALUES (:seller, :id, :name, :priority, :enabled, :query, :adjust_bp, :starts_at,
            :ends_at, :floor, :created_at, :now)
"""
Kept = Mapping[str, Any]


def kept(row: PricingSale) -> dict[str, Any]:
    """Return a sale as a row holds it now, for `undo_of`."""
    floor = None if row.floor is None else dollars(to_units(row.floor))
    times = {name: getattr(row, name).isoformat() for name in (*_TIMES, "created_at")}
    columns = {name: getattr(row, name) for name in _COLUMNS}
    return {"id": row.id, **columns, **times, "floor": floor}


def undo_of(sale_id: int, was: Kept | None, became: Kept | None) -> dict[str, Any]:
    """Return what `put_sale_back` needs of a change; None is a sale that is not there. Pure."""
    return {"kind": SALE, "sale": sale_id, "was": was, "became": became}


async def times_changed(session: AsyncSession, state: SyncState, now: datetime) -> None:
    """Note new times: the export's fingerprint may hold until another time, and the timer goes off
    at another.
    """
    await note_until(session, state.seller_id, now)
    await set_timer(session, state, now)


async def put_sale_back(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Bring a sale back to what it was. Raises ChangedSince if it has changed since."""
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    rows = {row.id: row for row in await all_rows(session, PricingSale, caller.seller_id)}
    row = rows.get(undo["sale"])
    was: Kept | None = undo["was"]
    _need_standing(undo["sale"], undo["became"], row)
    if was is None:
        await session.delete(row)
    else:
        if row is None and len(rows) >= SALES:
            raise errors.ChangedSince(f"there are {SALES} sales by now; that is the most")
        if row is None or row.query != was["query"]:
            await _need_query(session, caller.seller_id, was)
        await _write(session, caller.seller_id, row, was, now)
    await session.flush()
    await times_changed(session, state, now)


async def _write(
    session: AsyncSession,
    seller_id: int,
    row: PricingSale | None,
    was: Kept,
    now: datetime,
) -> None:
    """A sale that was deleted comes back with its id, which receipts name."""
    values = {name: was[name] for name in _COLUMNS}
    values |= {name: datetime.fromisoformat(was[name]) for name in _TIMES}
    values["floor"] = None if was["floor"] is None else Decimal(was["floor"])
    if row is not None:
        for name, value in values.items():
            setattr(row, name, value)
        row.updated_at = now
        return
    values |= {"created_at": datetime.fromisoformat(was["created_at"])}
    await session.execute(
        text(_INSERT),
        {"seller": seller_id, "id": was["id"], "now": now, **values},
    )


def _need_standing(sale_id: int, became: Kept | None, row: PricingSale | None) -> None:
    if became is None:
        if row is not None:
            raise errors.ChangedSince(f"sale {sale_id} “{row.name}” is there again")
        return
    if row is None:
        raise errors.ChangedSince(f"sale {sale_id} “{became['name']}” was deleted since")
    changed = [name for name, value in kept(row).items() if became[name] != value]
    if changed:
        raise errors.ChangedSince(
            f"sale {sale_id} “{row.name}”: {', '.join(changed)} changed since"
        )


async def _need_query(session: AsyncSession, seller_id: int, sale: Kept) -> None:
    try:
        await need_readable(session, seller_id, sale["query"])
    except errors.InvalidQuery as e:
        raise errors.ChangedSince(f"sale {sale['id']}: {e}") from e


def plain_settings(account: Account, names: Iterable[str]) -> dict[str, Any]:
    """Return settings as the activity feed has them."""
    values = {name: getattr(account, name) for name in names}
    return {
        name: dollars(to_units(value)) if name in MONEY_SETTINGS and value is not None else value
        for name, value in values.items()
    }


async def put_settings_back(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Bring pricing settings back. Raises ChangedSince if they have changed since."""
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    account = await session.get_one(Account, caller.seller_id, with_for_update=True)
    became, present = undo["became"], plain_settings(account, undo["became"])
    changed = [name for name in became if present[name] != became[name]]
    if changed:
        raise errors.ChangedSince(f"pricing settings: {', '.join(changed)} changed since")
    for name, value in undo["was"].items():
        amount = name in MONEY_SETTINGS and value is not None
        setattr(account, name, Decimal(value) if amount else value)
    await session.flush()

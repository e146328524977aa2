"""Reads and changes the settings of an account, for its owner.

The cards of a product line that is switched off can still be read, but they are in no price file,
and rows of uploads for them are rejected. The transaction that switches a line also begins a
pricing run, which removes the targets of the line's cards or prices them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import SETTINGS, Account
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.agents.seller_state import state as sync_state
from cardsync.catalog.product_lines import NAMES
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.row_images import SHOP, RowImages
from cardsync.platform.declared_fields import from_text
from cardsync.prices.rules.undo_sales import plain_settings
from cardsync.prices.runs import reprice
from cardsync.shop.accounts import sellers

# The kind of the undo that restores fields of the account (`shop/activity/undo_kinds.py`).
KIND: Final = "account.settings"


async def account_of(source: Source, caller: Caller) -> Account:
    """Return the caller's account. Raises OwnerRequired."""
    caller.must_be_owner()
    [account] = await rows_as(source, Account, caller.seller_id, "")
    return account


async def change(
    session: AsyncSession,
    caller: Caller,
    values: Mapping[str, object],
    lines: Mapping[str, bool],
    now: datetime,
) -> Account:
    """Set fields of the account, and switch product lines on or off. Raises OwnerRequired,
    InvalidPayload.
    """
    caller.must_be_owner()
    changes = {name: _read(name, value) for name, value in values.items()}
    account = await sellers.locked_account(session, caller.seller_id)
    enabled, disabled = switched(account.product_lines, account.disabled_lines, lines)
    switches = set(enabled) != set(account.product_lines)
    changes |= {"product_lines": enabled, "disabled_lines": disabled} if lines else {}
    was = plain_settings(account, changes)
    entry = await sellers.change_seller(session, caller.seller_id, changes, caller.actor)
    if entry is not None:
        became = plain_settings(account, changes)
        those = [name for name in became if was[name] != became[name]]
        entry.undo = {
            "kind": KIND,
            "was": {name: was[name] for name in those},
            "became": {name: became[name] for name in those},
        }
    if switches:
        await _price_anew(session, caller.seller_id, now)
    statement = select(Account).where(Account.seller_id == caller.seller_id)
    return (await session.scalars(statement.execution_options(populate_existing=True))).one()


async def _price_anew(session: AsyncSession, seller_id: int, now: datetime) -> None:
    state = await sync_state.locked(session, seller_id)
    # The export must not answer 304, because the run changes the set of its cards.
    state.export_fingerprint = None
    state.prices_revision += 1
    await reprice.begin(session, seller_id, "settings", now)


async def _by_member(undoing: Undoing) -> Swap:
    # An API key or a token may not change the account, so it may not undo a change either.
    if undoing.caller.member_id is None:
        raise errors.SessionRequired
    return UNDO.stored(undoing.entry)


async def _applied(undoing: Undoing) -> None:
    was, became = undoing["was"], undoing["became"]
    await sellers.apply_settings(undoing.session, undoing.seller_id, was.keys(), undoing.now)
    if set(was.get("product_lines", ())) != set(became.get("product_lines", ())):
        await _price_anew(undoing.session, undoing.seller_id, undoing.now)


UNDO: Final = UndoRows(
    RowImages(Account, keys=SHOP),
    "the account's {columns} changed in the meantime",
    Lock.STATE,
    read=_by_member,
    then=_applied,
)


def _read(name: str, value: object) -> Any:
    setting = SETTINGS.get(name)
    if setting is None or value is None:
        return value
    try:
        return from_text(setting, str(value))
    except ValueError as e:
        raise errors.InvalidPayload(f"{name}: must be {e}") from e


def switched(
    enabled: Sequence[str],
    disabled: Sequence[str],
    lines: Mapping[str, bool],
) -> tuple[list[str], list[str]]:
    """Return the product lines that are on, with the default line first, and the lines that are
    off. Pure.

    Raises InvalidPayload for an unknown line.
    """
    for name in lines:
        if name not in (*NAMES, *enabled, *disabled):
            raise errors.InvalidPayload(f"product_lines: {name[:60]!r} is not a product line")
    on = [name for name in enabled if lines.get(name, True)]
    on += [name for name, wanted in lines.items() if wanted and name not in on]
    off = [name for name in dict.fromkeys([*disabled, *lines]) if not lines.get(name, False)]
    return on, off

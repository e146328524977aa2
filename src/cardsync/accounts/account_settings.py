"""The settings of an account: what the owner changes in, the account as it is then out.

A product line that is switched off keeps its cards: they are readable and blocked, no file of
prices holds them, and rows of them are rejected. A run begins in the same transaction, which
takes their targets away, or prices them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.accounts import sellers
from cardsync.catalog.product_lines import NAMES
from cardsync.pricing.runs import reprice
from cardsync.seller_state import state as sync_state

# What `cardsync admin seller set` reads from texts is read here by the same rules.
_READ_AS_TEXT = (
    "quiet_hours",
    "time_zone",
    "tracking_threshold",
    "listing_url_template",
    "postage_steps",
)


async def account_of(session: AsyncSession, caller: Caller) -> Account:
    """Raises OwnerRequired."""
    caller.must_be_owner()
    return await session.get_one(Account, caller.seller_id)


async def change(
    session: AsyncSession,
    caller: Caller,
    values: Mapping[str, Any],
    lines: Mapping[str, bool],
    now: datetime,
) -> Account:
    """Set fields of the account, and switch product lines. Raises OwnerRequired, InvalidPayload."""
    caller.must_be_owner()
    changes = {name: _read(name, value) for name, value in values.items()}
    account = await sellers.locked_account(session, caller.seller_id)
    enabled, disabled = switched(account.product_lines, account.disabled_lines, lines)
    switches = set(enabled) != set(account.product_lines)
    changes |= {"product_lines": enabled, "disabled_lines": disabled} if lines else {}
    await sellers.change_seller(session, caller.seller_id, changes, caller.actor)
    if switches:
        state = await sync_state.locked(session, caller.seller_id)
        # The set that the export holds is another now; the run says which.
        state.export_fingerprint = None
        await reprice.begin(session, caller.seller_id, "settings", now)
    statement = select(Account).where(Account.seller_id == caller.seller_id)
    return (await session.scalars(statement.execution_options(populate_existing=True))).one()


def _read(name: str, value: Any) -> Any:
    if name == "store_name" and value is not None:
        if len(value.strip()) > limits.STORE_NAME_CHARACTERS:
            raise errors.InvalidPayload(
                f"store_name: has more than {limits.STORE_NAME_CHARACTERS} characters"
            )
        return value.strip() or None
    if name not in _READ_AS_TEXT or value is None:
        return value
    try:
        return sellers.SETTABLE[name](str(value))
    except ValueError as e:
        raise errors.InvalidPayload(f"{name}: takes {e}") from e


def switched(
    enabled: Sequence[str],
    disabled: Sequence[str],
    lines: Mapping[str, bool],
) -> tuple[list[str], list[str]]:
    """The lines that are on, the default still first, and those that are off. Pure.

    Raises InvalidPayload for one that nobody knows.
    """
    for name in lines:
        if name not in (*NAMES, *enabled, *disabled):
            raise errors.InvalidPayload(f"product_lines: {name[:60]!r} is not a product line")
    on = [name for name in enabled if lines.get(name, True)]
    on += [name for name, wanted in lines.items() if wanted and name not in on]
    off = [name for name in dict.fromkeys([*disabled, *lines]) if not lines.get(name, False)]
    return on, off


def line_switches(account: Account) -> list[tuple[str, bool]]:
    """Every line that the account has or may have, those that are on first."""
    names = dict.fromkeys([*account.product_lines, *account.disabled_lines, *NAMES])
    return [(name, name in account.product_lines) for name in names]

"""Appends changes of a customer's store credit to the ledger, and reads the ledger.

The customer's row is locked first, so that two members change the credit one after the other. One
statement adds the entry and changes the balance, so that the balance is always the sum of the
entries.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.limits import STORE_CREDIT_ENTRIES, STORE_CREDIT_MOST
from cardsync.buying.store_credit.buying_customers import customer_row
from cardsync.buying.store_credit.models import Kind, StoreCreditEntry
from cardsync.buying.store_credit.schemas import CreditEntry, CreditSheet
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, rows_as
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import to_units, usd

KIND: Final = "store_credit.entry"
# The format of callers' idempotency keys. The program's own keys contain a space, so that callers
# can't use them.
KEY_FORM: Final = r"^[\x21-\x7e]{1,255}$"
_LOCKED: Final = """
    SELECT credit_balance FROM buying_customer
     WHERE seller_id = :seller AND id = :customer FOR UPDATE
"""
_APPEND: Final = queries_of(__package__)["append_entry"]


async def enter(
    session: AsyncSession,
    caller: Caller,
    customer_id: int,
    kind: Kind,
    amount: Decimal,
    now: datetime,
    *,
    reason: str = "",
    key: str | None = None,
    offer_id: int | None = None,
    takes_back: int | None = None,
) -> tuple[StoreCreditEntry, bool]:
    """Add an entry, and return it with True. If an entry has the same key, return that entry with
    False. `amount` is negative if credit is spent.

    Raises NotFound, StoreCreditTooLow, InvalidPayload.
    """
    values = {"seller": caller.seller_id, "customer": customer_id}
    balance: Decimal | None = await session.scalar(text(_LOCKED), values)
    if balance is None:
        raise errors.NotFound(f"there is no buying customer {customer_id}")
    mine = StoreCreditEntry.seller_id == caller.seller_id
    if key is not None:
        by_key = select(StoreCreditEntry).where(mine, StoreCreditEntry.idempotency_key == key)
        earlier = await session.scalar(by_key)
        if earlier is not None:
            if (earlier.customer_id, earlier.amount) != (customer_id, amount):
                raise errors.InvalidPayload("key: another entry has this key")
            return earlier, False
    after = balance + amount
    if after < 0:
        raise errors.StoreCreditTooLow(f"the customer has {usd(balance)} of store credit")
    if after > STORE_CREDIT_MOST:
        raise errors.InvalidPayload(
            f"amount: a customer can have store credit of at most {STORE_CREDIT_MOST:,}"
        )
    row = values | {
        "kind": kind,
        "amount": amount,
        "offer": offer_id,
        "takes_back": takes_back,
        "reason": reason,
        "key": key,
        "by": caller.actor,
        "now": now,
    }
    entry_id = (await session.execute(text(_APPEND), row)).scalar_one()
    by_id = select(StoreCreditEntry).where(mine, StoreCreditEntry.id == entry_id)
    return (await session.scalars(by_id)).one(), True


async def add_or_spend(
    session: AsyncSession,
    caller: Caller,
    customer_id: int,
    amount: Decimal,
    reason: str,
    key: str,
    now: datetime,
) -> CreditEntry:
    """Add credit by hand, or spend credit at the counter. Raises OwnerRequired, RefusedByGrant and
    the errors of `enter`.
    """
    must_bind_shop(caller)
    if not re.fullmatch(KEY_FORM, key):
        raise errors.InvalidPayload("key: must be 1 to 255 visible ASCII characters")
    exact = cents(amount, "amount")
    if not exact:
        raise errors.InvalidPayload("amount: must not be 0")
    if exact > 0 and not reason.strip():
        raise errors.InvalidPayload("reason: enter why you add credit")
    kind: Kind = "added" if exact > 0 else "spent"
    entry, is_new = await enter(
        session, caller, customer_id, kind, exact, now, reason=reason.strip(), key=key
    )
    if is_new:
        what = f"{usd(abs(exact))} of store credit {kind}"
        note(
            session,
            caller,
            f"store_credit.{kind}",
            f"{what}, customer {customer_id}",
            now,
            after={"balance": usd(entry.balance_after)},
            undo={"kind": KIND, "entry": entry.id},
        )
    return struct_of(CreditEntry, entry, caller)


async def undo_entry(undoing: Undoing) -> None:
    """Undo an entry by adding an entry that reverses it, because entries never change. Raises
    ChangedSince.
    """
    session, caller = undoing.session, undoing.caller
    entry = await session.get(StoreCreditEntry, (caller.seller_id, undoing["entry"]))
    if entry is None:
        raise errors.ChangedSince(f"there is no entry {undoing['entry']} of store credit")
    try:
        await enter(
            session,
            caller,
            entry.customer_id,
            "taken_back",
            -entry.amount,
            undoing.now,
            reason=f"reverses entry {entry.id}",
            takes_back=entry.id,
        )
    except errors.StoreCreditTooLow as e:
        raise errors.ChangedSince("the customer has already spent this credit") from e


async def credit_of(source: Source, caller: Caller, customer_id: int) -> CreditSheet:
    """Return a customer's balance and newest entries. Raises NotFound."""
    values = {"customer": customer_id, "most": STORE_CREDIT_ENTRIES}
    tail = "AND customer_id = :customer ORDER BY id DESC LIMIT :most"
    customer, rows = await each_of(
        source,
        customer_row(source, caller, customer_id),
        rows_as(source, StoreCreditEntry, caller.seller_id, tail, **values),
    )
    entries = [struct_of(CreditEntry, row, caller) for row in rows]
    return CreditSheet(customer_id, usd(customer.credit_balance), entries)


def cents(amount: Decimal, field: str) -> Decimal:
    """Return the amount with two decimals. Raises InvalidPayload if it has fractions of a cent or
    is too large.
    """
    if abs(amount) > STORE_CREDIT_MOST:
        raise errors.InvalidPayload(f"{field}: must be at most {STORE_CREDIT_MOST:,}")
    if to_units(amount) % 100:
        raise errors.InvalidPayload(f"{field}: must have at most two decimals")
    return amount

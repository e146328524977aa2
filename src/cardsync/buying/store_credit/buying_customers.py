"""Stores the customers who sell cards to the shop, with names and contacts, and finds customers by
any part of these.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Final

from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import UndoRows
from cardsync.buying.limits import BUYING_CUSTOMERS_SHOWN, BUYING_NAME_CHARACTERS
from cardsync.buying.store_credit.models import BuyingCustomer
from cardsync.buying.store_credit.schemas import Customer, Customers
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, newest, row_as
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.stock.search.known_names import seen_name

KIND: Final = "buying_customer.changed"
UNDO: Final = UndoRows(
    RowImages(BuyingCustomer, "name", "contact"),
    "buying customer {id} changed in the meantime",
    lock=None,
    key="customer",
    gone="there is no buying customer {id}",
)


async def add_customer(
    session: AsyncSession, caller: Caller, name: str, contact: str, now: datetime
) -> Customer:
    """Add a customer with an entry of the activity feed. Raises InvalidPayload."""
    row = await new_customer(session, caller.seller_id, caller.actor, name, contact, now)
    note(session, caller, "buying_customer.added", f"buying customer {row.id}", now)
    return struct_of(Customer, row, caller)


async def new_customer(
    session: AsyncSession, seller_id: int, by: str, name: str, contact: str, now: datetime
) -> BuyingCustomer:
    """Add a customer, and return the row. Raises InvalidPayload."""
    row = BuyingCustomer(
        seller_id=seller_id,
        name=readable(name, "name", needed=True),
        contact=readable(contact, "contact"),
        credit_balance=Decimal(0),
        created_by=by,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    await session.flush()
    return row


async def change_customer(
    session: AsyncSession,
    caller: Caller,
    customer_id: int,
    name: str | UnsetType,
    contact: str | UnsetType,
    now: datetime,
) -> Customer:
    """Change a customer. Raises BuyersHidden, NotFound, InvalidPayload."""
    caller.must_see_buyers()
    row = await customer_row(session, caller, customer_id, locked=True)
    was = (row.name, row.contact)
    if name is not UNSET:
        row.name = readable(name, "name", needed=True)
    if contact is not UNSET:
        row.contact = readable(contact, "contact")
    became = (row.name, row.contact)
    if became != was:
        row.updated_at = now
        note(
            session,
            caller,
            "buying_customer.changed",
            f"buying customer {row.id}",
            now,
            undo={"kind": KIND, "customer": row.id, "was": was, "became": became},
        )
    return struct_of(Customer, row, caller)


async def find_customers(
    source: Source, caller: Caller, typed: str, before: int | None
) -> Customers:
    """Return a page of the customers with this text in their name or contact, newest first."""
    letters = typed.strip().replace("\0", "\ufffd")
    if letters:
        caller.must_see_buyers()
    like = "%" + re.sub(r"([\\%_])", r"\\\1", letters) + "%"
    most, where = BUYING_CUSTOMERS_SHOWN, "AND (name ILIKE :like OR contact ILIKE :like)"
    page = await newest(source, BuyingCustomer, caller.seller_id, before, most, where, like=like)
    return Customers([struct_of(Customer, row, caller) for row in page.rows], page.next)


async def one_customer(source: Source, caller: Caller, customer_id: int) -> Customer:
    """Return one customer. Raises NotFound."""
    return struct_of(Customer, await customer_row(source, caller, customer_id), caller)


async def customer_row(
    source: Source, caller: Caller, customer_id: int, *, locked: bool = False
) -> BuyingCustomer:
    """Return a customer's row. Raises NotFound."""
    tail = "AND id = :customer FOR UPDATE" if locked else "AND id = :customer"
    row = await row_as(source, BuyingCustomer, caller.seller_id, tail, customer=customer_id)
    if row is None:
        raise errors.NotFound(f"there is no buying customer {customer_id}")
    return row


def readable(given: str, field: str, *, needed: bool = False) -> str:
    """Return a name or contact in its stored form. Raises InvalidPayload."""
    kept = seen_name(given)
    if len(kept) > BUYING_NAME_CHARACTERS:
        raise errors.InvalidPayload(
            f"{field}: must have at most {BUYING_NAME_CHARACTERS} characters"
        )
    if needed and not kept:
        raise errors.InvalidPayload(f"{field}: must not be empty")
    return kept

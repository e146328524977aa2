"""The JSON structs of buying customers and their store credit, and the functions that fill them.
Pure. Amounts are text.
"""

from __future__ import annotations

import msgspec

from cardsync.access.caller import Caller
from cardsync.buying.store_credit.models import BuyingCustomer, Kind, StoreCreditEntry
from cardsync.platform.clock import rfc3339
from cardsync.platform.money import dollars, to_units


class Customer(msgspec.Struct):
    """`credit` is the balance of store credit."""

    id: int
    name: str
    contact: str
    credit: str
    """The balance of store credit, in USD"""
    created_at: str
    updated_at: str


class Customers(msgspec.Struct):
    """`next` is the cursor of the next page, null on the last one."""

    customers: list[Customer]
    next: int | None


class CreditEntry(msgspec.Struct):
    """`kind` is offer, spent, added or taken_back; `amount` is negative where credit went. `reason`
    is empty for a caller who may not see buyers.
    """

    id: int
    customer_id: int
    kind: Kind
    """offer, spent, added or taken_back"""
    amount: str
    """In USD; negative where credit was spent"""
    balance_after: str
    offer_id: int | None
    takes_back: int | None
    """The entry that it takes back; null: none"""
    reason: str
    created_by: str
    created_at: str


class CreditSheet(msgspec.Struct):
    """The newest entries, newest first; `balance` is the sum of all."""

    customer_id: int
    balance: str
    entries: list[CreditEntry]
    """The changes of the balance, newest first"""


def customer_body(caller: Caller, row: BuyingCustomer) -> Customer:
    return Customer(
        row.id,
        caller.buyer(row.name) or "",
        caller.buyer(row.contact) or "",
        dollars(to_units(row.credit_balance)),
        rfc3339(row.created_at),
        rfc3339(row.updated_at),
    )


def entry_body(caller: Caller, row: StoreCreditEntry) -> CreditEntry:
    return CreditEntry(
        row.id,
        row.customer_id,
        row.kind,
        dollars(to_units(row.amount)),
        dollars(to_units(row.balance_after)),
        row.offer_id,
        row.takes_back,
        caller.buyer(row.reason) or "",
        row.created_by,
        rfc3339(row.created_at),
    )

"""The JSON structs of buying customers and their store credit.
Pure. Amounts are text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from cardsync.access.caller import BuyerText
from cardsync.buying.store_credit.models import Kind
from cardsync.platform.kit.struct_rows import Column, Usd


class Customer(msgspec.Struct):
    """A customer who sells cards to the shop. `credit` is the balance of the store credit."""

    id: int
    name: BuyerText
    contact: BuyerText
    credit: Annotated[Usd, Column("credit_balance")]
    """The balance of store credit, in USD"""
    created_at: datetime
    updated_at: datetime


class Customers(msgspec.Struct):
    """A page of customers. `next` is the cursor of the next page; null on the last page."""

    customers: list[Customer]
    next: int | None


class CreditEntry(msgspec.Struct):
    """A change of a customer's credit. `kind` is offer, spent, added or taken_back; `amount` is
    negative if credit was spent. `reason` is empty for a caller who may not see buyers.
    """

    id: int
    customer_id: int
    kind: Kind
    """offer, spent, added or taken_back"""
    amount: Usd
    """The change of the balance, in USD; negative if credit was spent"""
    balance_after: Usd
    offer_id: int | None
    takes_back: int | None
    """The entry that this entry reverses, or null"""
    reason: BuyerText
    created_by: str
    created_at: datetime


class CreditSheet(msgspec.Struct):
    """A customer's credit: the newest entries, newest first, and the balance, which is the sum of
    all entries.
    """

    customer_id: int
    balance: str
    entries: list[CreditEntry]
    """The changes of the balance, newest first"""

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
    """`credit` is the balance of store credit."""

    id: int
    name: BuyerText
    contact: BuyerText
    credit: Annotated[Usd, Column("credit_balance")]
    """The balance of store credit, in USD"""
    created_at: datetime
    updated_at: datetime


class Customers(msgspec.Struct):
    """`next` is the cursor of the next page, null on the last one."""

    customers: list[Customer]
    next: int | None


class CreditEntry(msgspec.Struct):
    """`kind` is offer, spent, added or taken_back; `amount` is negative if credit was spent.
    `reason` is empty for a caller who may not see buyers.
    """

    id: int
    customer_id: int
    kind: Kind
    """offer, spent, added or taken_back"""
    amount: Usd
    """In USD; negative where credit was spent"""
    balance_after: Usd
    offer_id: int | None
    takes_back: int | None
    """The entry that it takes back; null: none"""
    reason: BuyerText
    created_by: str
    created_at: datetime


class CreditSheet(msgspec.Struct):
    """The newest entries, newest first; `balance` is the sum of all."""

    customer_id: int
    balance: str
    entries: list[CreditEntry]
    """The changes of the balance, newest first"""

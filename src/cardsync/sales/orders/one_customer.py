"""Reads one customer (orders, refunds and the seller's note), writes the note, and lists repeat
refunders.

A customer's key is part of web addresses, so it is a hash and never the name. The key of a note is
a SHA-256 hash of the name, because PostgreSQL's hash function may change with its version.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Final

from msgspec import UNSET
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.marketplace_time import midnight
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.sales.limits import ORDERS_OF_CUSTOMER, REFUNDERS_SHOWN
from cardsync.sales.orders.customer_list import key_of
from cardsync.sales.orders.customer_sums import REFUNDS, STALE
from cardsync.sales.orders.models import BUYER_HASH, BUYER_KEY, CustomerNote
from cardsync.sales.orders.returns_schemas import (
    CustomerInFull,
    OrderOfCustomerShown,
    RefunderShown,
)
from cardsync.sales.orders.schemas import earned_fields, money

KIND: Final = "customer.note"
# The number of refunded orders that makes a customer a repeat refunder.
REPEAT_REFUNDS: Final = 2


# The orders of a customer: `_KNOWN` finds them in `customer_order`; while a day of orders is
# outdated, `_LOOKED_FOR` searches all orders.
_KNOWN: Final = """
    customer_order m JOIN orders ON orders.seller_id = :seller AND orders.id = m.order_id
     WHERE m.seller_id = :seller AND m.name = :name
"""
_LOOKED_FOR: Final = f"orders WHERE orders.seller_id = :seller AND {BUYER_HASH} = :name"
_OUT_OF_DATE: Final = f"SELECT {STALE}"
_SUMS: Final = queries_of(__package__)["customer_sums"].format(
    buyer_key=BUYER_KEY,
    first_midnight=midnight("min(mine.order_date) FILTER (WHERE mine.placed_at_given IS NULL)"),
    last_midnight=midnight("max(mine.order_date) FILTER (WHERE mine.placed_at_given IS NULL)"),
)
_ORDERS: Final = """
    SELECT id, order_number, order_date, status_group, total_amt, refund_amt, buyer_name
      FROM orders WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
     ORDER BY order_date DESC NULLS LAST, id DESC
"""
_EARNED: Final = """
    SELECT pieces, costed, profit FROM customer_sum WHERE seller_id = :seller AND name = :name
"""
_NOTE: Final = "SELECT note, updated_at FROM customer_note WHERE seller_id = :seller AND key = :key"


async def read_customer(reading: Reading, caller: Caller, key: str) -> CustomerInFull:
    """Read a customer with orders, refunds and the seller's note. Raises NotFound."""
    values = {"seller": caller.seller_id, "name": _name_of(key)}
    [[stale]], [sums], kept = await reading.together(
        [_OUT_OF_DATE, _SUMS.format(orders=_KNOWN), _EARNED],
        values,
    )
    earned = kept[0] if kept else (None, None, None)
    if stale:
        [sums] = await reading.rows(_SUMS.format(orders=_LOOKED_FOR), values)
    count, total, newest, name, first, last, ids = sums
    # Orders without a buyer's name belong to no customer.
    if not name:
        raise _unknown(key)
    found, written = await reading.together(
        [_ORDERS, _NOTE], {"seller": caller.seller_id, "ids": ids, "key": _note_key(name)}
    )
    refunds = [row[5] for row in found if row[5] is not None]
    noted, noted_at = written[0] if written else ("", None)
    return CustomerInFull(
        key=key,
        buyer_name=caller.buyer(next(row[6] for row in found if row[0] == newest)) or "",
        order_count=count,
        first_order_at=first,
        last_order_at=last,
        lifetime_total=money(caller.revenue(total)) or UNSET,
        **earned_fields(caller.revenue(earned)),
        returning=count > 1,
        refunded_orders=len(refunds),
        refunded_total=money(caller.revenue(sum(refunds, Decimal(0)))) or UNSET,
        repeat_refunder=len(refunds) >= REPEAT_REFUNDS,
        note=caller.buyer(noted) or "",
        note_updated_at=caller.buyer(noted_at),
        orders=[
            OrderOfCustomerShown(id, number, day, status, money(total), money(refund))
            for id, number, day, status, total, refund, _ in found[:ORDERS_OF_CUSTOMER]
        ],
    )


_NAME: Final = f"SELECT {BUYER_KEY} FROM {{orders}} LIMIT 1"
_WRITE: Final = """
    INSERT INTO customer_note (seller_id, key, note, updated_at)
    VALUES (:seller, :key, :note, :now)
    ON CONFLICT (seller_id, key) DO UPDATE SET note = excluded.note, updated_at = :now
"""
_ERASE: Final = "DELETE FROM customer_note WHERE seller_id = :seller AND key = :key"


async def write_note(
    session: AsyncSession,
    caller: Caller,
    key: str,
    written: object,
    now: datetime,
) -> str:
    """Write the note on a customer; an empty text removes the note. Raises BuyersHidden, NotFound,
    InvalidPayload.
    """
    caller.must_see_buyers()
    kept = _read_note(written)
    await locked(session, Lock.SHOP, caller.seller_id)
    values = {"seller": caller.seller_id, "name": _name_of(key)}
    known = await session.scalar(text(_OUT_OF_DATE), values) is False
    orders = _KNOWN if known else _LOOKED_FOR
    name = await session.scalar(text(_NAME.format(orders=orders)), values)
    if not name:
        raise _unknown(key)
    was = await _note_of(session, caller, _note_key(name))
    if was != kept:
        await _store(session, caller, _note_key(name), kept, now)
        note(
            session,
            caller,
            "customer.noted",
            f"the note on customer {key}",
            now,
            before={"note": was},
            after={"note": kept},
            undo={"kind": KIND, "key": _note_key(name).hex(), "was": was, "became": kept},
        )
    return kept


async def _keyed(undoing: Undoing) -> Swap:
    return UNDO.stored({**undoing.entry, "key": f"\\x{undoing['key']}"})


UNDO: Final = UndoRows(
    RowImages(CustomerNote, "note", keys=("key",)),
    "the note on this customer changed in the meantime",
    key="key",
    read=_keyed,
)


_AGAIN: Final = "refunded_orders >= :least"
_MOST_FIRST: Final = "ORDER BY refunded_orders DESC, refunded_total DESC, name LIMIT :most"
_REFUNDERS: Final = f"""
    SELECT c.name, orders.buyer_name, c.refunded_orders, c.refunded_total
      FROM (SELECT * FROM {{sums}} {_MOST_FIRST}) c
      JOIN orders ON orders.seller_id = :seller AND orders.id = c.newest_refunded
     ORDER BY c.refunded_orders DESC, c.refunded_total DESC, c.name
"""
_KEPT: Final = f"customer_sum WHERE seller_id = :seller AND {_AGAIN}"
# Few orders are refunded, and ix_orders_refunded contains only these.
_COUNTED: Final = f"""
    (SELECT {BUYER_HASH} AS name, {REFUNDS}
       FROM orders WHERE seller_id = :seller AND refund_amt IS NOT NULL AND {BUYER_KEY} <> ''
      GROUP BY 1) refunded WHERE {_AGAIN}
"""


async def repeat_refunders(reading: Reading, caller: Caller) -> list[RefunderShown]:
    """Return the customers with several refunded orders, most refunded orders first."""
    values = {
        "seller": caller.seller_id,
        "least": REPEAT_REFUNDS,
        "most": REFUNDERS_SHOWN,
    }
    [[stale]], found = await reading.together(
        [_OUT_OF_DATE, _REFUNDERS.format(sums=_KEPT)],
        values,
    )
    if stale:
        found = await reading.rows(_REFUNDERS.format(sums=_COUNTED), values)
    return [
        RefunderShown(
            key_of(name), caller.buyer(buyer) or "", refunds, money(caller.revenue(total)) or UNSET
        )
        for name, buyer, refunds, total in found
    ]


async def _note_of(session: AsyncSession, caller: Caller, key: bytes) -> str:
    values = {"seller": caller.seller_id, "key": key}
    row = (await session.execute(text(_NOTE), values)).first()
    return row.note if row else ""


async def _store(
    session: AsyncSession,
    caller: Caller,
    key: bytes,
    written: str,
    now: datetime,
) -> None:
    values = {"seller": caller.seller_id, "key": key, "note": written, "now": now}
    await run(session, _WRITE if written else _ERASE, values)


def _read_note(value: object) -> str:
    if not isinstance(value, str):
        raise errors.InvalidPayload("note: must be text")
    kept = value.strip()
    if len(kept) > limits.CUSTOMER_NOTE_CHARACTERS:
        raise errors.InvalidPayload(
            f"note: must have at most {limits.CUSTOMER_NOTE_CHARACTERS} characters"
        )
    return kept


def _note_key(name: str) -> bytes:
    return sha256(name.encode()).digest()


def _name_of(key: str) -> int:
    """Return the hash that a key encodes. Raises NotFound."""
    try:
        number = int(key, 16) if len(key) == 16 else None
    except ValueError:
        number = None
    if number is None or key_of(number) != key:
        raise _unknown(key)
    return number - 2**64 if number >= 2**63 else number


def _unknown(key: str) -> errors.NotFound:
    return errors.NotFound(f"there is no customer {key}")

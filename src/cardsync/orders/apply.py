"""Applying the rows of one order-data upload, in the caller's transaction: a typed frame in, how many rows were skipped and written out.

Rows are copied into a temp table and joined with what is stored; a statement a table writes merged rows, and only those that differ.
Nobody else writes what an upload writes: the caller holds the seller's stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.db import copy_in, encode, run
from cardsync.orders import items
from cardsync.orders.rows import KINDS, Rows
from cardsync.orders.shipping_type import shipping_type_sql

# So many order numbers are looked up one by one; for more, all of the seller's orders are read once. A join that the planner is free
# in may take an index that begins with the seller alone, for each row: it thinks that a new seller has no rows yet.
LOOKED_UP = 5_000
# What a refund row's amounts are called on the order.
REFUND_AMOUNTS = {
    "product_amt": "refund_product_amt", "shipping_amt": "refund_shipping_amt", "total_amt": "refund_amt",
}  # fmt: skip


@dataclass(frozen=True)
class Applied:
    """`skipped` rows name an unknown order; `written` counts rows of our tables, none when everything was known."""

    skipped: int
    written: int


async def apply(session: AsyncSession, seller_id: int, kind: str, rows: Rows, now: datetime) -> Applied:
    threshold: Decimal = await session.scalar(
        text("SELECT tracking_threshold FROM account WHERE seller_id = :seller"), {"seller": seller_id}
    )
    await session.execute(text("SET LOCAL enable_nestloop = off"))
    await session.execute(text("SET LOCAL work_mem = '64MB'"))
    await session.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))
    await load(session, kind, rows)
    values = {"seller": seller_id, "now": now, "threshold": threshold}
    known = "SELECT * FROM orders WHERE seller_id = :seller"
    if rows.frame.height <= LOOKED_UP:
        known += " AND order_number = ANY(:numbers)"
        values["numbers"] = rows.frame["order_number"].unique().to_list()
    if kind == "items":
        skipped, written = await items.apply(session, rows, known, values)
        return Applied(skipped, written)
    skipped = await _unknown(session, known, values) if kind == "shipping" else 0
    written = await run(session, UPSERTS[kind](rows, known), values)
    return Applied(skipped, written)


async def load(session: AsyncSession, kind: str, rows: Rows) -> None:
    types = {"row": "integer", "order_number": "text", **{name: column.sql for name, column in KINDS[kind].items()}}
    columns = ", ".join(f"{name} {types.get(name, 'boolean')}" for name in rows.frame.columns)
    await session.execute(text(f"CREATE TEMP TABLE incoming ({columns}) ON COMMIT DROP"))
    data = await asyncio.to_thread(encode, rows.frame)
    await copy_in(session, "incoming", rows.frame.columns, data)


async def _unknown(session: AsyncSession, known: str, values: Mapping[str, Any]) -> int:
    statement = f"SELECT count(*) FROM incoming WHERE order_number NOT IN (SELECT order_number FROM ({known}) o)"
    bound = {name: value for name, value in values.items() if f":{name}" in statement}
    return int((await session.execute(text(statement), bound)).scalar_one())


def merged(rows: Rows, name: str, stored: str) -> str:
    """What the column `stored` becomes: the row's own value where it carries one, null included."""
    return f"i.{name}" if rows.always(name) else f"CASE WHEN i.has_{name} THEN i.{name} ELSE o.{stored} END"


# What the shipping type is decided by.
DECIDING = ("shipping_method", "tracking_number", "total_amt")
AMOUNTS = frozenset([*REFUND_AMOUNTS, *REFUND_AMOUNTS.values(), "product_weight"])


def upsert_sql(columns: Mapping[str, str], source: str) -> str:
    """Write `columns` (name → merged value, over `i` incoming and `o` stored) of new orders, and of those where any differs."""
    new, old = _sides(columns, "m."), _sides(columns, "m.old_")
    method, tracking, total = (f"m.{name}" if name in columns else f"m.old_{name}" for name in DECIDING)
    chosen = [f"{value} AS {name}" for name, value in columns.items()]
    chosen += [f"o.{name} AS old_{name}" for name in dict.fromkeys((*columns, *DECIDING))]
    return f"""
        INSERT INTO orders (seller_id, order_number, {"".join(f"{name}, " for name in columns)} shipping_type, created_at, updated_at)
        SELECT :seller, m.order_number, {"".join(f"m.{name}, " for name in columns)}
               {shipping_type_sql(method, tracking, total, ":threshold")}, :now, :now
          FROM (SELECT i.order_number, o.id AS known, {", ".join(chosen)} FROM {source}) m
         WHERE m.known IS NULL {f"OR ({new}) IS DISTINCT FROM ({old})" if columns else ""}
        ON CONFLICT (seller_id, order_number) DO UPDATE
           SET {"".join(f"{name} = excluded.{name}, " for name in columns)} shipping_type = excluded.shipping_type, updated_at = :now
    """


def _sides(columns: Iterable[str], prefix: str) -> str:
    """Equal amounts of another scale differ: they are read back with it."""
    scales = [f"scale({prefix}{name})" for name in columns if name in AMOUNTS]
    return ", ".join([*(f"{prefix}{name}" for name in columns), *scales])


def orders_sql(rows: Rows, known: str) -> str:
    named = {
        name: "placed_at_given" if name == "order_placed_at" else name for name in KINDS["orders"] if rows.carries(name)
    }
    return upsert_sql({stored: merged(rows, name, stored) for name, stored in named.items()}, _new_too(known))


def refunds_sql(rows: Rows, known: str) -> str:
    """A refund's amounts are the refunded ones; only an order that it creates takes them as its own too."""
    columns = {}
    for name in filter(rows.carries, KINDS["refunds"]):
        if name in REFUND_AMOUNTS:
            columns[REFUND_AMOUNTS[name]] = merged(rows, name, REFUND_AMOUNTS[name])
            columns[name] = f"CASE WHEN o.id IS NULL THEN i.{name} ELSE o.{name} END"
        elif name == "buyer_name":
            columns[name] = (
                "CASE WHEN o.buyer_name <> '' THEN o.buyer_name ELSE coalesce(i.buyer_name, o.buyer_name) END"
            )
        elif name == "order_date":
            columns[name] = "coalesce(o.order_date, i.order_date)"
        else:
            columns[name] = merged(rows, name, name)
    return upsert_sql(columns, _new_too(known))


def shipping_sql(rows: Rows, known: str) -> str:
    named = {
        name: "shipping_item_count" if name == "item_count" else name
        for name in KINDS["shipping"]
        if rows.carries(name)
    }
    source = f"incoming i JOIN ({known}) o ON o.order_number = i.order_number"
    return upsert_sql({stored: merged(rows, name, stored) for name, stored in named.items()}, source)


def _new_too(known: str) -> str:
    return f"incoming i LEFT JOIN ({known}) o ON o.order_number = i.order_number"


UPSERTS = {"orders": orders_sql, "refunds": refunds_sql, "shipping": shipping_sql}

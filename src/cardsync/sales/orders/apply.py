"""Applies the rows of one order-data upload in the caller's transaction, and counts skipped and
written rows.

Rows are copied into a temp table and joined with the stored rows; one statement per table writes
the merged rows that differ. The caller has locked the seller's order uploads (`ingest.py`), so no
other process writes these rows at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import cast

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.copy import new_table
from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash, planned_each_time
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.sales.lots.stale_cards import mark_sold
from cardsync.sales.orders import items
from cardsync.sales.orders.refunds import refund_amount_sql
from cardsync.sales.orders.rows import KINDS, Rows
from cardsync.sales.orders.search_parts import forget_parts
from cardsync.sales.orders.shipping_type import shipping_type_sql

# Up to this many order numbers are looked up one by one; for more, all of the seller's orders are
# read once. Without these limits, the planner may scan all of the seller's index entries for each
# row, because it assumes that a new seller has no rows.
LOOKED_UP = 5_000
# The columns of `orders` for the amounts of a refund row.
REFUND_AMOUNTS = {
    "product_amt": "refund_product_amt",
    "shipping_amt": "refund_shipping_amt",
    "total_amt": "refund_total_given",
}
# `refund_amt` is computed from these columns and the order's total.
_DECIDE_REFUND = {
    "refund_total_given": "numeric",
    "refund_product_amt": "numeric",
    "refund_shipping_amt": "numeric",
    "refund_type": "text",
}


@dataclass(frozen=True)
class Applied:
    """`skipped` counts upload rows of unknown orders. `written` counts the database rows written,
    and is zero if all values were stored already.
    """

    skipped: int
    written: int


async def apply(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    rows: Rows,
    now: datetime,
) -> Applied:
    threshold: Decimal = await session.scalar(
        text("SELECT tracking_threshold FROM account WHERE seller_id = :seller"),
        {"seller": seller_id},
    )
    await session.execute(text(joined_by_hash()))
    await load(session, kind, rows)
    values: dict[str, object] = {"seller": seller_id, "now": now, "threshold": threshold}
    narrowed = ""
    if rows.frame.height <= LOOKED_UP:
        narrowed = "AND o.order_number = ANY(:numbers)"
        values["numbers"] = rows.frame["order_number"].unique().to_list()
    if kind == "items":
        return Applied(*await items.apply(session, rows, values))
    # Uploads of items return above, because this setting would plan the foreign key check of each
    # item again.
    await session.execute(text(planned_each_time()))
    known = f"SELECT o.order_number FROM orders o WHERE o.seller_id = :seller {narrowed}"
    skipped = written = 0
    if kind == "shipping":
        skipped = await _unknown(session, known, values)
    else:
        written = await run(session, insert_sql(new_columns(rows, kind), known), values)
    columns = merged_columns(rows, kind)
    if columns and skipped + written < rows.frame.height:
        await _mark_former(session, columns, narrowed, values)
        written += await run(session, update_sql(columns, narrowed), values)
    if kind != "shipping":
        await _mark_written(session, rows, written, narrowed, values)
    return Applied(skipped, written)


_DATES = """
    SELECT DISTINCT o.order_date FROM incoming i JOIN orders o ON o.order_number = i.order_number
     WHERE o.seller_id = :seller {narrowed} AND {which}
"""

_DAYS = "SELECT unnest(CAST(:days AS date[])) AS order_date"

# The stored orders whose date or whose buyer's name the upload changes.
_FORMER = """
    SELECT o.id, o.order_date, {moved} AS moved, {renamed} AS renamed
      FROM incoming i JOIN orders o ON o.order_number = i.order_number
     WHERE o.seller_id = :seller {narrowed} AND ({moved} OR {renamed})
"""

# The cards of the written orders: a cancelled or refunded order gives its copies back to lots.
_SOLD = """
    SELECT x.sku_id FROM orders o JOIN order_item x ON x.seller_id = :seller AND x.order_id = o.id
     WHERE o.seller_id = :seller {narrowed} AND o.updated_at = :now
"""


async def _mark_former(
    session: AsyncSession,
    columns: Mapping[str, str],
    narrowed: str,
    values: Mapping[str, object],
) -> None:
    """Mark the former days of orders, and remove the parts with former buyers' names. One statement
    finds both, because it reads all orders of the shop for a large upload.
    """
    moved, renamed = (
        f"{columns[name]} IS DISTINCT FROM o.{name}" if name in columns else "false"
        for name in ("order_date", "buyer_name")
    )
    if moved == renamed:
        return
    statement = _FORMER.format(moved=moved, renamed=renamed, narrowed=narrowed)
    found = (await session.execute(text(statement), _bound(statement, values))).all()
    if days := list({row.order_date for row in found if row.moved}):
        await mark_changed(session, _DAYS, {"seller": values["seller"], "days": days})
    await forget_parts(
        session, cast(int, values["seller"]), [row.id for row in found if row.renamed]
    )


async def _mark_written(
    session: AsyncSession,
    rows: Rows,
    written: int,
    narrowed: str,
    values: dict[str, object],
) -> None:
    """Mark the days and cards of the orders that this transaction wrote, whose `updated_at` is
    `:now`.
    """
    if not written:
        return
    found = _DATES.format(narrowed=narrowed, which="o.updated_at = :now")
    if written == rows.frame.height and rows.always("order_date"):
        found = "SELECT DISTINCT order_date FROM incoming"
    await mark_changed(session, found, values)
    await mark_sold(session, _SOLD.format(narrowed=narrowed), values)


async def load(session: AsyncSession, kind: str, rows: Rows) -> None:
    types = {
        "row": "integer",
        "order_number": "text",
        **{name: column.sql for name, column in KINDS[kind].items()},
    }
    await new_table(
        session, "incoming", rows.frame, dict.fromkeys(rows.frame.columns, "boolean") | types
    )


def as_indexed(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows by status and then newest date, as the indexes are sorted, so that the rows of
    one upload are adjacent in each index.
    """
    falling = {
        name: name == "order_date" for name in ("status", "order_date") if name in frame.columns
    }
    if not falling:
        return frame
    return frame.sort(
        *falling,
        descending=list(falling.values()),
        nulls_last=True,
        maintain_order=True,
    )


async def _unknown(session: AsyncSession, known: str, values: Mapping[str, object]) -> int:
    statement = f"SELECT count(*) FROM incoming WHERE order_number NOT IN ({known})"
    found = await session.execute(text(statement), _bound(statement, values))
    return int(found.scalar_one())


def _bound(statement: str, values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if f":{name}" in statement}


AMOUNTS = frozenset([*REFUND_AMOUNTS, *REFUND_AMOUNTS.values(), "refund_amt", "product_weight"])


def insert_sql(columns: Mapping[str, str], known: str) -> str:
    """Return the statement that inserts the orders that are not stored yet. `columns` maps each
    column to an expression over `i`, the table `incoming`.
    """
    decided = shipping_type_sql(
        "NULL::text",
        "NULL::text",
        columns.get("total_amt", "NULL::numeric"),
        ":threshold",
    )
    return f"""
        INSERT INTO orders (seller_id, order_number,
               {"".join(f"{name}, " for name in columns)} shipping_type, created_at, updated_at)
        SELECT :seller, i.order_number, {"".join(f"{value}, " for value in columns.values())}
               {decided}, :now, :now
          FROM incoming i LEFT JOIN ({known}) o ON o.order_number = i.order_number
         WHERE o.order_number IS NULL
    """


def update_sql(columns: Mapping[str, str], narrowed: str) -> str:
    """Return the statement that updates stored orders if any of `columns` differs. `columns` maps
    each column to an expression over `i`, the table `incoming`, and `o`, the stored order.
    """
    method, tracking, total = (
        columns.get(name, f"o.{name}")
        for name in ("shipping_method", "tracking_number", "total_amt")
    )
    decided = shipping_type_sql(method, tracking, total, ":threshold")
    return f"""
        UPDATE orders o
           SET {"".join(f"{name} = {value}, " for name, value in columns.items())}
               shipping_type = {decided}, updated_at = :now
          FROM incoming i
         WHERE o.seller_id = :seller {narrowed} AND o.order_number = i.order_number
           AND ({_sides(columns)})
               IS DISTINCT FROM ({_sides({name: f"o.{name}" for name in columns})})
    """


def _sides(columns: Mapping[str, str]) -> str:
    """Return the values to compare, with the scale of each amount: 1.5 and 1.50 differ, because
    the API returns amounts with their stored scale.
    """
    scales = [f"scale({value})" for name, value in columns.items() if name in AMOUNTS]
    return ", ".join([*columns.values(), *scales])


# For each kind of upload, the fields whose column in `orders` has another name.
STORED = {
    "orders": {"order_placed_at": "placed_at_given"},
    "refunds": REFUND_AMOUNTS,
    "shipping": {"item_count": "shipping_item_count"},
}


def merged_columns(rows: Rows, kind: str) -> dict[str, str]:
    """Return the new values of a stored order's columns. A field that the upload's row contains
    replaces the stored value, even with null.
    """
    columns = {}
    for name in filter(rows.carries, KINDS[kind]):
        stored = STORED[kind].get(name, name)
        columns[stored] = (
            f"i.{name}"
            if rows.always(name)
            else f"CASE WHEN i.has_{name} THEN i.{name} ELSE o.{stored} END"
        )
        # A refund sets the buyer and the date only if the order lacks them.
        if kind == "refunds" and name == "buyer_name":
            columns[name] = (
                "CASE WHEN o.buyer_name <> '' THEN o.buyer_name"
                " ELSE coalesce(i.buyer_name, o.buyer_name) END"
            )
        elif kind == "refunds" and name == "order_date":
            columns[name] = "coalesce(o.order_date, i.order_date)"
    if kind == "refunds":
        given = (columns.get(name, f"o.{name}") for name in _DECIDE_REFUND)
        columns["refund_amt"] = refund_amount_sql("o.total_amt", *given)
    elif kind == "orders" and "total_amt" in columns:
        # The amount of a full refund without a total is the order's total.
        decided = refund_amount_sql(columns["total_amt"], *(f"o.{name}" for name in _DECIDE_REFUND))
        columns["refund_amt"] = f"CASE WHEN o.refund_amt IS NOT NULL THEN {decided} END"
    return columns


def new_columns(rows: Rows, kind: str) -> dict[str, str]:
    """Return the columns of a new order.

    If a refund creates the order, the refunded amounts are also the order's own amounts.
    """
    columns = {}
    for name in filter(rows.carries, KINDS[kind]):
        columns[STORED[kind].get(name, name)] = f"i.{name}"
        if kind == "refunds" and name in REFUND_AMOUNTS:
            columns[name] = f"i.{name}"
    if kind == "refunds":
        given = (columns.get(name, f"NULL::{sql}") for name, sql in _DECIDE_REFUND.items())
        columns["refund_amt"] = refund_amount_sql(columns.get("total_amt", "NULL::numeric"), *given)
    return columns

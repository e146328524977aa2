"""A row of a seller in every table that names one, so that no table is forgotten by what has to
find them all: the erasure of a seller, and the archive of one.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from cardsync.operations.moving.archive_tables import KEYS
from cardsync.platform.database.urls import engine_url, libpq_url
from cardsync.tables import seller_tables

NOW = datetime(2026, 11, 1, 12, 30, 15, 123456, tzinfo=UTC)
# What a check or a reader of the table asks for.
GIVEN: dict[str, dict[str, Any]] = {
    "card_photo": {
        "address": "https://pictures.example/a.jpg",
        "host": "pictures.example",
        "digest": "0" * 32,
    },
    "pull_mark": {"kind": "pulled"},
    "quick_add": {"status": "rejected"},
    "store_credit_entry": {"kind": "spent"},
    "buying_offer": {"state": "draft", "source": "hand", "way": "cash"},
    "buying_offer_line": {"copies": 1},
    "shelf_box": {"box": 1_000_001, "label": "A1"},
}


def fill(owner_url: str, seller_id: int, mark: str) -> list[str]:
    """Put a row with `mark` in its texts into each table that has none of the seller's; return
    the tables' names.
    """
    engine = sa.create_engine(engine_url(libpq_url(owner_url, role=None)))
    filled = []
    with engine.begin() as connection:
        connection.execute(sa.text(f"SELECT set_config('app.seller_id', '{seller_id}', true)"))
        # One of the shop's own, where it has cards: the first of all may be another test's.
        product = connection.scalar(
            sa.text(
                f"SELECT coalesce((SELECT min(product_id) FROM card WHERE seller_id = {seller_id}),"
                " (SELECT min(id) FROM product))"
            )
        )
        known = {
            "member_id": connection.scalar(
                sa.text(f"SELECT min(id) FROM member WHERE seller_id = {seller_id}")
            ),
            "product_id": product,
            "was_product_id": product,
            **{name: f"accepted/u{seller_id}/{mark.replace('@', '-')}" for name in KEYS},
        }
        for table in seller_tables():
            if "seller_id" not in table.columns or _has_rows(connection, table, seller_id):
                continue
            row = _row(connection, table, seller_id, mark, known)
            if table.name == "price_observation":
                connection.execute(
                    sa.text("SELECT ensure_price_observation_partition('2026-11-01')")
                )
            connection.execute(sa.insert(table).values(row))
            filled.append(table.name)
    engine.dispose()
    return filled


def _has_rows(connection: sa.Connection, table: sa.Table, seller_id: int) -> bool:
    one = sa.select(sa.literal(1)).where(table.c.seller_id == seller_id).limit(1)
    return connection.scalar(one) is not None


def _row(
    connection: sa.Connection,
    table: sa.Table,
    seller_id: int,
    mark: str,
    known: dict[str, Any],
) -> dict[str, Any]:
    row = _referred(connection, table, seller_id)
    for column in table.columns:
        if column.computed is None and column.identity is None and column.name not in row:
            row[column.name] = known.get(column.name) or _value(column, mark)
    return row | GIVEN.get(table.name, {}) | {"seller_id": seller_id}


def _referred(connection: sa.Connection, table: sa.Table, seller_id: int) -> dict[str, Any]:
    """The keys of rows of the seller to which a foreign key leads."""
    row: dict[str, Any] = {}
    for constraint in table.foreign_key_constraints:
        target = constraint.referred_table
        columns = [key.column for key in constraint.elements]
        owner = target.c["seller_id" if "seller_id" in target.c else "id"]
        found = connection.execute(sa.select(*columns).where(owner == seller_id).limit(1)).one()
        row |= dict(zip(constraint.column_keys, found, strict=True))
    return row


def _value(column: sa.Column[Any], mark: str) -> Any:
    kind = column.type
    match kind:
        case postgresql.JSONB():
            return {"of": mark}
        case sa.ARRAY():
            return [mark] if isinstance(kind.item_type, sa.Text) else [1]
        case sa.LargeBinary():
            return f"{column} of {mark}".encode()
        case sa.Boolean():
            return False
        case sa.DateTime():
            return NOW
        case sa.Date():
            return date(2026, 11, 1)
        case sa.Float():
            return 0.1
        case sa.Numeric():
            return Decimal("1.25")
        case sa.Integer():
            return 1
        case sa.Uuid() | postgresql.UUID():
            return uuid.uuid4()
    return f"{column.name} of {mark}"

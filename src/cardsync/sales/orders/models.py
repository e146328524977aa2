"""Tenant tables for orders: `orders` (with refund, shipping and feedback), `order_item`,
`order_restock`, `order_tally` (exact counts, updated by triggers), `sales_report`, and tables of
customers.

Amounts are numeric without a fixed scale, because the API returns them with their uploaded scale;
checks limit them to numeric(12,4).
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Computed,
    Date,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform import limits
from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId

# The database computes `status_group`, so that every program that writes orders gets the same
# value. The first condition decides most statuses by their first letters, which is fast.
STATUS_GROUP_SQL = (
    """CASE WHEN status COLLATE "C" >= 'Cb' AND status COLLATE "C" < 'c' THEN status"""
    " WHEN btrim(status) <> '' IS NOT TRUE THEN 'Unknown'"
    " WHEN lower(btrim(status)) IN ('canceled', 'cancelled') THEN 'Cancelled' ELSE status END"
)

# The order number and the buyer's name, for searching and sorting. The first chr(1) separates them.
# Each is cut to a maximum length, because an index contains it.
SEARCH_TEXT = (
    f"replace(left(folded(order_number), {limits.SEARCHED_CHARACTERS}), chr(1), ''::text) || chr(1)"
    f" || coalesce(left(folded(buyer_name), {limits.SEARCHED_CHARACTERS}), ''::text)"
)
# The folded name of the buyer; empty if the order has no name. It is part of the search text, so a
# query can read it from the index that includes the search text.
BUYER_KEY = "substr(orders.search_text, strpos(orders.search_text, chr(1)) + 1)"

# The hash is neither indexed nor stored. PostgreSQL does not use an index on an expression under
# row-level security, unless its functions are leakproof; a stored hash would slow down every write
# of an order.
BUYER_HASH = f"hashtextextended({BUYER_KEY}, 0)"

AMOUNTS = (
    "product_amt", "shipping_amt", "total_amt",
    "refund_product_amt", "refund_shipping_amt", "refund_total_given", "refund_amt",
)  # fmt: skip


def _amount_check(name: str) -> CheckConstraint:
    return CheckConstraint(f"abs({name}) < 100000000 AND scale({name}) <= 4", name=name)


class Order(Base):
    """An order, merged from uploaded order, refund, shipping and feedback rows.

    `status` is the uploaded text. `status_group` is used for counts and pages: `Cancelled` for both
    spellings, `Unknown` without a status. `shipping_type` is derived, and updated when a column
    that it depends on changes.
    """

    __tablename__ = "orders"
    __table_args__ = (
        Index("uq_orders_order_number", "seller_id", "order_number", unique=True),
        # Searches, counts, customers, and sorts without their own index read only this index.
        Index(
            "ix_orders_date",
            "seller_id",
            text("order_date DESC NULLS LAST"),
            text("id DESC"),
            postgresql_include=[
                "status_group",
                "shipping_type",
                "feedback_rating",
                "total_amt",
                "placed_at_given",
                "search_text",
            ],
        ),
        Index(
            "ix_orders_status",
            "seller_id",
            "status_group",
            text("order_date DESC NULLS LAST"),
            text("id DESC"),
        ),
        # Most orders of most sellers are plain envelopes (`pwe`). ix_orders_date finds these.
        Index(
            "ix_orders_shipping",
            "seller_id",
            "shipping_type",
            text("order_date DESC NULLS LAST"),
            text("id DESC"),
            postgresql_where=text("shipping_type <> 'pwe'"),
        ),
        Index(
            "ix_orders_refunded",
            "seller_id",
            text("order_date DESC NULLS LAST"),
            text("id DESC"),
            postgresql_where=text("refund_amt IS NOT NULL"),
        ),
        # The condition is that of the state `to_restock` (`returned_copies.py`).
        Index(
            "ix_orders_to_restock",
            "seller_id",
            "id",
            postgresql_where=text(
                "refund_amt IS NOT NULL"
                " AND NOT (CASE WHEN refund_type IS NULL"
                " THEN coalesce(refund_amt < product_amt, false)"
                " ELSE refund_type = 'partial' END"
                " AND coalesce(refund_reason, '') !~* 'return')"
                " AND NOT (shipped_marked_at IS NOT NULL"
                " OR status_group ~* 'shipped|in transit|delivered'"
                " AND status_group !~* 'unshipped|not shipped')"
            ),
        ),
        Index(
            "ix_orders_aside",
            "seller_id",
            "id",
            postgresql_where=text("shipped_marked_at IS NOT NULL OR pull_dismissed_at IS NOT NULL"),
        ),
        *(_amount_check(name) for name in AMOUNTS),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    order_number: Mapped[str]
    buyer_name: Mapped[str | None]
    order_date: Mapped[date | None] = mapped_column(Date)
    placed_at_given: Mapped[datetime | None]
    status: Mapped[str | None]
    status_group: Mapped[str] = mapped_column(Computed(STATUS_GROUP_SQL, persisted=True))
    product_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    total_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    # Columns of the refund. A null `refund_amt` means that the order is not refunded; a refund of
    # zero is possible. `refunds.refund_amount` computes `refund_amt` from uploaded values whenever
    # these change.
    refund_type: Mapped[str | None]
    refund_origin: Mapped[str | None]
    refund_product_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_shipping_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_total_given: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_reason: Mapped[str | None]
    refund_note: Mapped[str | None]
    # Columns from uploads of shipping details.
    shipping_method: Mapped[str | None]
    city: Mapped[str | None]
    state: Mapped[str | None]
    postal_code: Mapped[str | None]
    tracking_number: Mapped[str | None]
    shipping_item_count: Mapped[int | None]
    product_weight: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_type: Mapped[str] = mapped_column(server_default="pwe")
    # Sums over the order's items, which are written together with the items.
    items_total: Mapped[int] = mapped_column(server_default="0")
    items_quantity: Mapped[int] = mapped_column(BigInteger, server_default="0")
    product_lines: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    # `items_hash` is null until items of the order are written.
    items_hash: Mapped[Decimal | None] = mapped_column(Numeric)
    feedback_rating: Mapped[int | None]
    feedback_comment: Mapped[str | None]
    # `shipped_marked_at`: the seller marked the order as shipped before an upload confirmed it.
    # `pull_dismissed_at`: the seller excluded the order from pulls.
    shipped_marked_at: Mapped[datetime | None]
    pull_dismissed_at: Mapped[datetime | None]
    search_text: Mapped[str] = mapped_column(
        Text(collation="C"),
        Computed(SEARCH_TEXT, persisted=True),
    )
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class OrderItem(Base):
    """A line of an order. An order has at most one line per `sku_id`, and any number of lines
    without a `sku_id`.
    """

    __tablename__ = "order_item"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "order_id"], ["orders.seller_id", "orders.id"]),
        Index(
            "uq_order_item_sku",
            "seller_id",
            "sku_id",
            "order_id",
            unique=True,
            postgresql_where=text("sku_id IS NOT NULL"),
        ),
        Index("ix_order_item_order", "seller_id", "order_id", "id"),
        CheckConstraint(
            "abs(unit_price) < 100000000 AND scale(unit_price) <= 4", name="unit_price"
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    order_id: Mapped[BigInt]
    sku_id: Mapped[BigInt | None]
    product_name: Mapped[str | None]
    product_line: Mapped[str | None]
    condition: Mapped[str | None]
    set_name: Mapped[str | None]
    rarity: Mapped[str | None]
    quantity: Mapped[int | None]
    main_photo_url: Mapped[str | None]
    unit_price: Mapped[Decimal | None] = mapped_column(Numeric)
    # Copies that were returned after a refund and are in stock again.
    restocked: Mapped[int] = mapped_column(server_default="0")


class OrderTally(Base):
    """Number of orders by status, shipping type and refund: for all time, and for each block of 32
    days with the number on each day. Triggers on `orders` update the counts.

    Block 0 begins on 2000-01-01. Orders without a date are counted only for all time. A count may
    be zero.
    """

    __tablename__ = "order_tally"
    seller_id: Mapped[KeyPart]
    # `days` or `ever`
    period: Mapped[str] = mapped_column(primary_key=True)
    # 0 if `period` is `ever`
    block: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status_group: Mapped[str] = mapped_column(primary_key=True)
    shipping_type: Mapped[str] = mapped_column(primary_key=True)
    refunded: Mapped[bool] = mapped_column(primary_key=True)
    orders: Mapped[BigInt]
    days: Mapped[list[int] | None] = mapped_column(ARRAY(Integer))


class CustomerNote(Base):
    """A note on a customer. `key` is a hash of the customer's folded name."""

    __tablename__ = "customer_note"
    seller_id: Mapped[KeyPart]
    key: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    note: Mapped[str]
    updated_at: Mapped[datetime]


class OrderRestock(Base):
    """A refunded order whose copies are in stock again. `placed` lists each card with its box, slot
    and quantity.
    """

    __tablename__ = "order_restock"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "order_id"], ["orders.seller_id", "orders.id"]),
    )
    seller_id: Mapped[KeyPart]
    order_id: Mapped[KeyPart]
    restocked_at: Mapped[datetime]
    placed: Mapped[list[dict[str, int]]] = mapped_column(JSONB)


class SalesReport(Base):
    """A month of the marketplace's own sales report. A month without revenue has a row, too."""

    __tablename__ = "sales_report"
    seller_id: Mapped[KeyPart]
    month: Mapped[date] = mapped_column(Date, primary_key=True)
    date_to: Mapped[date] = mapped_column(Date)
    gross_sales: Mapped[Decimal | None] = mapped_column(Numeric)
    order_count: Mapped[BigInt | None]
    product_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    total_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    total_refund_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    refunded_orders: Mapped[BigInt | None]
    refunded_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    adjustments: Mapped[Decimal | None] = mapped_column(Numeric)
    net_sales_minus_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    net_sales: Mapped[Decimal | None] = mapped_column(Numeric)
    received_at: Mapped[datetime]


class OrderSearchPart(Base):
    """Up to 65,536 orders whose search texts are listed by gram: those with ids above `after_id`,
    up to `last_id`. `ids` contains the packed ids of the orders (`search_grams.py`).
    """

    __tablename__ = "order_search_part"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    after_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    last_id: Mapped[int] = mapped_column(BigInteger)
    orders: Mapped[int]
    ids: Mapped[bytes] = mapped_column(LargeBinary)


class OrderSearchGram(Base):
    """The places of the orders of a part whose search texts contain a gram."""

    __tablename__ = "order_search_gram"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    gram: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    after_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    places: Mapped[bytes] = mapped_column(LargeBinary)


class CustomerOrder(Base):
    """The customer and the profit of an order. `name` is a hash of the customer's name. `costed` of
    the `pieces` have a known cost, and `profit` covers only these.
    """

    __tablename__ = "customer_order"
    __table_args__ = (Index("ix_customer_order_name", "seller_id", "name", "order_id"),)
    seller_id: Mapped[KeyPart]
    order_id: Mapped[KeyPart]
    name: Mapped[BigInt]
    pieces: Mapped[int] = mapped_column(BigInteger, server_default="0")
    costed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    profit: Mapped[Decimal] = mapped_column(Numeric, server_default="0")


class CustomerSum(Base):
    """Sums over a customer's orders. `newest` and `newest_refunded` are ids of orders.
    `first_given` and `last_given` cover orders with a moment, `first_day` and `last_day` orders
    with only a date.
    """

    __tablename__ = "customer_sum"
    __table_args__ = (
        Index(
            "ix_customer_sum_lifetime",
            "seller_id",
            text("lifetime_total DESC"),
            text("order_count DESC"),
            text("newest DESC"),
            postgresql_include=["name"],
        ),
        Index(
            "ix_customer_sum_refunded",
            "seller_id",
            text("refunded_orders DESC"),
            text("refunded_total DESC"),
            "name",
            postgresql_where=text("refunded_orders >= 2"),
        ),
    )
    seller_id: Mapped[KeyPart]
    name: Mapped[KeyPart]
    order_count: Mapped[BigInt]
    lifetime_total: Mapped[Decimal] = mapped_column(Numeric)
    newest: Mapped[BigInt]
    first_given: Mapped[datetime | None]
    last_given: Mapped[datetime | None]
    first_day: Mapped[date | None] = mapped_column(Date)
    last_day: Mapped[date | None] = mapped_column(Date)
    refunded_orders: Mapped[BigInt]
    refunded_total: Mapped[Decimal] = mapped_column(Numeric)
    newest_refunded: Mapped[BigInt | None]
    pieces: Mapped[int] = mapped_column(BigInteger, server_default="0")
    costed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    profit: Mapped[Decimal] = mapped_column(Numeric, server_default="0")


class CustomerCount(Base):
    """The number of a seller's customers, and the number of repeat customers."""

    __tablename__ = "customer_count"
    seller_id: Mapped[KeyPart]
    customers: Mapped[BigInt]
    repeat_customers: Mapped[BigInt]

"""Tables of orders (all tenant): `orders` with refund, shipping and feedback beside each,
`order_item`, `order_tally` (exact counts, updated by triggers), `sales_report`.

Amounts are numeric without a fixed scale, because they are read back with the scale that they
arrived with; checks limit them to numeric(12,4).
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
    Identity,
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
from cardsync.platform.database.columns import NOW, Base, Moment

# The database derives the value, whichever program writes the row. Most statuses are decided by
# their first letters alone.
STATUS_GROUP_SQL = (
    """CASE WHEN status COLLATE "C" >= 'Cb' AND status COLLATE "C" < 'c' THEN status"""
    " WHEN btrim(status) <> '' IS NOT TRUE THEN 'Unknown'"
    " WHEN lower(btrim(status)) IN ('canceled', 'cancelled') THEN 'Cancelled' ELSE status END"
)

# Number and name are here for searching and sorting, each bounded because an index holds them;
# the first chr(1) separates them.
SEARCH_TEXT = (
    f"replace(left(folded(order_number), {limits.SEARCHED_CHARACTERS}), chr(1), ''::text) || chr(1)"
    f" || coalesce(left(folded(buyer_name), {limits.SEARCHED_CHARACTERS}), ''::text)"
)
# The key is the folded name, empty without one. It is read from the search text, and so from the
# index that has it.
BUYER_KEY = "substr(orders.search_text, strpos(orders.search_text, chr(1)) + 1)"

# Row-level security lets no index on an expression be used, because its functions are not
# leakproof; and a stored hash would make every order heavier to write.
BUYER_HASH = f"hashtextextended({BUYER_KEY}, 0)"

AMOUNTS = (
    "product_amt", "shipping_amt", "total_amt",
    "refund_product_amt", "refund_shipping_amt", "refund_total_given", "refund_amt",
)  # fmt: skip


def _amount_check(name: str) -> CheckConstraint:
    return CheckConstraint(f"abs({name}) < 100000000 AND scale({name}) <= 4", name=name)


class Order(Base):
    """An order of a seller is merged from order, refund, shipping and feedback rows.

    `status` is as given, `status_group` as it is counted and shown (`Cancelled` for both
    spellings, `Unknown` for none); `shipping_type` is derived whenever something that decides it
    changes.
    """

    __tablename__ = "orders"
    __table_args__ = (
        Index("uq_orders_order_number", "seller_id", "order_number", unique=True),
        # Searches, counts, customers and the sorts that have no index of their own read this index
        # alone.
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
        # Plain envelopes are most orders of most sellers, so their dates find them.
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
        Index(
            "ix_orders_aside",
            "seller_id",
            "id",
            postgresql_where=text("shipped_marked_at IS NOT NULL OR pull_dismissed_at IS NOT NULL"),
        ),
        *(_amount_check(name) for name in AMOUNTS),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    order_number: Mapped[str] = mapped_column(Text)
    buyer_name: Mapped[str | None] = mapped_column(Text)
    order_date: Mapped[date | None] = mapped_column(Date)
    placed_at_given: Mapped[datetime | None] = mapped_column(Moment)
    status: Mapped[str | None] = mapped_column(Text)
    status_group: Mapped[str] = mapped_column(Text, Computed(STATUS_GROUP_SQL, persisted=True))
    product_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    total_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    # These columns hold a refund: a null refund_amt means not refunded, which differs from a refund
    # of zero. It is decided from the uploads (`refunds.refund_amount`) whenever something that
    # decides it changes.
    refund_type: Mapped[str | None] = mapped_column(Text)
    refund_origin: Mapped[str | None] = mapped_column(Text)
    refund_product_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_shipping_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_total_given: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    refund_reason: Mapped[str | None] = mapped_column(Text)
    refund_note: Mapped[str | None] = mapped_column(Text)
    # These columns hold the shipping.
    shipping_method: Mapped[str | None] = mapped_column(Text)
    city: Mapped[str | None] = mapped_column(Text)
    state: Mapped[str | None] = mapped_column(Text)
    postal_code: Mapped[str | None] = mapped_column(Text)
    tracking_number: Mapped[str | None] = mapped_column(Text)
    shipping_item_count: Mapped[int | None]
    product_weight: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_type: Mapped[str] = mapped_column(Text, server_default="pwe")
    # These are sums over the order's items, written together with them.
    items_total: Mapped[int] = mapped_column(server_default="0")
    items_quantity: Mapped[int] = mapped_column(BigInteger, server_default="0")
    product_lines: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    # The hash is null until items of the order are written.
    items_hash: Mapped[Decimal | None] = mapped_column(Numeric)
    feedback_rating: Mapped[int | None]
    feedback_comment: Mapped[str | None] = mapped_column(Text)
    # These are the marks for pulling: the seller's optimistic mark, and the time when the order was
    # set aside.
    shipped_marked_at: Mapped[datetime | None] = mapped_column(Moment)
    pull_dismissed_at: Mapped[datetime | None] = mapped_column(Moment)
    search_text: Mapped[str] = mapped_column(
        Text(collation="C"),
        Computed(SEARCH_TEXT, persisted=True),
    )
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class OrderItem(Base):
    """An item is one line of an order.

    An order has one line per sku_id; it may have several lines without one.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    order_id: Mapped[int] = mapped_column(BigInteger)
    sku_id: Mapped[int | None] = mapped_column(BigInteger)
    product_name: Mapped[str | None] = mapped_column(Text)
    product_line: Mapped[str | None] = mapped_column(Text)
    condition: Mapped[str | None] = mapped_column(Text)
    set_name: Mapped[str | None] = mapped_column(Text)
    rarity: Mapped[str | None] = mapped_column(Text)
    quantity: Mapped[int | None]
    main_photo_url: Mapped[str | None] = mapped_column(Text)
    unit_price: Mapped[Decimal | None] = mapped_column(Numeric)
    # Copies that came back with a refund and are in stock again.
    restocked: Mapped[int] = mapped_column(server_default="0")


class OrderTally(Base):
    """The tally counts the orders of each kind: for all time, and in each block of 32 days with the
    number on each of them. Triggers on `orders` update it.

    Blocks are counted from 2000-01-01. Orders without a date are counted for all time only. A count
    may be zero.
    """

    __tablename__ = "order_tally"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # The period is `days` or `ever`.
    period: Mapped[str] = mapped_column(Text, primary_key=True)
    # The block is 0 for `ever`.
    block: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status_group: Mapped[str] = mapped_column(Text, primary_key=True)
    shipping_type: Mapped[str] = mapped_column(Text, primary_key=True)
    refunded: Mapped[bool] = mapped_column(primary_key=True)
    orders: Mapped[int] = mapped_column(BigInteger)
    days: Mapped[list[int] | None] = mapped_column(ARRAY(Integer))


class CustomerNote(Base):
    """A note on a customer, by the hash of the customer's key."""

    __tablename__ = "customer_note"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    key: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    note: Mapped[str] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class OrderRestock(Base):
    """A refunded order whose copies went back to the shelves; `placed` names each card with its
    box, slot and quantity.
    """

    __tablename__ = "order_restock"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "order_id"], ["orders.seller_id", "orders.id"]),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    order_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    restocked_at: Mapped[datetime] = mapped_column(Moment)
    placed: Mapped[list[dict[str, int]]] = mapped_column(JSONB)


class SalesReport(Base):
    """A row is one month of the marketplace's own sales report; without revenue it still covers the
    month.
    """

    __tablename__ = "sales_report"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    month: Mapped[date] = mapped_column(Date, primary_key=True)
    date_to: Mapped[date] = mapped_column(Date)
    gross_sales: Mapped[Decimal | None] = mapped_column(Numeric)
    order_count: Mapped[int | None] = mapped_column(BigInteger)
    product_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    total_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    total_refund_amount: Mapped[Decimal | None] = mapped_column(Numeric)
    refunded_orders: Mapped[int | None] = mapped_column(BigInteger)
    refunded_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    adjustments: Mapped[Decimal | None] = mapped_column(Numeric)
    net_sales_minus_fees: Mapped[Decimal | None] = mapped_column(Numeric)
    net_sales: Mapped[Decimal | None] = mapped_column(Numeric)
    received_at: Mapped[datetime] = mapped_column(Moment)


class CustomerOrder(Base):
    """The customer of an order, by a hash of the name, and the order's profit: `costed` of its
    `pieces` have a known cost, and the profit covers these.
    """

    __tablename__ = "customer_order"
    __table_args__ = (Index("ix_customer_order_name", "seller_id", "name", "order_id"),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    order_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[int] = mapped_column(BigInteger)
    pieces: Mapped[int] = mapped_column(BigInteger, server_default="0")
    costed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    profit: Mapped[Decimal] = mapped_column(Numeric, server_default="0")


class CustomerSum(Base):
    """The sums over a customer's orders; `newest` and `newest_refunded` are orders. Days count
    where an order's moment was not given.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    order_count: Mapped[int] = mapped_column(BigInteger)
    lifetime_total: Mapped[Decimal] = mapped_column(Numeric)
    newest: Mapped[int] = mapped_column(BigInteger)
    first_given: Mapped[datetime | None] = mapped_column(Moment)
    last_given: Mapped[datetime | None] = mapped_column(Moment)
    first_day: Mapped[date | None] = mapped_column(Date)
    last_day: Mapped[date | None] = mapped_column(Date)
    refunded_orders: Mapped[int] = mapped_column(BigInteger)
    refunded_total: Mapped[Decimal] = mapped_column(Numeric)
    newest_refunded: Mapped[int | None] = mapped_column(BigInteger)
    pieces: Mapped[int] = mapped_column(BigInteger, server_default="0")
    costed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    profit: Mapped[Decimal] = mapped_column(Numeric, server_default="0")


class CustomerCount(Base):
    """The number of a seller's customers, and of those who ordered again."""

    __tablename__ = "customer_count"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    customers: Mapped[int] = mapped_column(BigInteger)
    repeat_customers: Mapped[int] = mapped_column(BigInteger)

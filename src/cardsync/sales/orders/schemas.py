"""The JSON structs of orders and customers, and the functions that fill them from rows. Pure.

Money is text with its uploaded scale and at least two decimals. Texts about refunds, which
strangers write, are cut and cleaned of unprintable characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Reads, Usd, struct_of
from cardsync.platform.money import usd
from cardsync.platform.shelf_place import Place
from cardsync.sales.limits import REFUND_TEXT_CHARACTERS
from cardsync.sales.lots.schemas import cents
from cardsync.sales.orders.cells import RefundType
from cardsync.sales.orders.order_filter import ShippingType
from cardsync.sales.orders.pull_models import MissingOutcome, MissingReason, PullState
from cardsync.sales.orders.pull_schemas import PullSession
from cardsync.sales.orders.pullable import UNSETTLED, marked_shipped_pending

_CENT = Decimal("0.01")
_EXACT = Context(prec=50, rounding=ROUND_HALF_UP)
_times = _EXACT.multiply
_rounded = _EXACT.quantize
_REMOVED = ("Cc", "Cf")


class OrderRow(NamedTuple):
    """The values of an order that the API shows: columns of `orders` and derived values."""

    id: int
    order_number: str
    buyer_name: str | None
    order_date: date | None
    order_placed_at: datetime | None
    status: str | None
    status_group: str
    product_amt: Decimal | None
    shipping_amt: Decimal | None
    total_amt: Decimal | None
    shipping_type: str
    shipping_item_count: int | None
    items_quantity: int
    items_total: int
    shipped_marked_at: datetime | None
    pull_dismissed_at: datetime | None
    refund_type: Annotated[str, Like(RefundType)] | None
    refund_origin: str | None
    refund_amt: Decimal | None
    refund_reason: str | None
    refund_note: str | None
    feedback_rating: int | None
    feedback_comment: str | None
    product_weight: Decimal | None
    refund_total_given: Decimal | None
    pulled_at: datetime | None
    missing_count: int
    under_way: list[int] | None


def order_row(row: Sequence[object], caller: Caller) -> OrderRow:
    """Return a row of `ORDER_COLUMNS` as an `OrderRow`. For a caller who may not see buyers, the
    buyer's name, the note of a refund and the comment of a feedback are null.
    """
    order = OrderRow._make(row)
    if caller.sees_buyers:
        return order
    return order._replace(buyer_name=None, refund_note=None, feedback_comment=None)


def settled_row(row: Sequence[object], caller: Caller) -> SettledRow:
    """Return the row as a `SettledRow`; without its note if the caller may not see buyers."""
    settled = SettledRow._make(row)
    return settled if caller.sees_buyers else settled._replace(note=None)


# The SQL expressions of the fields that are not columns of `orders`.
_DERIVED = {
    "order_placed_at": PLACED_AT,
    "pulled_at": """(SELECT max(p.pulled_at) FROM pull_session_order p
        JOIN pull_session s ON s.seller_id = p.seller_id AND s.id = p.session_id
       WHERE p.seller_id = :seller AND p.order_id = orders.id
         AND s.seller_id = :seller AND s.state <> 'cancelled')""",
    "missing_count": f"""(SELECT count(*) FROM pull_session_item i
        JOIN pull_session s ON s.seller_id = i.seller_id AND s.id = i.session_id
       WHERE i.seller_id = :seller AND i.order_id = orders.id AND {UNSETTLED}
         AND s.seller_id = :seller AND s.state <> 'cancelled')""",
    # The number of pulled copies and of all copies of the order in the open session.
    "under_way": """(SELECT CAST(ARRAY[sum(least(line.pulled, line.wanted)), sum(line.wanted)]
                    AS bigint[])
        FROM (SELECT coalesce(i.quantity, 1) AS wanted, coalesce((
                     SELECT sum(m.quantity) FROM pull_mark m
                      WHERE m.seller_id = :seller AND m.session_id = i.session_id
                        AND m.item_id = i.item_id AND m.kind = 'pulled' AND NOT m.undone), 0)
                     AS pulled
                FROM pull_session s
                JOIN pull_session_item i ON i.seller_id = s.seller_id AND i.session_id = s.id
               WHERE s.seller_id = :seller AND s.state = 'open' AND i.seller_id = :seller
                 AND i.order_id = orders.id) line
      HAVING count(*) > 0)""",
}
ORDER_COLUMNS = ", ".join(_DERIVED.get(name, f"orders.{name}") for name in OrderRow._fields)


class ItemRow(NamedTuple):
    """The shown columns of `order_item`, and the order's id."""

    order_id: int
    id: int
    product_name: str | None
    product_line: str | None
    condition: str | None
    quantity: int | None
    unit_price: Decimal | None


class CardOfItem(NamedTuple):
    """The columns of an item that only the page of one order shows, and the item's card in stock,
    if it has one. `estimated_total` is the estimated amount of an item without a price. A place is
    box, slot and quantity.
    """

    set_name: str | None
    rarity: str | None
    estimated_total: Decimal | None
    card_id: int | None
    price: Decimal | None
    places: list[tuple[int, int, int]]


class PullRow(NamedTuple):
    session_id: int
    status: str
    opened_at: datetime
    pulled_at: datetime | None


class SettledRow(NamedTuple):
    """A card that was missing in a pull, and the seller's decision about it."""

    item_id: int
    product_name: str | None
    condition: str | None
    reason: str | None
    outcome: str
    refund_amt: Decimal | None
    copy: str | None
    note: str | None
    settled_at: datetime


class OneOrder(NamedTuple):
    order: OrderRow
    items: list[tuple[ItemRow, CardOfItem]]
    pulls: list[PullRow]
    settled: list[SettledRow]


class ItemBody(msgspec.Struct, gc=False):
    id: int
    product_name: str | None
    product_line: str | None
    condition: str | None
    quantity: int | None
    unit_price: str | None
    line_total: str | None


class OrderBody(msgspec.Struct):
    """`buyer_name`, `refund_note` and `feedback_comment` are null for a caller who may not see
    buyers. `shipping_item_count`, `product_weight` and `refund_total_amt` are uploaded values;
    `item_count` and `refund_amt` are computed if these are missing.
    """

    id: int
    order_number: str
    buyer_name: str | None
    order_date: date | None
    order_placed_at: datetime | None
    status: str
    """The marketplace's status; Unknown without one"""
    product_amt: str | None
    shipping_amt: str | None
    total_amt: str | None
    shipping_type: Annotated[str, Like(ShippingType)]
    item_count: int
    shipped_marked_at: datetime | None
    marked_shipped_pending: bool
    pull_dismissed_at: datetime | None
    pulled_at: datetime | None
    """When the order was pulled; null: not yet"""
    missing_count: int
    """The number of items with a missing card and no decision about it"""
    copies_pulled: int | None
    """The pulled copies in the open pull; null: the order is in no open pull"""
    copies_to_pull: int | None
    """All copies of the order in the open pull; null: the order is in no open pull"""
    refund_type: Annotated[str, Like(RefundType)] | None
    refund_origin: str | None
    refund_amt: str | None
    refund_reason: str | None
    refund_note: str | None
    feedback_rating: int | None
    feedback_comment: str | None
    shipping_item_count: int | None
    product_weight: str | None
    refund_total_amt: str | None
    items: list[ItemBody]
    """The items, sorted by id; not all of them if items_truncated is true"""
    items_truncated: bool
    items_total_count: int


def money(amount: Decimal | None) -> str | None:
    """Return an amount as text with at least two decimals: `1` → `1.00`, `1.5` → `1.50`; `1.2300`
    is unchanged.
    """
    if amount is None:
        return None
    text = str(amount)
    if "." in text[:-2] and "E" not in text:
        return text
    text = f"{amount:f}"
    whole, _, decimals = text.partition(".")
    return text if len(decimals) >= 2 else f"{whole}.{decimals:0<2}"


Amount = Annotated[str, Reads(money)]


def line_total(quantity: int | None, unit_price: Decimal | None) -> str | None:
    """Return quantity times price, rounded half-up to two decimals."""
    if quantity is None or unit_price is None:
        return None
    return str(_rounded(_times(quantity, unit_price), _CENT))


def readable(text: str | None) -> str | None:
    """Return the text without control and zero-width characters, cut to the maximum length."""
    if text is None:
        return None
    if not text.isprintable():
        text = "".join(
            character for character in text if unicodedata.category(character) not in _REMOVED
        )
    return text[:REFUND_TEXT_CHARACTERS]


def item_body(item: ItemRow) -> ItemBody:
    _, id, product_name, product_line, condition, quantity, unit_price = item
    price = money(unit_price)
    total = line_total(quantity, unit_price)
    return ItemBody(id, product_name, product_line, condition, quantity, price, total)


_Refund = tuple[str | None, str | None, str | None, str | None, str | None]
_NO_REFUND: _Refund = (None, None, None, None, None)


def order_body(order: OrderRow, items: Sequence[ItemRow]) -> OrderBody:
    """Return the order for the API. The fields are positional, which is faster than by name: most
    of a page's Python time is spent here. The JSON encoder formats the moments.
    """
    pulled, wanted = order.under_way or (None, None)
    return OrderBody(
        *order[:5],
        order.status_group,
        money(order.product_amt),
        money(order.shipping_amt),
        money(order.total_amt),
        order.shipping_type,
        order.items_quantity if order.shipping_item_count is None else order.shipping_item_count,
        order.shipped_marked_at,
        marked_shipped_pending(order.status, order.shipped_marked_at),
        order.pull_dismissed_at,
        order.pulled_at,
        order.missing_count,
        pulled,
        wanted,
        # An order without `refund_amt` is not refunded, even if other refund fields have values.
        *(_NO_REFUND if order.refund_amt is None else _refund(order)),
        order.feedback_rating,
        order.feedback_comment,
        order.shipping_item_count,
        None if order.product_weight is None else f"{order.product_weight:f}",
        None if order.refund_amt is None else money(order.refund_total_given),
        [item_body(item) for item in items],
        order.items_total > len(items),
        order.items_total,
    )


def _refund(order: OrderRow) -> _Refund:
    reason = readable(order.refund_reason)
    note = readable(order.refund_note)
    return order.refund_type, order.refund_origin, money(order.refund_amt), reason, note


class ItemPlace(msgspec.Struct, gc=False):
    code: str
    """The box and the slot, as box-slot"""
    quantity: int


class ItemInFull(ItemBody, gc=False):
    """`card_id` and `card_price` are those of the item's card in stock; null if the shop has none.
    `estimated_total` is set for an item without a price: its copies' even share of the order's
    `product_amt` less the items with a price; null if nothing is left.
    """

    set_name: str | None
    rarity: str | None
    card_id: int | None
    card_price: str | None
    """The card's current price, in USD; null: the shop has no such card"""
    locations: list[ItemPlace]
    estimated_total: str | None
    """For an item without a price, its share of the rest of the order's product amount, in USD"""


class PullOfOrder(msgspec.Struct):
    session_id: int
    status: Annotated[str, Like(PullState)]
    """The session is open, completed or cancelled"""
    opened_at: datetime
    pulled_at: datetime | None


class SettledCard(msgspec.Struct):
    """A card that was missing in a pull, and the seller's decision about it. `refund_amt` is the
    refund that the seller noted; the marketplace pays the refund itself.
    """

    item_id: int
    product_name: str | None
    condition: str | None
    reason: Annotated[str, Like(MissingReason), Reads(lambda reason: reason or "not_there")]
    outcome: Annotated[str, Like(MissingOutcome)]
    refund_amt: Usd | None
    copy: str | None
    """The condition and place of the copy that was sent instead; null: none was named"""
    note: str | None
    """The seller's note; null without one, and for a caller who may not see buyers"""
    settled_at: datetime


class OrderInFull(OrderBody, kw_only=True):
    """An order with every item, its newest pull sessions, and the decisions about its missing
    cards.
    """

    items: list[ItemInFull]  # type: ignore[assignment]
    pulls: list[PullOfOrder]
    """The newest pull sessions of the order"""
    settled_cards: list[SettledCard]
    """The missing cards, and the decision about each"""


def order_in_full(found: OneOrder) -> OrderInFull:
    fields = msgspec.structs.asdict(order_body(found.order, [item for item, _ in found.items]))
    return OrderInFull(
        **fields
        | {
            "items": [_item_in_full(item, card) for item, card in found.items],
            "pulls": [PullOfOrder(*pull) for pull in found.pulls],
            "settled_cards": [struct_of(SettledCard, one) for one in found.settled],
        }
    )


def adds_up(order: OrderInFull) -> bool:
    """Return whether the items' totals add up to the order's product amount; true if any of these
    amounts is unknown. Prices from the price history may differ from the paid prices. Pure.
    """
    totals = [item.line_total for item in order.items]
    paid = order.product_amt
    return (
        paid is None or None in totals or sum(map(Decimal, filter(None, totals))) == Decimal(paid)
    )


def _item_in_full(item: ItemRow, card: CardOfItem) -> ItemInFull:
    return ItemInFull(
        **msgspec.structs.asdict(item_body(item)),
        set_name=card.set_name,
        rarity=card.rarity,
        card_id=card.card_id,
        card_price=usd(card.price),
        locations=[
            ItemPlace(Place(box, slot).code, quantity) for box, slot, quantity in card.places
        ],
        estimated_total=money(card.estimated_total),
    )


class OrdersPage(msgspec.Struct):
    orders: list[OrderBody]
    """The orders of the page, newest first by default"""
    total: int
    page: int
    per_page: int
    total_pages: int
    status_counts: dict[str, int]
    pull_sessions: list[PullSession]
    """The seller's newest pull sessions"""


class CustomerBody(msgspec.Struct):
    """`key` identifies the customer in URLs. `buyer_name` is empty for a caller who may not see
    buyers. `profit` covers the `costed` copies of the `pieces`, whose cost is known, as of the last
    refresh; null if no cost is known. The amounts are absent for staff who may not see revenue.
    """

    key: str
    """Identifies the customer in URLs"""
    buyer_name: str
    order_count: int
    first_order_at: datetime | None
    last_order_at: datetime | None
    lifetime_total: str | UnsetType = UNSET
    pieces: int | UnsetType = UNSET
    costed: int | UnsetType = UNSET
    profit: str | UnsetType | None = UNSET


class CustomersPage(msgspec.Struct):
    customers: list[CustomerBody]
    """The customers, highest total first"""
    total: int
    page: int
    per_page: int
    total_pages: int
    repeat_rate: float


def earned_fields(kept: TupleRow | None) -> dict[str, Any]:
    """Return a customer's profit fields from `pieces`, `costed` and `profit` of `customer_sum`, all
    null for a customer without a row. The profit is unknown (null) if no copy has a known cost,
    unless all copies were returned: then the profit is their postage. Pure.
    """
    if kept is None:
        return {}
    pieces, costed, profit = kept[0] or 0, kept[1] or 0, kept[2] or Decimal(0)
    known = costed or (profit and not pieces)
    return {"pieces": pieces, "costed": costed, "profit": cents(profit) if known else None}


class AcceptedRows(msgspec.Struct):
    """`count` is the number of rows in the request; GET /api/v1/uploads/{upload_id} returns the
    result of applying them.
    """

    status: Literal["accepted"]
    """Always accepted"""
    count: int
    """The number of rows in the request, new or not"""
    upload_id: int


class FeedbackStored(msgspec.Struct):
    status: Literal["ok"]
    """Always ok"""
    updated: int
    """The number of orders that received feedback"""

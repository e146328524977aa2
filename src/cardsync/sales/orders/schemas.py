"""The JSON structs of orders and customers, and the functions that fill them from rows. Pure.

Money is text in the scale that it arrived with, at least two decimals; texts of strangers are cut
to what can be read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

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
    """An order as the API shows it: columns of `orders`, and when it was placed."""

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


def order_row(row: Sequence[Any], caller: Caller) -> OrderRow:
    """Return a row of `ORDER_COLUMNS`, without the buyer for a caller who may not see one: that is
    the name, the note of a refund and the comment of a feedback.
    """
    order = OrderRow._make(row)
    if caller.sees_buyers:
        return order
    return order._replace(buyer_name=None, refund_note=None, feedback_comment=None)


def settled_row(row: Sequence[Any], caller: Caller) -> SettledRow:
    """Return a row without its note for a caller who may not see buyers."""
    settled = SettledRow._make(row)
    return settled if caller.sees_buyers else settled._replace(note=None)


# The SQL expression of each field of a row.
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
    # The copies that are in hand, and those that the open session wants.
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
    """The columns of `order_item` that are shown, and whose they are."""

    order_id: int
    id: int
    product_name: str | None
    product_line: str | None
    condition: str | None
    quantity: int | None
    unit_price: Decimal | None


class CardOfItem(NamedTuple):
    """The columns of an item that only one order shows, and the card that it is today, if it is
    one. `estimated_total` is the share of an item without a price. `places` are box, slot and
    quantity.
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
    """A card that was missing in a pull, and what was done about it."""

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
    buyers. `shipping_item_count`, `product_weight` and `refund_total_amt` are as they were
    uploaded: `item_count` and `refund_amt` are there without them, too.
    """

    id: int
    order_number: str
    buyer_name: str | None
    order_date: date | None
    order_placed_at: datetime | None
    status: str
    """As the marketplace writes it; Unknown where there is none"""
    product_amt: str | None
    shipping_amt: str | None
    total_amt: str | None
    shipping_type: Annotated[str, Like(ShippingType)]
    item_count: int
    shipped_marked_at: datetime | None
    marked_shipped_pending: bool
    pull_dismissed_at: datetime | None
    pulled_at: datetime | None
    """When its copies were pulled; null: not yet"""
    missing_count: int
    """The items whose card was not found, and about which nothing was decided"""
    copies_pulled: int | None
    """The copies in hand while a pull is under way that has the order; null: none is"""
    copies_to_pull: int | None
    """The copies that this pull wants of it; null: none is under way"""
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
    """The items by id; items_truncated says whether all are here"""
    items_truncated: bool
    items_total_count: int


def money(amount: Decimal | None) -> str | None:
    """`1` → `1.00`, `1.5` → `1.50`, `1.2300` as it is."""
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
    """To two decimals, half-up."""
    if quantity is None or unit_price is None:
        return None
    return str(_rounded(_times(quantity, unit_price), _CENT))


def readable(text: str | None) -> str | None:
    """Without control and zero-width characters, and of a bounded length."""
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
    """By place and not by name: of a page's time in Python, most is spent here.

    Moments are JSON's to write.
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
        # Without an amount there is no refund, whatever the other fields are.
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
    """The slot, as box-slot"""
    quantity: int


class ItemInFull(ItemBody, gc=False):
    """`card_id` and `card_price`: the card that the item is today, null if there is none.
    `estimated_total` is for an item whose price is unknown: its even share, copy by copy, of what
    the items with a price leave of the order's `product_amt`. It is null if nothing is left.
    """

    set_name: str | None
    rarity: str | None
    card_id: int | None
    card_price: str | None
    """The price that the card asks now, in USD; null: there is none"""
    locations: list[ItemPlace]
    estimated_total: str | None
    """Its even share of what the other items leave, in USD"""


class PullOfOrder(msgspec.Struct):
    session_id: int
    status: Annotated[str, Like(PullState)]
    """The session is open, completed or cancelled"""
    opened_at: datetime
    pulled_at: datetime | None


class SettledCard(msgspec.Struct):
    """A card that was missing in a pull, and what was done about it. `refund_amt` is the refund
    that the seller noted: the money itself moves at the marketplace.
    """

    item_id: int
    product_name: str | None
    condition: str | None
    reason: Annotated[str, Like(MissingReason), Reads(lambda reason: reason or "not_there")]
    outcome: Annotated[str, Like(MissingOutcome)]
    refund_amt: Usd | None
    copy: str | None
    """The copy that went in its place: its condition, and where it lay; null: none was named"""
    note: str | None
    """The seller's note; null without one, and for a caller who may not see buyers"""
    settled_at: datetime


class OrderInFull(OrderBody, kw_only=True):
    """An order with every item, the newest pull sessions that had it, and what was done about its
    missing cards.
    """

    items: list[ItemInFull]  # type: ignore[assignment]
    pulls: list[PullOfOrder]
    """The newest pull sessions that had it"""
    settled_cards: list[SettledCard]
    """The cards that were missing, and what was done about each"""


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
    """Return whether the items come to what the buyer paid for them: prices from the history may
    not. Pure.
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
    """The pull sessions that have orders of this page"""


class CustomerBody(msgspec.Struct):
    """`key` names the customer in addresses. `buyer_name` is empty for a caller who may not see
    buyers. `profit` is that of `costed` of the `pieces`, the copies whose cost is known, as of the
    last refresh; null if there is none. The amounts are absent for staff who may not see revenue.
    """

    key: str
    """Names the customer in addresses"""
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
    """By what they have bought in all, the most first"""
    total: int
    page: int
    per_page: int
    total_pages: int
    repeat_rate: float


def earned_fields(kept: Sequence[Any] | None) -> dict[str, Any]:
    """Return the fields of a customer's profit from the pieces, those of them whose cost is known,
    and their profit, each null for a customer who is not kept yet. It is unknown where it holds for
    no copy, but for the postage of copies that came back. Pure.
    """
    if kept is None:
        return {}
    pieces, costed, profit = kept[0] or 0, kept[1] or 0, kept[2] or Decimal(0)
    known = costed or (profit and not pieces)
    return {"pieces": pieces, "costed": costed, "profit": cents(profit) if known else None}


class AcceptedRows(msgspec.Struct):
    """`count` is the number of rows in the request; GET /api/v1/uploads/{upload_id} shows what
    became of them.
    """

    status: Literal["accepted"]
    """Always accepted"""
    count: int
    """The rows of the request, which need not be new"""
    upload_id: int


class FeedbackStored(msgspec.Struct):
    status: Literal["ok"]
    """Always ok"""
    updated: int
    """The orders that received feedback"""

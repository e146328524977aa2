"""Lists refunded orders whose copies the buyer may return, with the shelf places of their cards,
and restocks returned copies.

After a partial refund, the buyer keeps the cards, unless the refund's reason contains "return". An
order is *decided* when all its copies are restocked, or a person has reported that they were not
returned.
`order_item.restocked` counts the restocked copies, which also return to their lots.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, cast, get_args

from psycopg.rows import TupleRow
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of, struct_of_values
from cardsync.platform.shelf_place import BOX, NAMED, WAY, Place
from cardsync.platform.value_types import Values
from cardsync.sales.errors import AlreadyRestocked
from cardsync.sales.lots.stale_cards import mark_sold
from cardsync.sales.orders.returns_schemas import (
    CopiesPut,
    CopiesShown,
    RestockedShown,
    ReturnShown,
    ReturnsPage,
)
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.shelving import places

KIND: Final = "order.restocked"


class Copies(NamedTuple):
    """The copies of an order's line that are not restocked yet (`quantity`). `card_id` is None if
    the seller has no such card. `place` is the card's first place in shelf order; None if the card
    is unassigned.
    """

    item_id: int
    product_name: str | None
    set_name: str | None
    condition: str | None
    quantity: int
    card_id: int | None
    place: Place | None


class PutCopies(NamedTuple):
    card_id: int
    place: Place
    quantity: int


# The buyer keeps the cards: the refund is partial, and its reason does not contain "return".
KEPT: Final = """(
    CASE WHEN o.refund_type IS NULL THEN coalesce(o.refund_amt < o.product_amt, false)
         ELSE o.refund_type = 'partial' END
    AND coalesce(o.refund_reason, '') !~* 'return')"""
# The order was shipped, by the seller's mark or by its status.
_LEFT: Final = """(
    o.shipped_marked_at IS NOT NULL
    OR o.status_group ~* 'shipped|in transit|delivered'
       AND o.status_group !~* 'unshipped|not shipped')"""
# At least one copy of the order is restocked.
_CAME: Final = """(
    r.placed <> '[]' OR EXISTS (SELECT FROM order_item i WHERE i.seller_id = :seller
                                   AND i.order_id = o.id AND i.restocked > 0))"""
_OPEN: Final = """NOT EXISTS (SELECT FROM order_restock r
                       WHERE r.seller_id = :seller AND r.order_id = o.id)"""
# `order_restock` contains the few refunded orders that are decided. ix_orders_refunded contains all
# refunded orders, newest first; ix_orders_to_restock contains the orders that are not kept and have
# not left, so the number in the frame of each page is counted without the other orders.
_UNDECIDED: Final = "orders o WHERE o.seller_id = :seller AND o.refund_amt IS NOT NULL"
_DECIDED: Final = """order_restock r
      JOIN orders o ON o.seller_id = :seller AND o.id = r.order_id AND o.refund_amt IS NOT NULL
     WHERE r.seller_id = :seller"""
ReturnState = Literal["to_restock", "expected", "restocked", "not_back", "partial"]
# The FROM and WHERE clauses for the orders of each state. `waiting` combines `to_restock` and
# `expected`; `decided` combines `restocked` and `not_back`.
_FROM: Final[Mapping[str, str]] = {
    "to_restock": f"{_UNDECIDED} AND NOT {KEPT} AND NOT {_LEFT} AND {_OPEN}",
    "waiting": f"{_UNDECIDED} AND NOT {KEPT} AND {_OPEN}",
    "decided": _DECIDED,
    "expected": f"{_UNDECIDED} AND NOT {KEPT} AND {_LEFT} AND {_OPEN}",
    "restocked": f"{_DECIDED} AND {_CAME}",
    "not_back": f"{_DECIDED} AND NOT {_CAME}",
    "partial": f"{_UNDECIDED} AND {KEPT} AND {_OPEN}",
}
_OF_STATE: Final = {
    state: f"""
    SELECT o.id, o.order_number, o.order_date, o.refund_type, o.refund_amt, o.refund_reason,
           {"r.restocked_at" if where.startswith(_DECIDED) else "NULL"}
      FROM {where}
     ORDER BY o.order_date DESC NULLS LAST, o.id DESC LIMIT :limit OFFSET :offset
"""
    for state, where in _FROM.items()
}
TO_RESTOCK: Final = f"SELECT count(*) FROM {_FROM['to_restock']}"
# Counts the orders of each state with one pass over the refunded orders.
_NUMBERS: Final = f"""
    SELECT undecided.to_restock, undecided.waiting, decided.decided, undecided.expected,
           decided.restocked, decided.not_back, undecided.partial
      FROM (SELECT count(*) FILTER (WHERE NOT kept AND NOT has_left) AS to_restock,
                   count(*) FILTER (WHERE NOT kept) AS waiting,
                   count(*) FILTER (WHERE NOT kept AND has_left) AS expected,
                   count(*) FILTER (WHERE kept) AS partial
              FROM (SELECT {KEPT} AS kept, {_LEFT} AS has_left FROM {_UNDECIDED} AND {_OPEN}
                   ) AS refunded) AS undecided
     CROSS JOIN (SELECT count(*) AS decided, count(*) FILTER (WHERE came) AS restocked,
                        count(*) FILTER (WHERE NOT came) AS not_back
                   FROM (SELECT {_CAME} AS came FROM {_DECIDED}) AS refunded) AS decided
"""
_COPIES: Final = queries_of(__package__)["copies"].format(
    box=BOX, named=NAMED, visible=VISIBLE, way=WAY
)


async def desk(
    reading: Reading,
    caller: Caller,
    paging: Paging,
    *,
    restocked: bool = False,
    state: ReturnState | None = None,
) -> ReturnsPage:
    """Return a page of refunded orders, newest first: those in `state`, or else, depending on
    `restocked`, the decided or the undecided orders.
    """
    wanted = state or ("decided" if restocked else "waiting")
    came = wanted in ("decided", "restocked", "not_back")
    values = {"seller": caller.seller_id, **paging.values}
    found, [numbers] = await reading.together([_OF_STATE[wanted], _NUMBERS], values)
    bound = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "orders": [row[0] for row in found],
        "restocked": came and wanted != "not_back",
    }
    copies = _by_order(await reading.rows(_COPIES, bound)) if found else {}
    counts = dict(zip(_FROM, numbers, strict=True))
    returned = [
        struct_of_values(
            ReturnShown,
            row,
            items=[struct_of(CopiesShown, each) for each in copies.get(row[0], [])],
        )
        for row in found
    ]
    states = {name: counts[name] for name in get_args(ReturnState)}
    return ReturnsPage(returned, *paging.of(counts[wanted]), states)


def _by_order(rows: Sequence[TupleRow]) -> dict[int, list[Copies]]:
    found: dict[int, list[Copies]] = {}
    for order_id, *reported, box, slot in rows:
        place = Place(box, slot) if box is not None else None
        found.setdefault(order_id, []).append(Copies._make([*reported, place]))
    return found


_ORDER: Final = """
    SELECT o.order_number, o.refund_amt, r.restocked_at FROM orders o
      LEFT JOIN order_restock r ON r.seller_id = :seller AND r.order_id = o.id
     WHERE o.seller_id = :seller AND o.id = :order
"""
_DONE: Final = """
    INSERT INTO order_restock (seller_id, order_id, restocked_at, placed)
    VALUES (:seller, :order, :now, CAST(:placed AS jsonb))
"""
_COUNTED: Final = """
    UPDATE order_item i SET restocked = greatest(0, i.restocked + :sign * back.copies)
      FROM unnest(CAST(:items AS bigint[]), CAST(:copies AS integer[])) AS back (item, copies)
     WHERE i.seller_id = :seller AND i.id = back.item
"""
_CARDS: Final = """
    SELECT i.sku_id FROM order_item i
     WHERE i.seller_id = :seller AND i.id = ANY (CAST(:items AS bigint[]))
"""
_DAY: Final = "SELECT order_date FROM orders WHERE seller_id = :seller AND id = :order"
_UNDONE: Final = "DELETE FROM order_restock WHERE seller_id = :seller AND order_id = :order"


async def _refunded_order(session: AsyncSession, values: Mapping[str, int]) -> str:
    """Return the order number of a refunded order that is not decided yet. Raises NotFound,
    AlreadyRestocked, InvalidPayload.
    """
    order = (await session.execute(text(_ORDER), values)).first()
    if order is None:
        raise errors.NotFound(f"there is no order {values['order']}")
    if order.refund_amt is None:
        raise errors.InvalidPayload(f"order {values['order']} is not refunded")
    if order.restocked_at is not None:
        raise AlreadyRestocked
    return cast(str, order.order_number)


async def restock(
    session: AsyncSession,
    caller: Caller,
    order_id: int,
    reported: Sequence[PutCopies] | None,
    now: datetime,
    *,
    came_back: bool = True,
) -> RestockedShown:
    """Restock copies of a refunded order at the places of `reported`; if it is None, every card at
    its first place. The order stays undecided until all copies of the shop's cards are restocked,
    or until `came_back` is false.

    Raises NotFound, AlreadyRestocked, InvalidPayload, StockPromotedReload.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    values = {"seller": caller.seller_id, "order": order_id}
    order_number = await _refunded_order(session, values)
    bound = {"seller": caller.seller_id, "member": caller.member_id, "orders": [order_id]}
    bound["restocked"] = False
    rows = (await session.execute(text(_COPIES), bound)).all()
    copies = _by_order(rows).get(order_id, [])
    if reported is not None:
        _need_of_order(reported, copies)
    put = list(reported) if reported is not None else _first_places(copies) if came_back else []
    for one in put:
        await places.put(session, caller, one.card_id, one.place, one.quantity, now)
    placed = [{"card": one.card_id, **one.place._asdict(), "quantity": one.quantity} for one in put]
    back = _by_item(put, copies)
    left = _left(copies, back)
    done = not came_back or all(each.card_id is None for each in left)
    if done:
        await run(session, _DONE, values | {"now": now, "placed": json.dumps(placed)})
    await _count(session, values, back, 1)
    if put or done:
        number = sum(one.quantity for one in put)
        note(
            session,
            caller,
            KIND,
            f"{number} copies of order {order_number} back in stock"
            if came_back
            else f"copies of order {order_number} did not come back",
            now,
            after={"placed": placed[:20]},
            undo={
                "kind": KIND,
                "order": order_id,
                "placed": placed,
                "back": back,
                "done": done,
            },
        )
    return RestockedShown(
        order_id,
        [CopiesPut(one.card_id, one.place.code, one.quantity) for one in put],
        [struct_of(CopiesShown, each) for each in left],
    )


def _left(copies: Sequence[Copies], back: Sequence[tuple[int, int]]) -> list[Copies]:
    """Return the copies that are not restocked yet. Pure."""
    came = dict(back)
    left = [each._replace(quantity=each.quantity - came.get(each.item_id, 0)) for each in copies]
    return [each for each in left if each.quantity > 0]


def _need_of_order(reported: Sequence[PutCopies], copies: Sequence[Copies]) -> None:
    """Raise InvalidPayload if `reported` contains a card that is not in the order, or more copies
    of a card than the order has left.
    """
    there: dict[int, int] = {}
    for each in copies:
        if each.card_id is not None:
            there[each.card_id] = there.get(each.card_id, 0) + each.quantity
    for one in reported:
        left = there.get(one.card_id, 0) - one.quantity
        if left < 0:
            raise errors.InvalidPayload(
                f"places: the order has fewer than {one.quantity} of card {one.card_id} left"
            )
        there[one.card_id] = left


def _by_item(put: Sequence[PutCopies], copies: Sequence[Copies]) -> list[tuple[int, int]]:
    """Return the item id and the number of restocked copies for each line with such copies."""
    left: dict[int | None, int] = {}
    for one in put:
        left[one.card_id] = left.get(one.card_id, 0) + one.quantity
    back = []
    for each in copies:
        number = min(left.get(each.card_id, 0), each.quantity)
        if number > 0:
            left[each.card_id] -= number
            back.append((each.item_id, number))
    return back


async def _count(
    session: AsyncSession,
    values: Values,
    back: Sequence[Sequence[int]],
    sign: int,
) -> None:
    """Add `sign` times the copies to `order_item.restocked`, and mark lots and profit as outdated."""
    items, copies = [one[0] for one in back], [one[1] for one in back]
    bound = dict(values) | {"items": items, "copies": copies, "sign": sign}
    if not await run(session, _COUNTED, bound):
        return
    await mark_changed(session, _DAY, bound)
    await mark(session, values["seller"], Figure.SALES_SUMS)
    await mark_sold(session, _CARDS, bound)


def _first_places(copies: Sequence[Copies]) -> list[PutCopies]:
    return [
        PutCopies(each.card_id, each.place, each.quantity)
        for each in copies
        if each.card_id is not None and each.place is not None and each.quantity > 0
    ]


async def undo_restock(undoing: Undoing) -> None:
    """Remove the restocked copies from their places, so that the order is undecided again. Raises
    ChangedSince if a copy is no longer at its place.
    """
    session, caller, undo = undoing.session, undoing.caller, undoing.entry
    await locked(session, Lock.SHOP, caller.seller_id)
    for put in undo["placed"]:
        place = Place(put["box"], put["slot"])
        try:
            await places.remove(
                session,
                caller,
                put["card"],
                place,
                put["quantity"],
                undoing.now,
            )
        except (errors.NotFound, errors.InvalidPayload) as e:
            raise errors.ChangedSince(str(e)) from e
    values = {"seller": caller.seller_id, "order": undo["order"]}
    if not await run(session, _UNDONE, values) and undo.get("done", True):
        raise errors.ChangedSince(f"order {undo['order']} is already on the returns desk")
    await _count(session, values, undo.get("back", []), -1)

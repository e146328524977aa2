"""Lists the cards that were not found in pulls, and stores the seller's decision about each. A
missing card remains in the list, even after its pull has ended, until the seller decides.

With the outcomes `found` and `other_copy`, the copies count as pulled. With `refund` and `message`,
the order is sent without the card. If nothing else of the order is left to pull, the decision marks
the order as pulled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.notify import notify
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import in_one_message, run
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import read_amount, usd
from cardsync.platform.shelf_place import BOX, NAMED, WAY, Place
from cardsync.platform.value_types import Values
from cardsync.sales.errors import MissingSettled
from cardsync.sales.orders.pull_models import MissingOutcome, PullSessionItem
from cardsync.sales.orders.pull_sessions import PULLS
from cardsync.sales.orders.pullable import UNSETTLED
from cardsync.sales.pulling.queue import Entry, read_queue
from cardsync.sales.pulling.schemas import MissingCard, OtherCopy
from cardsync.stock.cards.visible import VISIBLE

KIND: Final = "order.missing_settled"
# The outcomes with which the copies count as pulled.
IN_HAND: Final = ("found", "other_copy")
_WORDS: Final[Mapping[MissingOutcome, str]] = {
    "found": "found after all",
    "other_copy": "replaced by another copy",
    "refund": "refunded",
    "message": "waiting for the buyer's answer",
}
_LIST: Final = queries_of(__package__)["list"].format(
    box=BOX, named=NAMED, visible=VISIBLE, way=WAY, unsettled=UNSETTLED
)
# Other copies of the missing card: first those of the same listing at other places, then those in
# another condition or printing. The most expensive are first, because the buyer must not get a
# worse copy.
_COPIES: Final = f"""
    SELECT missing.id, c.id, c.condition_label, c.price, c.quantity, {BOX}, l.slot
      FROM card missing
      JOIN card c ON c.seller_id = :seller AND {VISIBLE} AND NOT c.gone AND c.quantity > 0
                 AND (c.id = missing.id OR c.product_name = missing.product_name
                      AND c.set_name = missing.set_name AND c.number = missing.number
                      AND c.product_line = missing.product_line)
      LEFT JOIN card_location l ON l.seller_id = :seller AND l.card_id = c.id
      {NAMED}
     WHERE missing.seller_id = :seller AND missing.id = ANY (CAST(:cards AS bigint[]))
     ORDER BY missing.id, c.id <> missing.id, c.price DESC NULLS LAST, c.id, {WAY}, l.slot
"""
MOST: Final = 200


def refund_of(given: object) -> Decimal | None:
    """Return the amount of a refund; None if it is empty. Pure. Raises InvalidPayload."""
    if given in (None, ""):
        return None
    try:
        amount = read_amount(given)
    except ValueError as problem:
        raise errors.InvalidPayload(f"refund_amt: {problem}") from None
    if amount <= 0:
        raise errors.InvalidPayload("refund_amt: must be more than 0")
    return amount


class _Settled(NamedTuple):
    session_id: int
    product_name: str | None
    order_number: str


async def missing_cards(
    source: Source,
    caller: Caller,
    *,
    order_ids: Sequence[int] | None = None,
    session_id: int | None = None,
) -> list[MissingCard]:
    """Return the missing cards without a decision, oldest first: of some orders, of a session, or
    all of them.
    """
    named: Values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "orders": None if order_ids is None else list(order_ids),
        "session": session_id,
        "most": MOST,
    }
    [rows] = await in_one_message(source, [_LIST], named)
    cards = [row.card_id for row in rows if row.card_id is not None]
    copies: dict[int, list[OtherCopy]] = {}
    if cards:
        named |= {"cards": cards}
        for missing, card_id, label, price, quantity, box, slot in await found(
            source, _COPIES, named
        ):
            place = None if box is None else Place(box, slot).code
            copy = OtherCopy(card_id, label or "", usd(price), quantity, place, missing == card_id)
            copies.setdefault(missing, []).append(copy)
    shown = [struct_of(MissingCard, row, caller, other_copies=[]) for row in rows]
    for card in shown:
        card.other_copies = [
            copy
            for copy in copies.get(card.card_id or 0, [])
            if not copy.same or copy.location_code != card.location_code
        ]
    return shown


_SETTLE: Final = f"""
    UPDATE pull_session_item i
       SET missing_outcome = :outcome, missing_refund = :refund, missing_copy = :copy,
           missing_note = :note, settled_at = :now
      FROM pull_session s, orders
     WHERE i.seller_id = :seller AND i.order_id = :order AND i.item_id = :item AND {UNSETTLED}
       AND s.seller_id = :seller AND s.id = i.session_id AND s.state <> 'cancelled'
       AND orders.seller_id = :seller AND orders.id = i.order_id
    RETURNING i.session_id, i.product_name, orders.order_number
"""
_DECIDED: Final = """
    SELECT missing_outcome FROM pull_session_item
     WHERE seller_id = :seller AND order_id = :order AND item_id = :item
       AND missing_outcome IS NOT NULL ORDER BY settled_at DESC LIMIT 1
"""
_TAKE: Final = """
    INSERT INTO pull_mark (seller_id, session_id, id, link_id, item_id, order_id, sku_id, kind,
           quantity, undoes, device, sequence, person, received_at)
    SELECT :seller, i.session_id, :mark, 0, i.item_id, i.order_id, i.sku_id, 'pulled', :left, '',
           'desk', 0, 'Desk', :now
      FROM (SELECT session_id, item_id, order_id, sku_id FROM pull_session_item
             WHERE seller_id = :seller AND session_id = :session AND item_id = :item OFFSET 0) i
"""
_PULL: Final = """
    UPDATE pull_session_order p SET pulled_at = :now
     WHERE p.seller_id = :seller AND p.session_id = :session AND p.order_id = :order
       AND p.pulled_at IS NULL
"""
_NOT_MISSING: Final = f"""
    UPDATE pull_session_order p SET missing_at = NULL
     WHERE p.seller_id = :seller AND p.session_id = :session AND p.order_id = :order
       AND NOT EXISTS (SELECT FROM pull_session_item i
                        WHERE i.seller_id = :seller AND i.session_id = :session
                          AND i.order_id = :order AND {UNSETTLED})
"""


class WayOut(NamedTuple):
    """A decision about a missing card. `refund` is the amount that the buyer gets back through the
    marketplace; `card_id` and `location_code` identify the copy that is sent instead.
    """

    outcome: MissingOutcome
    refund: Decimal | None = None
    card_id: int | None = None
    location_code: str | None = None
    note: str = ""


async def _settle_card(session: AsyncSession, named: Mapping[str, object]) -> _Settled | None:
    """Store the decision about a missing card; return None if the same decision was stored before.
    Raises NotFound, and MissingSettled if another decision was stored.
    """
    row = (await session.execute(text(_SETTLE), named)).first()
    if row is not None:
        return _Settled(*row)
    decided = await session.scalar(text(_DECIDED), named)
    if decided is None:
        raise errors.NotFound(f"no card {named['item']} of order {named['order']} is missing")
    if decided != named["outcome"]:
        raise MissingSettled
    return None


async def _pull_settled(
    session: AsyncSession, caller: Caller, named: Values, now: datetime
) -> bool:
    """Mark the copies as pulled if the outcome provides them, then mark the order as pulled if
    nothing is left to pull. Return whether the order was marked as pulled.
    """
    order = (named["session"], named["order"], now)
    entries = await _entries(session, caller, *order)
    lines = (entry.line for entry in entries if entry.item_id == named["item"])
    left = next((line.wanted - line.pulled for line in lines), 0)
    if named["outcome"] in IN_HAND and left > 0:
        await run(session, _TAKE, {**named, "left": left})
        entries = await _entries(session, caller, *order)
    done = bool(entries) and all(entry.done for entry in entries)
    return done and await run(session, _PULL, named) > 0


async def settle(
    session: AsyncSession,
    caller: Caller,
    order_id: int,
    item_id: int,
    way: WayOut,
    now: datetime,
) -> list[MissingCard]:
    """Store the decision about a missing card, and return the order's other missing cards without a
    decision. A repeated call changes nothing.

    Raises NotFound, InvalidPayload, and MissingSettled if another decision was stored.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    outcome, refund = way.outcome, way.refund
    named: Values = {
        "seller": caller.seller_id,
        "order": order_id,
        "item": item_id,
        "outcome": outcome,
        "refund": refund if outcome == "refund" else None,
        "copy": await _copy(session, caller, order_id, item_id, way),
        "note": way.note.strip() or None,
        "now": now,
    }
    if refund is not None and outcome != "refund":
        raise errors.InvalidPayload("refund_amt: belongs to the outcome refund alone")
    settled = await _settle_card(session, named)
    if settled is None:
        return await missing_cards(session, caller, order_ids=[order_id])
    named |= {"session": settled.session_id, "mark": f"settled-{round(now.timestamp() * 1e6)}"}
    named["mark"] += f"-{item_id}"
    pulled = await _pull_settled(session, caller, named, now)
    await run(session, _NOT_MISSING, named)
    await notify(session, PULLS, f"{caller.seller_id}:{settled.session_id}")
    name = settled.product_name or "a card"
    note(
        session,
        caller,
        KIND,
        f"{name} of order {settled.order_number} {_WORDS[outcome]}"
        + (f": {named['copy']}" if named["copy"] else ""),
        now,
        after={"outcome": outcome} | ({"refund_amt": str(refund)} if refund is not None else {}),
        undo={
            "kind": KIND,
            "order": order_id,
            "item": item_id,
            "session": settled.session_id,
            "outcome": outcome,
            "mark": named["mark"],
            "pulled": pulled,
        },
    )
    return await missing_cards(session, caller, order_ids=[order_id])


async def _copy(
    session: AsyncSession, caller: Caller, order_id: int, item_id: int, way: WayOut
) -> str | None:
    """Return the condition and place of the chosen copy as text. Raises InvalidPayload."""
    if way.card_id is None:
        return None
    if way.outcome != "other_copy":
        raise errors.InvalidPayload("card_id: belongs to the outcome other_copy alone")
    # In a repeated call the card is no longer missing, so the result is None.
    for card in await missing_cards(session, caller, order_ids=[order_id]):
        for copy in card.other_copies if card.item_id == item_id else ():
            if (copy.card_id, copy.location_code) == (way.card_id, way.location_code):
                return ", ".join(filter(None, [copy.condition_label, copy.location_code]))
        if card.item_id == item_id:
            raise errors.InvalidPayload("card_id: names none of the card's other copies there")
    return None


async def _entries(
    session: AsyncSession, caller: Caller, session_id: int, order_id: int, now: datetime
) -> list[Entry]:
    queue = await read_queue(session, caller, session_id, now)
    return [entry for entry in queue.entries if entry.order_id == order_id]


_UNTAKE: Final = """
    UPDATE pull_mark SET undone = true
     WHERE seller_id = :seller AND session_id = :session AND id = :mark
"""
_UNPULL: Final = """
    UPDATE pull_session_order
       SET pulled_at = CASE WHEN :pulled THEN NULL ELSE pulled_at END,
           missing_at = coalesce(missing_at, (
               SELECT i.missing_at FROM pull_session_item i
                WHERE i.seller_id = :seller AND i.session_id = :session AND i.order_id = :order
                  AND i.item_id = :item))
     WHERE seller_id = :seller AND session_id = :session AND order_id = :order
"""


async def _settled(undoing: Undoing) -> Swap:
    card = (undoing["session"], undoing["order"], undoing["item"])
    return Swap({card: {"missing_outcome": undoing["outcome"]}}, {card: {}})


async def _unsettled(undoing: Undoing) -> None:
    await undoing.run(_UNTAKE, _UNPULL)
    await notify(undoing.session, PULLS, f"{undoing.seller_id}:{undoing['session']}")


UNDO: Final = UndoRows(
    RowImages(
        PullSessionItem,
        "missing_outcome",
        unseen=("missing_refund", "missing_copy", "missing_note", "settled_at"),
        keys=("session_id", "order_id", "item_id"),
    ),
    "card {item} of order {order} was decided again",
    read=_settled,
    then=_unsettled,
)

"""Takes a paid offer into stock. Each line becomes a draft of quick-add with cost, price and place;
if the card is in the inventory, a lot is added, too. The owner publishes the drafts later.

All of this is one transaction with the offer's last change of state. If the process is killed, the
offer stays paid, and the next request takes it into stock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller, as_owner
from cardsync.access.each_seller import AT_ONCE, all_sellers
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.offers.models import BuyingOfferLine
from cardsync.buying.offers.offer_amounts import USUAL_GRADES, need_next
from cardsync.buying.offers.offer_reads import lines_of, offer_to_change, one_offer
from cardsync.buying.offers.schemas import OfferInFull
from cardsync.buying.rules.asking_prices import asking_prices
from cardsync.platform import limits
from cardsync.platform.database.session import Database
from cardsync.platform.money import from_units
from cardsync.platform.shelf_place import NAMED, WAY
from cardsync.sales.lots.add_lots import NewLot, add_lots
from cardsync.stock.quick_add.checked_entry import Described, Wanted, columns_of
from cardsync.stock.quick_add.drafts import keep_drafts
from cardsync.stock.quick_add.models import QuickAdd
from cardsync.stock.quick_add.served_entries import SAME_CARD

_CARDS: Final = f"""
    SELECT DISTINCT ON (q.id) q.id AS entry, c.id AS card, c.marketplace_id,
           coalesce(c.target_price, c.price) AS price
      FROM quick_add q LEFT JOIN product p ON p.id = q.product_id JOIN card c ON {SAME_CARD}
     WHERE q.seller_id = :seller AND q.id = ANY (CAST(:entries AS bigint[]))
     ORDER BY q.id, c.gone, c.id
"""
# `_LYING` reads the place with the most copies of each card. `_LAST` reads the last occupied slot
# of the last box.
_LYING: Final = f"""
    SELECT DISTINCT ON (l.card_id) l.card_id, l.box, b.label, l.slot
      FROM card_location l {NAMED}
     WHERE l.seller_id = :seller AND l.card_id = ANY (CAST(:cards AS bigint[]))
     ORDER BY l.card_id, l.quantity DESC, {WAY}, l.slot
"""
_LAST: Final = f"""
    SELECT l.box, b.label, max(l.slot) AS slot FROM card_location l {NAMED}
     WHERE l.seller_id = :seller GROUP BY l.box, b.label, b.way ORDER BY {WAY} DESC LIMIT 1
"""
# The lines in stock without a lot whose card has been listed in the inventory since.
_LATE: Final = """
    SELECT l.id, c.marketplace_id, o.received_at
      FROM buying_offer_line l
      JOIN buying_offer o ON o.seller_id = :seller AND o.id = l.offer_id
      JOIN quick_add q ON q.seller_id = :seller AND q.id = l.quick_add_id
      JOIN card c ON c.seller_id = :seller AND c.id = q.card_id
     WHERE l.seller_id = :seller AND l.lot_id IS NULL AND q.card_id IS NOT NULL
     ORDER BY l.id LIMIT :most
"""


async def take_into_stock(
    session: AsyncSession, caller: Caller, offer_id: int, revision: int, now: datetime
) -> OfferInFull:
    """Take the offer into stock. Raises OwnerRequired, RefusedByGrant, NotFound, RevisionConflict,
    OfferStateWrong.
    """
    must_bind_shop(caller)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    need_next(offer.state, "in_stock")
    lines = await lines_of(session, caller.seller_id, offer_id)
    came = [line for line in lines if line.accepted and line.received_copies]
    if came:
        entries = await keep_drafts(session, caller, [_draft(line) for line in came], now)
        for line, entry in zip(came, entries, strict=True):
            line.quick_add_id = entry.id
        named = {"seller": caller.seller_id, "entries": [entry.id for entry in entries]}
        listed = {row.entry: row for row in await session.execute(text(_CARDS), named)}
        await _set_prices(session, caller, came, entries, listed, now)
        await _propose_places(session, caller, entries, listed)
        came_at = offer.received_at or now
        known = [
            (line, listed[line.quick_add_id].marketplace_id, came_at)
            for line in came
            if line.quick_add_id in listed
        ]
        await _give_lots(session, caller, known)
    offer.state, offer.stocked_at, offer.secret_hash = "in_stock", now, None
    summary = f"offer {offer.id}: {len(came)} drafts of new listings"
    note(session, caller, "offer.stocked", summary, now)
    return await one_offer(session, caller, offer.id)


async def _set_prices(
    session: AsyncSession,
    caller: Caller,
    lines: Sequence[BuyingOfferLine],
    entries: Sequence[QuickAdd],
    listed: Mapping[int, Any],
    now: datetime,
) -> None:
    """Set the price of each draft to the target or price of the shop's listing of the same card. If
    the shop has none, set the price that the shop's pricing rules give.
    """
    unlisted = []
    for line, entry in zip(lines, entries, strict=True):
        card = listed.get(entry.id)
        entry.price = card.price if card else None
        if entry.price is None:
            unlisted.append((line, entry))
    asked = [
        (
            WantedLine(
                line.id,
                line.product_id,
                entry.condition,
                line.printing,
                line.language,
                entry.quantity,
                price_of=line.price_of,
            ),
            line.grades or USUAL_GRADES,
        )
        for line, entry in unlisted
    ]
    prices = await asking_prices(session, caller.seller_id, asked, now)
    for (_, entry), units in zip(unlisted, prices, strict=True):
        entry.price = None if units is None else from_units(units)


async def _propose_places(
    session: AsyncSession, caller: Caller, entries: Sequence[QuickAdd], listed: Mapping[int, Any]
) -> None:
    """Set the place of each draft to the place with the most copies of its card. Drafts of other
    cards get the next free slots of the last box. In a shop without shelves, drafts get no places.
    """
    of_seller = {"seller": caller.seller_id}
    last = (await session.execute(text(_LAST), of_seller)).one_or_none()
    if last is None:
        return
    cards = [row.card for row in listed.values()]
    found = await session.execute(text(_LYING), of_seller | {"cards": cards})
    lying = {row.card_id: row for row in found}
    free = last.slot + 1
    for entry in entries:
        card = listed.get(entry.id)
        known = lying.get(card.card) if card else None
        if known is not None:
            entry.box, entry.box_label, entry.slot = known.box, known.label, known.slot
        elif free <= limits.SHELF_NUMBER:
            entry.box, entry.box_label, entry.slot = last.box, last.label, free
            free += 1


async def give_late_lots(database: Database, now: datetime) -> int:
    """Add the missing lots of all sellers: lots of cards that were not in the inventory when they
    were taken into stock, and are now. Return the number of added lots.
    """
    given = 0
    for seller_id in await all_sellers(database):
        caller = await as_owner(database, seller_id)
        if caller is None:
            continue
        async with database.tenant(seller_id) as session:
            found = await session.execute(text(_LATE), {"seller": seller_id, "most": AT_ONCE})
            cards = {row.id: (row.marketplace_id, row.received_at or now) for row in found}
            if not cards:
                continue
            rows = await session.scalars(
                select(BuyingOfferLine)
                .where(
                    BuyingOfferLine.seller_id == seller_id,
                    BuyingOfferLine.id.in_(list(cards)),
                    BuyingOfferLine.lot_id.is_(None),
                )
                .order_by(BuyingOfferLine.id)
                .with_for_update(skip_locked=True)
            )
            known = [(line, *cards[line.id]) for line in rows]
            await _give_lots(session, caller, known)
            given += len(known)
    return given


async def _give_lots(
    session: AsyncSession,
    caller: Caller,
    cards: Sequence[tuple[BuyingOfferLine, int, datetime]],
) -> None:
    """Add a lot for each line. Its purchase date is the day, in the shop's time zone, on which the
    copies arrived.
    """
    lots = [
        NewLot(
            marketplace_id,
            line.received_copies or 0,
            line.cost_each,
            caller.today(came_at),
            "offer",
            line.offer_id,
            line.rule_id,
        )
        for line, marketplace_id, came_at in cards
    ]
    ids = await add_lots(session, caller, lots)
    for (line, *_), lot_id in zip(cards, ids, strict=True):
        line.lot_id = lot_id


def _draft(line: BuyingOfferLine) -> dict[str, object]:
    wanted = Wanted(
        line.received_copies or 0,
        line.received_condition,
        line.printing,
        line.language,
        line.product_id,
        cost=line.cost_each,
        source=f"offer {line.offer_id}",
    )
    product = Described(
        line.product_id,
        line.product_line,
        line.product_name,
        line.set_name,
        line.number,
        line.rarity,
    )
    return columns_of(wanted, product, "")

"""Makes draft offers, changes and prices their lines, and deletes them. Staff may do all of this,
because a draft does not bind the shop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType
from sqlalchemy import delete, insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.collections.value_collection import lines_of as lines_of_file
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.limits import OFFER_NOTE_CHARACTERS
from cardsync.buying.offers.models import BuyingOffer, BuyingOfferLine, Source
from cardsync.buying.offers.offer_amounts import USUAL_GRADES, Priced, totals
from cardsync.buying.offers.offer_reads import lines_of, offer_row, offer_to_change, one_offer
from cardsync.buying.offers.price_lines import OfferWant, priced
from cardsync.buying.offers.schemas import OfferInFull, OfferTotals
from cardsync.buying.store_credit.buying_customers import customer_row
from cardsync.platform import errors
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.kit.struct_rows import struct_of

DELETED: Final = "offer.deleted"
_OFFER: Final = RowImages(
    BuyingOffer,
    "state",
    unseen=("revision", "source", "collection_id", "customer_id", "note", "created_by"),
)
_LINE_COLUMNS: Final = (
    "offer_id",
    "product_id",
    "product_line",
    "set_name",
    "product_name",
    "number",
    "rarity",
    "condition",
    "printing",
    "language",
    "copies",
    "cash_each",
    "credit_each",
    "reason",
    "reason_code",
    "price_of",
    "price_taken",
    "other_finishes",
    "grades",
    "by_hand",
    "rule_id",
    "held",
    "explanation",
)


async def draft_offer(
    session: AsyncSession,
    caller: Caller,
    wants: Sequence[OfferWant] | None,
    now: datetime,
    *,
    customer_id: int | None = None,
    note_text: str = "",
    collection_id: int | None = None,
) -> OfferInFull:
    """Make a draft offer for the cards `wants` or for a collection's matched rows, priced by the
    current rules. Raises InvalidPayload, NotFound.
    """
    if collection_id is not None:
        lines = await lines_of_file(session, caller, collection_id)
        wants = [_want(line) for line in lines if line.condition in USUAL_GRADES]
    wants = wants or []
    offer = await new_offer(
        session,
        caller,
        await priced(session, caller, wants, now),
        now,
        by=caller.actor,
        customer_id=customer_id,
        note_text=note_text,
        source="hand" if collection_id is None else "collection",
        collection_id=collection_id,
    )
    note(
        session,
        caller,
        "offer.drafted",
        f"offer {offer.id}: {len(wants)} card{'' if len(wants) == 1 else 's'}",
        now,
    )
    return await one_offer(session, caller, offer.id)


def _want(line: WantedLine) -> OfferWant:
    return struct_of(OfferWant, line, printing=line.finish, price_of=None)


async def new_offer(
    session: AsyncSession,
    caller: Caller,
    lines: Sequence[Mapping[str, object]],
    now: datetime,
    *,
    by: str,
    customer_id: int | None,
    note_text: str,
    source: Source,
    collection_id: int | None = None,
) -> BuyingOffer:
    """Make a draft of priced lines. Raises InvalidPayload, NotFound."""
    if customer_id is not None:
        await customer_row(session, caller, customer_id)
    offer = BuyingOffer(
        seller_id=caller.seller_id,
        revision=1,
        state="draft",
        source=source,
        collection_id=collection_id,
        customer_id=customer_id,
        note=_readable(note_text),
        created_by=by,
        created_at=now,
        updated_at=now,
    )
    session.add(offer)
    await session.flush()
    await _put_lines(session, offer.seller_id, offer.id, lines)
    return offer


async def change_draft(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    now: datetime,
    *,
    wants: Sequence[OfferWant] | UnsetType = UNSET,
    customer_id: int | UnsetType | None = UNSET,
    note_text: str | UnsetType = UNSET,
) -> OfferInFull:
    """Change a draft. With `wants`, the cards replace all lines and are priced. The owner may also
    change customer and note of an offer that is not a draft, until it is paid. Raises NotFound,
    RevisionConflict, OfferStateWrong, OwnerRequired, RefusedByGrant, BuyersHidden, InvalidPayload.
    """
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    if wants is not UNSET or offer.state not in ("offered", "accepted", "received"):
        need_draft(offer)
    if offer.state != "draft":
        # The offer binds the shop now, and its customer gets the credit.
        must_bind_shop(caller)
    if customer_id is not UNSET:
        if customer_id is not None:
            await customer_row(session, caller, customer_id)
        offer.customer_id = customer_id
    if note_text is not UNSET:
        caller.must_see_buyers()
        offer.note = _readable(note_text)
    if wants is not UNSET:
        lines = await priced(session, caller, wants, now)
        await _drop_lines(session, offer)
        await _put_lines(session, offer.seller_id, offer.id, lines)
    note(session, caller, "offer.changed", f"offer {offer.id} changed", now)
    return await one_offer(session, caller, offer.id)


async def delete_draft(session: AsyncSession, caller: Caller, offer_id: int, now: datetime) -> None:
    """Delete a draft. Raises NotFound, OfferStateWrong."""
    offer = await offer_row(session, caller.seller_id, offer_id, locked=True)
    need_draft(offer)
    lines = await lines_of(session, caller.seller_id, offer_id)
    undo = {
        "kind": DELETED,
        "offer": _OFFER.of(offer),
        "lines": [_image(line) for line in lines],
    }
    await session.delete(offer)
    note(session, caller, "offer.deleted", f"offer {offer_id} deleted", now, undo=undo)


async def _deleted(undoing: Undoing) -> Swap:
    offer = undoing["offer"]
    return Swap({offer["id"]: None}, {offer["id"]: offer})


UNDELETE: Final = UndoRows(
    _OFFER,
    "offer {id} was restored",
    read=_deleted,
    then=lambda of: _put_lines(of.session, of.seller_id, of["offer"]["id"], of["lines"]),
)


async def change_lines(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    more: Sequence[OfferWant],
    changed: Mapping[int, OfferWant | None],
    now: datetime,
    *,
    customer_id: int | UnsetType | None = UNSET,
    note_text: str | UnsetType = UNSET,
) -> OfferInFull:
    """Change lines of a draft, remove the lines whose change is None, and append the cards `more`.
    All lines are priced again. Raises the same errors as `change_draft`.
    """
    lines = await lines_of(session, caller.seller_id, offer_id)
    return await change_draft(
        session,
        caller,
        offer_id,
        revision,
        now,
        wants=_wants_after(lines, changed, more),
        customer_id=customer_id,
        note_text=note_text,
    )


async def preview_lines(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    more: Sequence[OfferWant],
    changed: Mapping[int, OfferWant | None],
    now: datetime,
) -> OfferTotals:
    """Return the sums that a draft would have after a change of its lines. Nothing is stored.
    Raises NotFound, OfferStateWrong, InvalidPayload.
    """
    need_draft(await offer_row(session, caller.seller_id, offer_id))
    lines = await lines_of(session, caller.seller_id, offer_id)
    found = await priced(session, caller, _wants_after(lines, changed, more), now)
    sums = totals(Priced(x["copies"], x["cash_each"], x["credit_each"]) for x in found)
    return struct_of(OfferTotals, sums)


def _wants_after(
    lines: Sequence[BuyingOfferLine],
    changed: Mapping[int, OfferWant | None],
    more: Sequence[OfferWant],
) -> list[OfferWant]:
    """Return the cards of the changed lines in their order, then the new cards. Copies of the same
    card are joined.
    """
    kept: dict[object, OfferWant] = {}
    for line in lines:
        want = changed[line.id] if line.id in changed else _again(line)
        if want is None:
            continue
        key = tuple(getattr(want, name) for name in OfferWant.__struct_fields__ if name != "copies")
        if key in kept:
            kept[key].copies += want.copies
        else:
            kept[key] = want
    return [*kept.values(), *more]


def _again(line: BuyingOfferLine) -> OfferWant:
    prices: dict[str, object] = {} if line.by_hand else {"cash_each": None, "credit_each": None}
    return struct_of(OfferWant, line, **prices)


def need_draft(offer: BuyingOffer) -> None:
    """Refuse an offer that is not a draft. Raises OfferStateWrong."""
    if offer.state != "draft":
        raise errors.OfferStateWrong(f"offer {offer.id} is no longer a draft")


async def _put_lines(
    session: AsyncSession, seller_id: int, offer_id: int, lines: Sequence[Mapping[str, object]]
) -> None:
    own = {"seller_id": seller_id, "offer_id": offer_id}
    await session.execute(insert(BuyingOfferLine), [{**line, **own} for line in lines])


async def _drop_lines(session: AsyncSession, offer: BuyingOffer) -> None:
    await session.execute(
        delete(BuyingOfferLine).where(
            BuyingOfferLine.seller_id == offer.seller_id, BuyingOfferLine.offer_id == offer.id
        )
    )


def _image(line: BuyingOfferLine) -> dict[str, object]:
    row = {name: getattr(line, name) for name in _LINE_COLUMNS}
    prices = ("cash_each", "credit_each")
    return row | {name: None if row[name] is None else str(row[name]) for name in prices}


def _readable(given: str) -> str:
    kept = given.strip()
    if len(kept) > OFFER_NOTE_CHARACTERS:
        raise errors.InvalidPayload(f"note: must have at most {OFFER_NOTE_CHARACTERS} characters")
    return kept

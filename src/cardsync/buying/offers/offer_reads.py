"""Reads offers: one offer with its lines, or a page of offers, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.limits import BUYING_OFFERS_SHOWN
from cardsync.buying.offers.models import BuyingOffer, BuyingOfferLine, State
from cardsync.buying.offers.offer_amounts import Totals, totals
from cardsync.buying.offers.schemas import (
    Offer,
    OfferInFull,
    OfferLine,
    Offers,
    OfferTotals,
    counted,
)
from cardsync.buying.store_credit.models import BuyingCustomer
from cardsync.platform import errors
from cardsync.platform.kit import row_pages
from cardsync.platform.kit.struct_rows import struct_of

LINE = BuyingOfferLine
# The SQL expressions for a line's current copies and prices. The function `counted` of `schemas.py`
# computes the same values from a loaded row.
_COPIES: Final = func.coalesce(LINE.received_copies, LINE.copies)
_NOW = LINE.received_copies.is_not(None)


async def one_offer(session: AsyncSession, caller: Caller, offer_id: int) -> OfferInFull:
    """Return one offer with its lines. Raises NotFound."""
    return await in_full(session, caller, await offer_row(session, caller.seller_id, offer_id))


async def in_full(session: AsyncSession, caller: Caller, offer: BuyingOffer) -> OfferInFull:
    lines = await lines_of(session, caller.seller_id, offer.id)
    name = None
    if offer.customer_id is not None:
        name = await session.scalar(
            select(BuyingCustomer.name).where(
                BuyingCustomer.seller_id == caller.seller_id,
                BuyingCustomer.id == offer.customer_id,
            )
        )
    return struct_of(
        OfferInFull,
        offer,
        caller,
        customer_name=caller.buyer(name) or "",
        totals=struct_of(OfferTotals, totals(counted(line) for line in lines)),
        lines=[struct_of(OfferLine, line) for line in lines],
    )


async def find_offers(
    session: AsyncSession,
    caller: Caller,
    state: State | None,
    customer_id: int | None,
    before: int | None,
) -> Offers:
    """Return a page of offers, newest first."""
    query = (
        select(BuyingOffer, BuyingCustomer.name)
        .outerjoin(
            BuyingCustomer,
            (BuyingCustomer.seller_id == caller.seller_id)
            & (BuyingCustomer.id == BuyingOffer.customer_id),
        )
        .where(BuyingOffer.seller_id == caller.seller_id)
    )
    if state is not None:
        query = query.where(BuyingOffer.state == state)
    if customer_id is not None:
        query = query.where(BuyingOffer.customer_id == customer_id)
    those = row_pages.before(query, BuyingOffer.id, before, BUYING_OFFERS_SHOWN)
    found = (await session.execute(those)).all()
    page = row_pages.cut(found, BUYING_OFFERS_SHOWN, lambda row: row[0].id)
    sums = await _sums(session, caller.seller_id, [offer.id for offer, _ in page.rows])
    none = totals([])
    shown = [
        struct_of(
            Offer,
            offer,
            caller,
            customer_name=caller.buyer(name) or "",
            totals=struct_of(OfferTotals, sums.get(offer.id, none)),
        )
        for offer, name in page.rows
    ]
    return Offers(shown, page.next)


async def offer_row(
    session: AsyncSession, seller_id: int, offer_id: int, *, locked: bool = False
) -> BuyingOffer:
    """Return an offer's row. Raises NotFound."""
    query = select(BuyingOffer).where(
        BuyingOffer.seller_id == seller_id, BuyingOffer.id == offer_id
    )
    if locked:
        query = query.with_for_update().execution_options(populate_existing=True)
    found = await session.scalar(query)
    if found is None:
        raise errors.NotFound(f"there is no offer {offer_id}")
    return found


async def offer_to_change(
    session: AsyncSession, caller: Caller, offer_id: int, revision: int, now: datetime
) -> BuyingOffer:
    """Lock an offer for its next change, and increase its revision. Raises NotFound,
    RevisionConflict.
    """
    offer = await offer_row(session, caller.seller_id, offer_id, locked=True)
    if offer.revision != revision:
        raise errors.RevisionConflict(
            f"offer {offer_id} has changed: it is at revision {offer.revision}; read it again"
        )
    touch(offer, now)
    return offer


def touch(offer: BuyingOffer, now: datetime) -> None:
    offer.revision += 1
    offer.updated_at = now


async def lines_of(
    session: AsyncSession, seller_id: int, offer_id: int
) -> Sequence[BuyingOfferLine]:
    rows = await session.scalars(
        select(LINE).where(LINE.seller_id == seller_id, LINE.offer_id == offer_id).order_by(LINE.id)
    )
    return rows.all()


async def _sums(session: AsyncSession, seller_id: int, ids: Sequence[int]) -> dict[int, Totals]:
    cash = case((_NOW, LINE.received_cash_each), else_=LINE.cash_each)
    credit = case((_NOW, LINE.received_credit_each), else_=LINE.credit_each)
    bought = cash.is_not(None) | credit.is_not(None)
    rows = await session.execute(
        select(
            LINE.offer_id,
            func.coalesce(func.sum(_COPIES).filter(bought), 0),
            func.coalesce(func.sum(_COPIES * cash), 0),
            func.coalesce(func.sum(_COPIES * credit), 0),
            func.count().filter(~bought & (_COPIES > 0)),
        )
        .where(
            LINE.seller_id == seller_id,
            LINE.offer_id.in_(ids),
            LINE.accepted.is_distinct_from(False),
        )
        .group_by(LINE.offer_id)
    )
    return {row[0]: Totals(row[1], Decimal(row[2]), Decimal(row[3]), row[4]) for row in rows}

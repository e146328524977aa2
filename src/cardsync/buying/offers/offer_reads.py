"""Reads offers: one offer with its lines, or a page of offers, newest first."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

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
from cardsync.platform import errors
from cardsync.platform.database.read_sources import (
    Source,
    each_of,
    found,
    newest,
    row_as,
    rows_as,
)
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.struct_rows import struct_of

_CUSTOMER: Final = """
    SELECT c.name FROM buying_offer o JOIN buying_customer c ON c.id = o.customer_id
     WHERE o.seller_id = :seller AND c.seller_id = :seller AND o.id = :offer
"""
_CUSTOMERS: Final = """
    SELECT id, name FROM buying_customer
     WHERE seller_id = :seller AND id = ANY (CAST(:customers AS bigint[]))
"""
# The function `counted` of `schemas.py` computes a line's current copies and prices from a loaded
# row.
_NOW: Final = "CASE WHEN received_copies IS NULL THEN {0} ELSE received_{0} END AS {0}"
_SUMS: Final = f"""
    SELECT offer_id,
           coalesce(sum(copies) FILTER (WHERE coalesce(cash_each, credit_each) IS NOT NULL), 0)
             AS bought,
           coalesce(sum(copies * cash_each), 0) AS cash,
           coalesce(sum(copies * credit_each), 0) AS credit,
           count(*) FILTER (WHERE coalesce(cash_each, credit_each) IS NULL AND copies > 0) AS unbought
      FROM (SELECT offer_id, {", ".join(map(_NOW.format, ("copies", "cash_each", "credit_each")))}
              FROM buying_offer_line
             WHERE seller_id = :seller AND offer_id = ANY (CAST(:offers AS bigint[]))
               AND accepted IS DISTINCT FROM false) line
     GROUP BY offer_id
"""


async def one_offer(source: Source, caller: Caller, offer_id: int) -> OfferInFull:
    """Return one offer with its lines. Raises NotFound."""
    offer, lines, names = await each_of(
        source,
        offer_row(source, caller.seller_id, offer_id),
        lines_of(source, caller.seller_id, offer_id),
        found(source, _CUSTOMER, {"seller": caller.seller_id, "offer": offer_id}),
    )
    return struct_of(
        OfferInFull,
        offer,
        caller,
        customer_name=caller.buyer(names[0][0]) or "" if names else "",
        totals=struct_of(OfferTotals, totals(counted(line) for line in lines)),
        lines=[struct_of(OfferLine, line) for line in lines],
    )


async def find_offers(
    source: Source,
    caller: Caller,
    state: State | None,
    customer_id: int | None,
    before: int | None,
) -> Offers:
    """Return a page of offers, newest first."""
    wanted = {"state": state, "customer_id": customer_id}
    where = " ".join(f"AND {name} = :{name}" for name, one in wanted.items() if one is not None)
    most = BUYING_OFFERS_SHOWN
    page = await newest(source, BuyingOffer, caller.seller_id, before, most, where, **wanted)
    values = {
        "seller": caller.seller_id,
        "offers": [offer.id for offer in page.rows],
        "customers": [offer.customer_id for offer in page.rows if offer.customer_id is not None],
    }
    customers, lines = await in_one_message(source, [_CUSTOMERS, _SUMS], values)
    names: dict[int, str] = dict(customers)
    sums = {row[0]: Totals(row[1], Decimal(row[2]), Decimal(row[3]), row[4]) for row in lines}
    none = totals([])
    shown = [
        struct_of(
            Offer,
            offer,
            caller,
            customer_name=caller.buyer(names.get(offer.customer_id or 0)) or "",
            totals=struct_of(OfferTotals, sums.get(offer.id, none)),
        )
        for offer in page.rows
    ]
    return Offers(shown, page.next)


async def offer_row(
    source: Source, seller_id: int, offer_id: int, *, locked: bool = False
) -> BuyingOffer:
    """Return an offer's row. Raises NotFound."""
    tail = "AND id = :offer FOR UPDATE" if locked else "AND id = :offer"
    offer = await row_as(source, BuyingOffer, seller_id, tail, offer=offer_id)
    if offer is None:
        raise errors.NotFound(f"there is no offer {offer_id}")
    return offer


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


async def lines_of(source: Source, seller_id: int, offer_id: int) -> list[BuyingOfferLine]:
    tail = "AND offer_id = :offer ORDER BY id"
    return await rows_as(source, BuyingOfferLine, seller_id, tail, offer=offer_id)

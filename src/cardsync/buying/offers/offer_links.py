"""Makes the link by which a customer sees one offer, finds the offer of a link's token, and admits
the customer's requests.

A link is shown only when it is made. A new link of an offer ends the previous link. A link works
only while its offer is in a state of `OPEN`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import tokens
from cardsync.access.activity import note
from cardsync.access.caller import Caller, caller_query
from cardsync.access.link_tokens import LINK, admitting_links, opened_by
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.offers.offer_reads import offer_row
from cardsync.buying.offers.schemas import OfferLinkMade, Shop
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database

PATH: Final = "/o"
BUYLIST: Final = "/buylist"
# The states in which a link opens its offer.
OPEN: Final = ("offered", "accepted", "received", "paid")
_LINK: Final = caller_query(
    "offer_link_caller",
    "JOIN buying_offer o ON o.seller_id = a.seller_id AND o.id = $2"
    " AND o.secret_hash IS NOT NULL JOIN seller n ON n.id = a.seller_id"
    " LEFT JOIN public_buylist b ON b.seller_id = a.seller_id",
    "o.state",
    "o.expires_at",
    "n.name",
    "coalesce(b.terms, '')",
    "coalesce(b.is_open, false)",
    "o.secret_hash",
)


class OfferLink(NamedTuple):
    """The offer that a link opens, and the shop."""

    offer_id: int
    shop: Shop


async def make_link(
    session: AsyncSession, caller: Caller, offer_id: int, origin: str, now: datetime
) -> OfferLinkMade:
    """Make the offer's link, and end the previous link. `origin` is this service's address for
    phones. Raises OwnerRequired, RefusedByGrant, NotFound, OfferStateWrong.
    """
    must_bind_shop(caller)
    offer = await offer_row(session, caller.seller_id, offer_id, locked=True)
    if offer.state not in OPEN:
        raise errors.OfferStateWrong(f"offer {offer_id} is {offer.state}: it has no link")
    secret = tokens.new_token()
    offer.secret_hash = tokens.token_hash(secret)
    note(session, caller, "offer.link_made", f"link of offer {offer_id}", now)
    return OfferLinkMade(offer_id, f"{origin}{PATH}/{caller.seller_id}-{offer_id}-{secret}")


async def caller_with_offer(database: Database, token: str) -> tuple[Caller, OfferLink]:
    """Return the caller and the offer of a link's token. Raises OfferLinkEnded for any invalid
    token.
    """
    opened = await opened_by(database, _LINK, token, sees_buyers=False)
    if opened is None:
        raise errors.OfferLinkEnded
    caller, (state, expires_at, name, terms, is_open) = opened
    is_over = state == "offered" and expires_at <= clock.now()
    if caller.account.suspended or state not in OPEN or is_over:
        raise errors.OfferLinkEnded
    shop = Shop(name, terms, f"{BUYLIST}/{caller.seller_id}" if is_open else "")
    return caller, OfferLink(caller.identity.credential_id, shop)


admitting_customers: Final = admitting_links(caller_with_offer, "o")


def link_of(scope: Any) -> OfferLink:
    return cast(OfferLink, LINK.of(scope))

"""Makes the link by which a customer sees one offer, and finds the offer of a token.

A token is `seller-offer-secret`. Only the hash of the secret is stored, so a link is shown once,
when it is made, and a new one replaces it. It ends with its offer.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import tokens
from cardsync.access.activity import note
from cardsync.access.caller import Caller, Identity, caller_query, read_row
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.offers.offer_reads import offer_row
from cardsync.buying.offers.schemas import OfferLinkMade, Shop
from cardsync.platform import errors
from cardsync.platform.database.session import Database

PATH: Final = "/o"
BUYLIST: Final = "/buylist"
# The states in which a link opens its offer.
OPEN: Final = ("offered", "accepted", "received", "paid")
_FORM: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([A-Za-z0-9_-]{43})")
_LINK: Final = caller_query(
    "offer_link_caller",
    "JOIN buying_offer o ON o.seller_id = a.seller_id AND o.id = $2"
    " AND o.secret_hash IS NOT NULL JOIN seller n ON n.id = a.seller_id"
    " LEFT JOIN public_buylist b ON b.seller_id = a.seller_id",
    "o.state",
    "o.expires_at",
    "o.secret_hash",
    "n.name",
    "coalesce(b.terms, '')",
    "coalesce(b.is_open, false)",
)


class OfferLink(NamedTuple):
    """The offer that a link opens, and the shop."""

    offer_id: int
    shop: Shop


async def make_link(
    session: AsyncSession, caller: Caller, offer_id: int, origin: str, now: datetime
) -> OfferLinkMade:
    """Make the offer's link, and end the previous one. `origin` is the address at which phones
    reach this service. Raises OwnerRequired, RefusedByGrant, NotFound, OfferStateWrong.
    """
    must_bind_shop(caller)
    offer = await offer_row(session, caller.seller_id, offer_id, locked=True)
    if offer.state not in OPEN:
        raise errors.OfferStateWrong(f"offer {offer_id} is {offer.state}: it has no link")
    secret = tokens.new_token()
    offer.secret_hash = tokens.token_hash(secret)
    note(session, caller, "offer.link_made", f"link of offer {offer_id}", now)
    return OfferLinkMade(offer_id, f"{origin}{PATH}/{caller.seller_id}-{offer_id}-{secret}")


async def caller_with_offer(
    database: Database, token: str, now: datetime
) -> tuple[Caller, OfferLink]:
    """Return the caller of a customer's phone. Raises OfferLinkEnded for an invalid token, whatever
    the reason.
    """
    parts = _FORM.fullmatch(token)
    if parts is None:
        raise errors.OfferLinkEnded
    seller_id, offer_id = int(parts[1]), int(parts[2])
    row = await database.polled.first_row(seller_id, _LINK, offer_id)
    if row is None:
        raise errors.OfferLinkEnded
    account, state, (offer_state, expires_at, secret_hash, name, terms, is_open) = read_row(row)
    if not secrets.compare_digest(bytes(secret_hash), tokens.token_hash(parts[3])):
        raise errors.OfferLinkEnded
    is_over = offer_state == "offered" and expires_at <= now
    if account.suspended or offer_state not in OPEN or is_over:
        raise errors.OfferLinkEnded
    identity = Identity(seller_id, "link", offer_id, role="staff", sees_buyers=False)
    shop = Shop(name, terms, f"{BUYLIST}/{seller_id}" if is_open else "")
    return Caller(identity, account, state), OfferLink(offer_id, shop)

"""Admits a customer's request by the token in its address, and puts the caller and the link into
the request before the body is read. The token is the only credential; cookies are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.buying.offers.offer_links import OfferLink, caller_with_offer
from cardsync.platform import clock, errors
from cardsync.platform.database import seller_slots

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send


def admitting_customers(app: ASGIApp) -> ASGIApp:
    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["litestar_app"].state
        limited: RateLimits = state.rate_limits
        token = str(scope["path_params"].get("token", ""))
        try:
            caller, link = await caller_with_offer(state.database, token, clock.now())
        except errors.OfferLinkEnded:
            await limited.admit_anonymous(scope)
            raise
        await limited.admit_link(scope, link.offer_id, scope["route_handler"].opt, "o")
        seller_slots.asked_by(caller.seller_id)
        scope["caller"] = caller  # type: ignore[typeddict-unknown-key]
        scope["offer_link"] = link  # type: ignore[typeddict-unknown-key]
        await app(scope, receive, send)

    return admitted


def link_of(scope: Any) -> OfferLink:
    return cast(OfferLink, scope["offer_link"])

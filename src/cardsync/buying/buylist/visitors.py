"""Admits visitors to a shop's public buylist, limits their requests by their IP address, and adds a
caller with a visitor's few rights to the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cardsync.access.caller import ADMITTED, Caller, Identity, caller_query, read_row
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.buying.offers.offer_links import BUYLIST
from cardsync.buying.offers.schemas import Shop
from cardsync.platform import errors
from cardsync.platform.database import seller_slots
from cardsync.platform.database.session import Database
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.limits import LARGEST_ID

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

_OPEN: Final = caller_query(
    "buylist_caller",
    "JOIN public_buylist b ON b.seller_id = a.seller_id AND b.is_open"
    " JOIN seller n ON n.id = a.seller_id",
    "b.terms",
    "n.name",
)

SHOP: Final = ScopeValue[Shop]("shop")


async def open_shop(database: Database, seller_id: int) -> tuple[Caller, Shop]:
    """Return the visitor's caller and the shop. Raises NotFound if the shop does not exist, has no
    open buylist, or is suspended.
    """
    row = await database.polled.first_row(seller_id, _OPEN) if seller_id <= LARGEST_ID else None
    if row is None:
        raise errors.NotFound("this shop has no public buylist")
    account, state, (terms, name) = read_row(row)
    if account.suspended:
        raise errors.NotFound("this shop has no public buylist")
    identity = Identity(seller_id, "link", 0, role="staff", sees_buyers=False)
    return Caller(identity, account, state), Shop(name, terms, f"{BUYLIST}/{seller_id}")


def admitting_visitors(app: ASGIApp) -> ASGIApp:
    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["litestar_app"].state
        limited: RateLimits = state.rate_limits
        await limited.admit_visitor(scope, scope["route_handler"].opt)
        seller_id = int(scope["path_params"].get("shop", 0))
        caller, shop = await open_shop(state.database, seller_id)
        seller_slots.asked_by(caller.seller_id)
        ADMITTED.put(scope, caller)
        SHOP.put(scope, shop)
        await app(scope, receive, send)

    return admitted

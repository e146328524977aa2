"""Finds the row that a link opens, and admits the requests of the link. The address contains a
token, `seller-row-secret`, which is the only credential; cookies are ignored. Only the secret's
hash is stored.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cardsync.access.caller import ADMITTED, Caller, Identity, read_row
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.access.tokens import token_hash
from cardsync.platform import errors
from cardsync.platform.database import seller_slots
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.session import Database
from cardsync.platform.kit.scope_values import ScopeValue

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

_FORM: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([A-Za-z0-9_-]{43})")
_ENDED: Final = (errors.PullLinkEnded, errors.OfferLinkEnded, errors.AccountSuspended)
# The link that the request opened. Each package with links has its own type of link.
LINK: Final = ScopeValue[Any]("link")
Find = Callable[[Database, str], Awaitable[tuple[Caller, Any]]]


async def opened_by(
    database: Database, query: PolledQuery, token: str, *, sees_buyers: bool = True
) -> tuple[Caller, Sequence[Any]] | None:
    """Return the caller of a link, and the columns of `query` before the secret's hash."""
    parts = _FORM.fullmatch(token)
    if parts is None:
        return None
    seller_id, link_id = int(parts[1]), int(parts[2])
    row = await database.polled.first_row(seller_id, query, link_id)
    if row is None:
        return None
    account, state, (*own, secret_hash) = read_row(row)
    if not secrets.compare_digest(bytes(secret_hash), token_hash(parts[3])):
        return None
    identity = Identity(seller_id, "link", link_id, role="staff", sees_buyers=sees_buyers)
    return Caller(identity, account, state), own


def admitting_links(find: Find, kind: str) -> Callable[[ASGIApp], ASGIApp]:
    """Return middleware that puts the caller and the link into the request before its body is read.
    `kind` names the kind of link for the rate limits.
    """

    def admitting(app: ASGIApp) -> ASGIApp:
        async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
            state = scope["litestar_app"].state
            limited: RateLimits = state.rate_limits
            try:
                caller, link = await find(state.database, scope["path_params"].get("token", ""))
            except _ENDED:
                await limited.admit_anonymous(scope)
                raise
            opt = scope["route_handler"].opt
            await limited.admit_link(scope, caller.identity.credential_id, opt, kind)
            seller_slots.asked_by(caller.seller_id)
            ADMITTED.put(scope, caller)
            LINK.put(scope, link)
            await app(scope, receive, send)

        return admitted

    return admitting

"""Answers an address that has no page. A member's browser gets a page with the navigation; anybody
else gets the 404 that the whole service sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar import route
from litestar.enums import HttpMethod
from litestar.exceptions import NotFoundException

from cardsync.access.admission import admitting, session_token
from cardsync.access.caller import header
from cardsync.dashboard.frame import framing
from cardsync.platform import errors
from cardsync.web.error_responses import wants_html

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send


def admitting_browsers(app: ASGIApp) -> ASGIApp:
    """Middleware that admits a member's browser and answers all other clients with 404."""
    framed = admitting(framing(app))

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        # Metrics and logs count the request with all others that have no route.
        scope["path_template"] = ""
        if not session_token(scope) or not wants_html(header(scope, b"accept")):
            raise NotFoundException
        await framed(scope, receive, send)

    return admitted


@route("/{address:path}", http_method=list(HttpMethod), status_code=200)
async def no_page(address: str) -> None:
    raise errors.NotFound("we can't find that page")

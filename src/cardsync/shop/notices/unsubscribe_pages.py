"""The page of the unsubscribe link in each mail, with a button that stops all mail. Mail programs
can send the same request with one click (RFC 8058), without a session, a CSRF token or an Origin
header of this server.
"""

from __future__ import annotations

from litestar import Router, get, post
from litestar.response import Template

from cardsync.access.admission import among_programs
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.notices import choices
from cardsync.shop.notices.unsubscribe_links import PATH, Unsubscriber, read_token
from cardsync.web.forms import refused
from cardsync.web.pages import page


@get("/{token:str}")
async def unsubscribe_page(
    token: str,
    database: Database,
    settings: Settings,
) -> Template:
    """Show a page with a button, so that programs that open all links of a mail do not unsubscribe
    the member.
    """
    _, shop = await _of(token, database, settings)
    return page("unsubscribe.html", shop=shop, done=False)


@post("/{token:str}", status_code=200)
async def unsubscribe(
    token: str,
    database: Database,
    settings: Settings,
) -> Template:
    """Stop all mail to the member of the link. The request's body is ignored."""
    who, shop = await _of(token, database, settings)
    async with database.tenant(who.seller_id) as session:
        await choices.stop_mail(session, who, clock.now())
    return page("unsubscribe.html", shop=shop, done=True)


async def _of(
    token: str,
    database: Database,
    settings: Settings,
) -> tuple[Unsubscriber, object]:
    """Return the member of the link and the shop's name. Raises NotFound."""
    who = read_token(settings, token)
    if who is not None:
        async with database.shared() as session:
            shop = await choices.is_reader(session, who)
        if shop is not None:
            return who, shop
    raise errors.NotFound("this link is not complete; copy all of it from the mail")


router = Router(
    path=PATH,
    route_handlers=[unsubscribe_page, unsubscribe],
    middleware=[among_programs],
    exception_handlers={errors.Problem: refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)

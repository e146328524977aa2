"""The page Settings, Notifications: which notices a member gets by mail, and how."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock
from cardsync.platform.settings import Settings
from cardsync.shop.notices import choices
from cardsync.shop.notices.mail_text import SETTINGS
from cardsync.shop.notices.notice_kinds import WAYS, Way, kinds_for
from cardsync.web.forms import Form
from cardsync.web.request import reading

WAY_NAMES: Final[dict[Way, str]] = {
    "at_once": "Right away",
    "daily": "Daily",
    "never": "Never",
}
_WAY: Final = "way:"


@get(SETTINGS)
async def notices_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    async with reading(request) as reads:
        body = await choices.choices(reads, caller, settings)
    groups = [(group, list(kinds)) for group, kinds in groupby(body.kinds, lambda one: one.group)]
    return show(
        request,
        caller,
        "settings_notices.html",
        200,
        tabs=tabs_of(caller),
        shown=body,
        groups=groups,
        ways=list(WAY_NAMES.items()),
    )


@post_form(SETTINGS)
async def choose_notices(
    caller: Caller,
    session: AsyncSession,
    form: Form,
) -> Response[str]:
    """Save the chosen way of each notice. A field with an unknown way is ignored."""
    ways = {
        kind: way for kind in kinds_for(caller.role) for way in WAYS if form[_WAY + kind] == way
    }
    await choices.choose(session, caller, ways, None, clock.now())
    return see(SETTINGS, message("saved"))


@post_form(SETTINGS + "/mail")
async def switch_mail(
    caller: Caller,
    session: AsyncSession,
    form: Form,
) -> Response[str]:
    stopped = form["stopped"] == "true"
    await choices.choose(session, caller, {}, stopped, clock.now())
    return see(SETTINGS, message("mail_stopped" if stopped else "mail_on"))


ROUTES: Final = [notices_page, choose_notices, switch_mail]

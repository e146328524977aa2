"""Pages of a member's own account with signing out, and of the account's credits, to which
`top_up_path` leads.
"""

from __future__ import annotations

from typing import Final

from litestar import get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sessions
from cardsync.access.admission import BY_FORM, session_token
from cardsync.access.caller import Caller
from cardsync.credits import ledger
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, show
from cardsync.database.session import Database
from cardsync.settings import Settings

LEDGER_SHOWN: Final = 200
# An operator's CREDITS_TOP_UP that begins like this is a link, any other text a sentence.
ADDRESSES: Final = ("https://", "http://", "mailto:")


@get("/account", opt=BY_FORM)
async def account(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    token = session_token(request.scope)
    assert token is not None
    who = await sessions.who(session, caller, token)
    return show(request, caller, "account.html", who=who)


@get("/account/credits", opt=BY_FORM)
async def credits_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Template:
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        balance, rows = await ledger.history(session, caller.seller_id, LEDGER_SHOWN + 1)
    top_up = settings.credits_top_up.strip()
    return show(
        request,
        caller,
        "credits.html",
        tabs=tabs_of(caller),
        balance=balance,
        lines=rows[:LEDGER_SHOWN],
        complete=len(rows) <= LEDGER_SHOWN,
        top_up=top_up,
        top_up_is_address=top_up.lower().startswith(ADDRESSES),
    )


ROUTES: Final = [account, credits_page]

"""Pages of a member's own account, with the changes of it and signing out, and of the account's
credits, to which `top_up_path` leads.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get
from litestar.response import Template

from cardsync.access import sessions
from cardsync.access.admission import BY_FORM, session_token
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts.browser_session import changed_own
from cardsync.shop.accounts.own_account import OwnChange
from cardsync.shop.credits import ledger
from cardsync.web.forms import Form, sentence

LEDGER_SHOWN: Final = 200
# An operator's CREDITS_TOP_UP that begins like this is a link, any other text a sentence.
ADDRESSES: Final = ("https://", "http://", "mailto:")


async def _account(
    request: PageRequest, caller: Caller, database: Database, status: int = 200, **values: Any
) -> Template:
    token = session_token(request.scope)
    assert token is not None
    async with database.tenant(caller.seller_id) as session:
        who = await sessions.who(session, caller, token)
    given = {"typed": {"name": who.name, "email": who.email}, "problems": {}, "of": ""} | values
    given["least"] = limits.PASSWORD_CHARACTERS
    return show(request, caller, "account.html", status, who=who, **given)


@get("/account", opt=BY_FORM)
async def account(request: PageRequest, caller: Caller, database: Database) -> Template:
    return await _account(request, caller, database)


@post_form(["/account/details", "/account/password"])
async def change_account(
    request: PageRequest, caller: Caller, form: Form, database: Database, settings: Settings
) -> Template | Response[str]:
    """Change name and address, or the password, whose fields keep every space."""
    of = request.url.path.rpartition("/")[2]
    secret = {name: (form.all(name) or [""])[-1] for name in ("current_password", "new_password")}
    if of == "details":
        wanted = OwnChange(form["name"], form["email"])
    else:
        wanted = OwnChange(password=secret["new_password"])
    try:
        changed = await changed_own(
            database, caller, request, settings, wanted, secret["current_password"] or None
        )
    except errors.InvalidPayload as e:
        name, _, why = str(e).partition(": ")
        name = "new_password" if name == "password" else name
        told = {"of": of, "problems": {name: sentence(errors.InvalidPayload(why))}}
        if of == "details":
            told["typed"] = form.some("name", "email")
        return await _account(request, caller, database, e.status, **told)
    done = together(*(message(f"own_{one}") for one in changed)) or message("same")
    return see("/account", done=done)


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


ROUTES: Final = [account, change_account, credits_page]

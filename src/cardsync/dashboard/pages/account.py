"""The pages of a member's own account, with the forms that change it and sign the member out, and
of the account's credits.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template

from cardsync.access import sessions
from cardsync.access.admission import session_token
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import errors, limits
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts.browser_session import changed_own
from cardsync.shop.accounts.own_account import OwnAccountChange
from cardsync.shop.credits import ledger
from cardsync.web.forms import Form, read_form, sentence
from cardsync.web.request import reading

LEDGER_SHOWN: Final = 200
# If the setting CREDITS_TOP_UP begins like one of these, the page shows it as a link; any other
# text is shown as a sentence.
ADDRESSES: Final = ("https://", "http://", "mailto:")


async def _account(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    token = session_token(request.scope)
    assert token is not None
    who, of = await sessions.who(source, caller, token), request.url.path.rpartition("/")[2]
    typed, problems = {"name": who.name, "email": who.email}, {}
    if problem:
        name, _, why = str(problem).partition(": ")
        name = "new_password" if name == "password" else name
        problems = {name: sentence(errors.InvalidPayload(why))}
        typed = read_form(request).some(*typed) if of == "details" else typed
    return show(
        request,
        caller,
        "account.html",
        problem.status if problem else 200,
        who=who,
        typed=typed,
        problems=problems,
        of=of if problem else "",
        least=limits.PASSWORD_CHARACTERS,
    )


@get("/account")
async def account(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _account(request, caller, reads)


@post_form(
    ["/account/details", "/account/password"],
    exception_handlers=again(_account, errors.InvalidPayload),
)
async def change_account(
    request: PageRequest, caller: Caller, form: Form, database: Database, settings: Settings
) -> Response[str]:
    """Change a member's name and email address, or the password. Spaces in a password are kept."""
    of = request.url.path.rpartition("/")[2]
    secret = {name: (form.all(name) or [""])[-1] for name in ("current_password", "new_password")}
    if of == "details":
        wanted = OwnAccountChange(form["name"], form["email"])
    else:
        wanted = OwnAccountChange(new_password=secret["new_password"])
    wanted.current_password = secret["current_password"] or None
    changed = await changed_own(database, caller, request, settings, wanted)
    done = together(*(message(f"own_{one}") for one in changed)) or message("same")
    return see("/account", done=done)


@get("/account/credits")
async def credits_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    async with reading(request) as reads:
        balance, rows = await ledger.history(reads, caller.seller_id, LEDGER_SHOWN + 1)
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

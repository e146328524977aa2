"""The page of lists with their counts, and the forms that make, rename and delete one."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.response import Template

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.dashboard.confirmed import writer_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, field, read_form, see, sentence, show
from cardsync.database.session import Database
from cardsync.lists import lists
from cardsync.lists.shown import list_body
from cardsync.plans import writes
from cardsync.settings import Settings
from cardsync.web.request import reading


@get("/lists", opt=BY_FORM)
async def lists_page(request: PageRequest, caller: Caller) -> Template:
    return await _shown(request, caller)


async def _shown(
    request: PageRequest, caller: Caller, name: str = "", problem: errors.Problem | None = None
) -> Template:
    """Show the lists, and beside the name that was asked for why it cannot be made."""
    async with reading(request) as reads:
        found = await lists.all_lists(reads, caller, {})
    return show(
        request,
        caller,
        "lists.html",
        problem.status if problem else 200,
        lists=[list_body(caller, row) for row in found],
        most=limits.CARDS_PER_LIST,
        name=name,
        name_problem=sentence(problem) if problem else "",
    )


@post("/lists", opt=BY_FORM | WRITES)
async def make_list(
    request: PageRequest, caller: Caller, database: Database, settings: Settings
) -> Response[str] | Template:
    name = field(await read_form(request), "name")
    try:
        async with database.bounded(caller.seller_id, settings.read_seconds) as session:
            made = await lists.create_list(session, caller, name, clock.now())
    except (errors.InvalidName, errors.NameTaken, errors.ListLimitReached) as e:
        return await _shown(request, caller, name, e)
    return see(f"/lists/{made.id}", done=message("list_made"))


@post("/lists/{list_id:int}/rename", opt=BY_FORM | WRITES)
async def rename_list(
    request: PageRequest, caller: Caller, database: Database, settings: Settings, list_id: int
) -> Response[str]:
    form = await read_form(request)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        await writes.rename_list(
            writer_of(session, caller, settings, form), list_id, field(form, "name")
        )
    return see(f"/lists/{list_id}", done=message("list_renamed"))


@post("/lists/{list_id:int}/delete", opt=BY_FORM | WRITES)
async def delete_list(
    request: PageRequest, caller: Caller, database: Database, settings: Settings, list_id: int
) -> Response[str]:
    form = await read_form(request)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        await writes.delete_list(writer_of(session, caller, settings, form), list_id)
    return see("/lists", done=message("list_deleted"))

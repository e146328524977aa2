"""The page of lists with their counts, and the forms that make, rename and delete one."""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template

from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form, writer_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.stock.lists import seller_lists
from cardsync.web.forms import Form, sentence
from cardsync.web.request import reading


@get("/lists", opt=BY_FORM)
async def lists_page(request: PageRequest, caller: Caller) -> Template:
    return await _shown(request, caller)


async def _shown(
    request: PageRequest, caller: Caller, name: str = "", problem: errors.Problem | None = None
) -> Template:
    """Show the lists, and the reason why a requested name cannot be used."""
    async with reading(request) as reads:
        found = await seller_lists.all_lists(reads, caller, {})
    return show(
        request,
        caller,
        "lists.html",
        problem.status if problem else 200,
        lists=found,
        most=limits.CARDS_PER_LIST,
        name=name,
        name_problem=sentence(problem) if problem else "",
    )


@post_form("/lists")
async def make_list(
    request: PageRequest, caller: Caller, form: Form, database: Database, settings: Settings
) -> Response[str] | Template:
    name = form["name"]
    try:
        async with database.bounded(caller.seller_id, settings.read_seconds) as session:
            made = await writes.create_list(writer_of(session, caller, settings, form), name)
    except (errors.InvalidName, errors.NameTaken, errors.ListLimitReached) as e:
        return await _shown(request, caller, name, e)
    return see(f"/lists/{made.id}", done=message("list_made"))


@post_form("/lists/{list_id:int}/rename")
async def rename_list(form: Form, writer: Writer, list_id: int) -> Response[str]:
    await writes.rename_list(writer, list_id, form["name"])
    return see(f"/lists/{list_id}", done=message("list_renamed"))


@post_form("/lists/{list_id:int}/delete")
async def delete_list(writer: Writer, list_id: int) -> Response[str]:
    await writes.delete_list(writer, list_id)
    return see("/lists", done=message("list_deleted"))

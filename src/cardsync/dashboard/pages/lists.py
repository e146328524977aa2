"""The page of all lists with their counts, and the forms that make, rename and delete a list."""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import errors, limits
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.stock.lists import seller_lists
from cardsync.web.forms import Form, read_form, sentence
from cardsync.web.request import reading


@get("/lists")
async def lists_page(request: PageRequest, caller: Caller) -> Template:
    return await _shown(request, caller)


async def _shown(
    request: PageRequest,
    caller: Caller,
    _: AsyncSession | None = None,
    problem: errors.Problem | None = None,
) -> Template:
    """Show the lists, and why a new list's name was refused."""
    async with reading(request) as reads:
        found = await seller_lists.all_lists(reads, caller, {})
    return show(
        request,
        caller,
        "lists.html",
        problem.status if problem else 200,
        lists=found,
        most=limits.CARDS_PER_LIST,
        name=read_form(request)["name"],
        name_problem=sentence(problem) if problem else "",
    )


@post_form(
    "/lists",
    exception_handlers=again(_shown, errors.InvalidName, errors.NameTaken, errors.ListLimitReached),
)
async def make_list(form: Form, writer: Writer) -> Response[str]:
    made = await writes.create_list(writer, form["name"])
    return see(f"/lists/{made.id}", done=message("list_made"))


@post_form("/lists/{list_id:int}/rename")
async def rename_list(form: Form, writer: Writer, list_id: int) -> Response[str]:
    await writes.rename_list(writer, list_id, form["name"])
    return see(f"/lists/{list_id}", done=message("list_renamed"))


@post_form("/lists/{list_id:int}/delete")
async def delete_list(writer: Writer, list_id: int) -> Response[str]:
    await writes.delete_list(writer, list_id)
    return see("/lists", done=message("list_deleted"))

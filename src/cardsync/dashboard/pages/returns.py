"""The page of returns: refunded orders with the shelves of their cards, customers with several
refunds, and the forms that put copies back.
"""

from __future__ import annotations

from typing import NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.pages.selected_cards import number_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.orders import one_customer, returned_copies
from cardsync.orders.order_filter import read_page
from cardsync.shelving.place import Place
from cardsync.web.request import reading


class Asked(NamedTuple):
    """A page of the desk, or of what is back in stock."""

    restocked: bool
    page: int


@get("/returns", opt=BY_FORM)
async def desk_page(request: PageRequest, caller: Caller) -> Template:
    """Show the desk; printed, it is the sheet for putting copies back."""
    given = request.query_params.dict()
    page, _ = read_page(given)
    asked = Asked((given.get("restocked") or [""])[-1] == "true", page)
    async with reading(request) as reads:
        desk = await returned_copies.desk(
            reads, caller, page, limits.RETURNS_PER_PAGE, restocked=asked.restocked
        )
        again = await one_customer.repeat_refunders(reads, caller)
    return show(
        request,
        caller,
        "returns.html",
        asked=asked,
        desk=desk,
        refunders=again,
    )


@post_form("/returns/{order_id:int}/restocked")
async def restock_order(
    caller: Caller, form: Form, session: AsyncSession, order_id: int
) -> Response[str]:
    """Put an order's copies back where they were, or into the place that the form names."""
    reported = None
    if form["box"] or form["slot"]:
        place = Place(number_of(form, "box"), number_of(form, "slot"))
        reported = [
            returned_copies.Put(card_id, place, quantity)
            for card_id, quantity in map(_copies, form.all("copies"))
        ]
    done = await returned_copies.restock(session, caller, order_id, reported, clock.now())
    pieces = sum(one.quantity for one in done.put)
    said = message("copies_put_back", pieces)
    if done.left:
        said = together(said, message("items_nowhere", len(done.left)))
    return see("/returns", done=said)


def _copies(text: str) -> tuple[int, int]:
    """Read a card's id and how many copies of it, like 12x3. Pure. Raises InvalidPayload."""
    card, _, quantity = text.partition("x")
    if all(part.isascii() and part.isdigit() and len(part) < 19 for part in (card, quantity)):
        return int(card), int(quantity)
    raise errors.InvalidPayload("copies: must be a card and a quantity")


ROUTES = [desk_page, restock_order]

"""The page of returns: refunded orders with the shelves of their cards, customers with several
refunds, and the forms that put copies back on the shelves.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.pages.selected_cards import number_of
from cardsync.dashboard.shell import PageRequest, paging_of, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.typed_numbers import read_id, wholes
from cardsync.platform.shelf_place import Place, checked_box, read_place
from cardsync.sales.orders import one_customer, returned_copies
from cardsync.web.forms import Form
from cardsync.web.request import reading

STATES: Final = {
    "to_restock": "To restock",
    "expected": "Expected back",
    "restocked": "Restocked",
    "not_back": "Didn't come back",
}


class DeskRequest(NamedTuple):
    """The page number and the state of the returns that an address names."""

    state: returned_copies.ReturnState
    page: int

    @property
    def restocked(self) -> bool:
        return self.state in ("restocked", "not_back")


@get("/returns")
async def desk_page(request: PageRequest, caller: Caller) -> Template:
    """Show the returns. The printed page is the sheet for putting copies back."""
    given = request.query_params.dict()
    paging = paging_of(request, limits.RETURNS_PER_PAGE)
    state = (given.get("state") or ["to_restock"])[-1]
    if state not in STATES:
        raise errors.InvalidPayload(f"state: must be one of {', '.join(STATES)}")
    asked = DeskRequest(cast(returned_copies.ReturnState, state), paging.page)
    async with reading(request) as reads:
        desk, partial, again = await at_once(
            returned_copies.desk(reads, caller, paging, state=asked.state),
            returned_copies.desk(reads, caller, Paging(1, paging.per_page), state="partial"),
            one_customer.repeat_refunders(reads, caller),
        )
    return show(
        request,
        caller,
        "returns.html",
        asked=asked,
        state_names=STATES,
        desk=desk,
        partial=partial,
        copies=sum(item.quantity for order in desk.returns for item in order.items),
        refunders=again,
    )


@post_form("/returns")
async def restock(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Put the copies of one line, or of all ticked lines, back at the location in each row. Lines
    without a location do not change.
    """
    back = {"state": form["state"]} if form["state"] in STATES else {}
    if form["gone"]:
        order_id = read_id(form["gone"])
        if order_id is None:
            raise errors.InvalidPayload("gone: this form is incomplete; reload the page")
        now = clock.now()
        await returned_copies.restock(session, caller, order_id, None, now, came_back=False)
        return see("/returns", done=message("not_back"), **back)
    lines = [form["one"]] if form["one"] else form.all("line")
    if not lines:
        return see("/returns", **back)
    by_order: dict[int, list[returned_copies.PutCopies]] = {}
    without = 0
    for line in lines:
        order_id, item_id, card_id, quantity = _numbers(line)
        if not (where := form[f"place-{order_id}-{item_id}"]):
            without += 1
            continue
        put = returned_copies.PutCopies(card_id, read_place(where), quantity)
        by_order.setdefault(order_id, []).append(put)
    now = clock.now()
    for order_id, puts in sorted(by_order.items()):
        await returned_copies.restock(session, caller, order_id, puts, now)
    copies = sum(one.quantity for puts in by_order.values() for one in puts)
    said = [message("copies_put_back", copies)] if copies else []
    if without or not copies:
        said.append(message("items_nowhere", without or len(lines)))
    return see("/returns", done=together(*said), **back)


def _numbers(line: str) -> list[int]:
    """Read the ids of an order, an item and a card, and the number of copies, from a text like
    7.12.5.2. Pure. Raises InvalidPayload.
    """
    numbers = wholes(line.split("."))
    if len(numbers) == 4:
        return numbers
    raise errors.InvalidPayload("line: this form is incomplete; reload the page")


@post_form("/returns/{order_id:int}/restocked")
async def restock_order(
    caller: Caller, form: Form, session: AsyncSession, order_id: int
) -> Response[str]:
    """Put all copies of an order back at their earlier places, or at the place that the
    form names.
    """
    reported = None
    if form["box"] or form["slot"]:
        place = Place(checked_box(form["box"]), number_of(form, "slot"))
        reported = [
            returned_copies.PutCopies(card_id, place, quantity)
            for card_id, quantity in map(_copies, form.all("copies"))
        ]
    done = await returned_copies.restock(session, caller, order_id, reported, clock.now())
    pieces = sum(one.quantity for one in done.put)
    said = [message("copies_put_back", pieces)] if pieces or not done.left else []
    if done.left:
        said.append(message("items_nowhere", len(done.left)))
    return see("/returns", done=together(*said))


def _copies(text: str) -> tuple[int, int]:
    """Read a card's id and the number of its copies from a text like 12x3. Pure. Raises
    InvalidPayload.
    """
    match wholes(text.split("x")):
        case [card, quantity]:
            return card, quantity
    raise errors.InvalidPayload("copies: must be a card and a quantity")


ROUTES = [desk_page, restock, restock_order]

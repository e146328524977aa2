"""The page of one order: its items with their shelves and prices, refund, feedback and pull
sessions; and the forms that mark the order as shipped or set it aside, and undo both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, cast, get_args

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import CONFIRM, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pulls import missing_of
from cardsync.dashboard.shell import PageRequest, back_to, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.prices.recommendations.badges import badges_of
from cardsync.prices.recommendations.schemas import CardBadges
from cardsync.sales.lots import profit
from cardsync.sales.lots.schemas import LineProfit, Profit
from cardsync.sales.orders import pull_marks, reopen_pulls
from cardsync.sales.orders.one_order import read_order
from cardsync.sales.orders.pull_models import MissingOutcome
from cardsync.sales.orders.pullable import is_beyond
from cardsync.sales.orders.schemas import OrderInFull, adds_up, order_in_full
from cardsync.sales.pulling import missing_cards
from cardsync.stock.cards.card_filter import ids_of
from cardsync.web.forms import Form
from cardsync.web.request import reading

Mark = Callable[[AsyncSession, Caller, int, datetime], Awaitable[Any]]
# The operation for the last part of a form's address; the API uses the same names.
MARKS: dict[str, Mark] = {
    "mark_shipped": pull_marks.mark_shipped,
    "unmark_shipped": pull_marks.unmark_shipped,
    "dismiss": pull_marks.dismiss,
    "undismiss": pull_marks.undismiss,
    "unmark_pulled": reopen_pulls.pull_again,
}


@get("/orders/{order_id:int}")
async def order_page(
    request: PageRequest,
    caller: Caller,
    order_id: int,
) -> Template:
    async with reading(request) as reads:
        (order, badges), (missing, texts), (lines, earned) = await at_once(
            _order(reads, caller, order_id),
            missing_of(reads, caller, [order_id]),
            _profit(reads, caller, order_id),
        )
    return show(
        request,
        caller,
        "order.html",
        order=order,
        may_ship=not is_beyond(order.status),
        missing=missing,
        texts=texts,
        marks={one.card_id: one for one in badges},
        profit={one.item_id: one.profit for one in lines},
        earned=earned,
        adds_up=adds_up(order),
        fees_reported=any(one.fees_reported for one in lines),
    )


async def _order(
    reads: Reading, caller: Caller, order_id: int
) -> tuple[OrderInFull, list[CardBadges]]:
    order = order_in_full(await read_order(reads, caller, order_id))
    cards = [item.card_id for item in order.items if item.card_id][: limits.CARDS_PER_PAGE_MOST]
    return order, await badges_of(reads, caller, [], cards, clock.now())


async def _profit(
    reads: Reading, caller: Caller, order_id: int
) -> tuple[list[LineProfit], Profit | None]:
    if not caller.sees_revenue:
        return [], None
    return await at_once(
        profit.of_order(reads, caller, order_id), profit.of_orders(reads, caller, [order_id])
    )


@post_form("/orders/{order_id:int}/missing/{item_id:int}")
async def settle_missing(
    caller: Caller, form: Form, session: AsyncSession, order_id: int, item_id: int
) -> Response[str]:
    """Record how a missing card is settled, and return to the page with the form."""
    outcome = form["outcome"]
    if outcome not in get_args(MissingOutcome):
        raise errors.InvalidPayload("outcome: this form is incomplete; reload the page")
    refund = missing_cards.refund_of(form["refund_amt"]) if outcome == "refund" else None
    note = form["note"]
    if len(note) > limits.MISSING_NOTE_CHARACTERS:
        raise errors.InvalidPayload(
            f"note: must have at most {limits.MISSING_NOTE_CHARACTERS} characters"
        )
    way = missing_cards.WayOut(
        cast(MissingOutcome, outcome),
        refund,
        next(iter(ids_of([form["card_id"]])), None) if form["card_id"] else None,
        form["location_code"] or None,
        note,
    )
    await missing_cards.settle(session, caller, order_id, item_id, way, clock.now())
    return back_to(form["back"] or f"/orders/{order_id}", message(f"missing_{outcome}"))


@post_form("/orders/mark_shipped")
async def mark_orders_shipped(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Mark the ticked orders as shipped, except orders with a missing card. The next page asks what
    to do with these.
    """
    ticked = ids_of(form.all("order"))
    sure = form[CONFIRM] == "true"
    done = await pull_marks.mark_many_shipped(session, caller, ticked, clock.now(), confirmed=sure)
    said = message("orders_shipped", len(done.order_ids))
    back = form["back"] or "/orders"
    if done.missing:
        return see("/orders/ship", said if done.order_ids else "", order=done.missing, back=back)
    return back_to(back, said)


@get("/orders/ship")
async def orders_with_missing_cards(request: PageRequest, caller: Caller) -> Template:
    """Show the orders that a member tried to mark as shipped although a card is missing."""
    ids = ids_of(request.query_params.getall("order", []))
    async with reading(request) as reads:
        (missing, texts), unmarked = await at_once(
            missing_of(reads, caller, ids), pull_marks.to_mark(reads, caller, ids)
        )
    waits = {one.order_id for one in missing}.intersection(unmarked)
    return show(
        request,
        caller,
        "orders_ship.html",
        missing=[one for one in missing if one.order_id in waits],
        texts=texts,
        waits=sorted(waits),
        whole=[one for one in unmarked if one not in waits],
        back=request.query_params.get("back", "/orders"),
    )


@post_form("/orders/{order_id:int}/{mark:str}")
async def mark_order(
    caller: Caller, form: Form, session: AsyncSession, order_id: int, mark: str
) -> Response[str]:
    """Set or remove a mark, and return to the page with the form: the orders, or this order."""
    if mark not in MARKS:
        raise errors.NotFound(f"an order can't be marked {mark!r}")
    try:
        await MARKS[mark](session, caller, order_id, clock.now())
    except errors.CardMissing:
        return see("/orders/ship", order=order_id, back=form["back"] or f"/orders/{order_id}")
    done = message(f"order_{mark}")
    return back_to(form["back"], done) if form["back"] else see(f"/orders/{order_id}", done=done)

"""The page of one customer: the sums of the customer's orders and refunds, the newest orders, and a
form for the seller's note.
"""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, limits
from cardsync.platform.concurrency import at_once
from cardsync.sales.lots import profit
from cardsync.sales.orders import one_customer
from cardsync.web.forms import Form
from cardsync.web.request import reading


@get("/customers/{key:str}")
async def customer_page(request: PageRequest, caller: Caller, key: str) -> Template:
    async with reading(request) as reads:
        # The profit of the orders finds the settings in the reading, without another message.
        customer, _ = await at_once(
            one_customer.read_customer(reads, caller, key), profit.settings(reads, caller)
        )
        orders = [order.id for order in customer.orders]
        earned = await profit.of_orders(reads, caller, orders) if caller.sees_revenue else None
    return show(
        request,
        caller,
        "customer.html",
        customer=customer,
        earned=earned,
        longest=limits.CUSTOMER_NOTE_CHARACTERS,
    )


@post_form("/customers/{key:str}/note")
async def note_customer(
    caller: Caller, form: Form, session: AsyncSession, key: str
) -> Response[str]:
    written = form["note"].replace("\r\n", "\n")
    kept = await one_customer.write_note(session, caller, key, written, clock.now())
    return see(f"/customers/{key}", done=message("note_kept" if kept else "note_gone"))


ROUTES = [customer_page, note_customer]

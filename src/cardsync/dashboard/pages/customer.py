"""The page of one customer: what was ordered and sent back, the newest orders, and the form of the
seller's note.
"""

from __future__ import annotations

from litestar import Response, get, post
from litestar.response import Template

from cardsync import clock, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, field, read_form, see, show
from cardsync.database.session import Database
from cardsync.orders import one_customer
from cardsync.orders.returns_shown import customer_in_full
from cardsync.web.request import reading


@get("/customers/{key:str}", opt=BY_FORM)
async def customer_page(request: PageRequest, caller: Caller, key: str) -> Template:
    async with reading(request) as reads:
        found = await one_customer.read_customer(reads, caller, key)
    return show(
        request,
        caller,
        "customer.html",
        customer=customer_in_full(found),
        longest=limits.CUSTOMER_NOTE_CHARACTERS,
    )


@post("/customers/{key:str}/note", opt=BY_FORM | WRITES)
async def note_customer(
    request: PageRequest,
    caller: Caller,
    database: Database,
    key: str,
) -> Response[str]:
    form = await read_form(request)
    written = field(form, "note").replace("\r\n", "\n")
    async with database.tenant(caller.seller_id) as session:
        kept = await one_customer.write_note(session, caller, key, written, clock.now())
    return see(f"/customers/{key}", done=message("note_kept" if kept else "note_gone"))


ROUTES = [customer_page, note_customer]

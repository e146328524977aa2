"""The page Reviews, all that the owner must decide: uploads, pricing runs and plans, and the prices
that move beyond the limits, one by one or together.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.proposal_rows import UNDER, read_decision, row_of_review, said_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.orders.order_filter import read_page
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.pricing.decisions.accept_reviews import MOST
from cardsync.pricing.decisions.review_list import reviews_of, reviews_under
from cardsync.today.to_decide import read_to_decide
from cardsync.web.request import reading

PER_PAGE: Final = 50
PATH: Final = "/pricing/reviews"


@get(PATH, opt=BY_FORM)
async def reviews_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    """Show what waits: the prices that move the most money first."""
    page, _ = read_page(request.query_params.dict())
    now = clock.now()
    async with reading(request) as reads:
        first = await read_to_decide(session, caller, reads, now)
        waiting = await reviews_of(reads, caller, page, PER_PAGE, now)
    return show(
        request,
        caller,
        "pricing_reviews.html",
        first=first,
        waiting=waiting,
        rows=[row_of_review(one) for one in waiting.reviews],
        under=UNDER,
    )


@post_form(PATH)
async def decide_chosen(form: Form, writer: Writer) -> Response[str]:
    """Decide the chosen prices; one that changed meanwhile keeps no other back."""
    answer, asked = read_decision(form, PER_PAGE)
    if not asked:
        return see(PATH, done=message("none_chosen"))
    done = await writes.decide_reviews(writer, asked, answer)
    return see(PATH, done=said_of("prices", answer, done.decided, done.refused))


@post_form(f"{PATH}/under")
async def approve_under(request: PageRequest, caller: Caller, writer: Writer) -> Response[str]:
    """Approve the prices below an amount, also those on other pages; after a look at the figures
    where the effect is large.
    """
    async with reading(request) as reads:
        asked = await reviews_under(reads, caller, UNDER, MOST, writer.now)
    if not asked:
        return see(PATH, done=message("none_under"))
    done = await writes.decide_reviews(writer, asked, "accepted", seen=False)
    more = [message("again")] if len(asked) == MOST else []
    return see(PATH, said_of("prices", "accepted", done.decided, done.refused, *more))


ROUTES = [reviews_page, decide_chosen, approve_under]

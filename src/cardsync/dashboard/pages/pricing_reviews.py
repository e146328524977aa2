"""The page of prices that need review: each beside the price, and accepted or dismissed one by one
or together.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import left, message, together
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, see
from cardsync.orders.order_filter import read_page
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.pricing.decisions.review_list import reviews_of
from cardsync.proposals.decide_proposals import Answer, Asked, Decided
from cardsync.web.request import reading

PER_PAGE: Final = 50
PATH: Final = "/pricing/reviews"
REASONS: Final = {
    "rise": "A rise beyond your limit",
    "drop": "A drop beyond your limit",
    "first_price": "Its first price",
}


@get(PATH, opt=BY_FORM)
async def reviews_page(request: PageRequest, caller: Caller) -> Template:
    """Show the prices that wait, those first that move the most money."""
    page, _ = read_page(request.query_params.dict())
    async with reading(request) as reads:
        waiting = await reviews_of(reads, caller, page, PER_PAGE, clock.now())
    return show_part(request, caller, "pricing_reviews.html", waiting=waiting, reasons=REASONS)


@post_form(PATH)
async def decide_chosen(form: Form, writer: Writer) -> Response[str]:
    """Accept or dismiss the chosen prices; one that changed meanwhile keeps no other back."""
    answer: Answer = "dismissed" if form["answer"] == "dismissed" else "accepted"
    asked = [_asked(text) for text in dict.fromkeys(form.all("take")[:PER_PAGE])]
    if not asked:
        return see(PATH, done=message("none_chosen"))
    done = await writes.decide_reviews(writer, asked, answer)
    return see(PATH, done=_said(done, answer))


def _said(done: Decided, answer: Answer) -> str:
    problems = [one.problem for one in done.refused]
    return together(message(f"prices_{answer}", done.decided), *left(problems))


def _asked(text: str) -> Asked:
    """Raises InvalidPayload."""
    number, _, revision = text.partition("@")
    moment = clock.read_moment(revision)
    # The id of a custom listing is below zero.
    digits = number.removeprefix("-")
    if moment is None or not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise errors.InvalidPayload("take: must be a card and its revision")
    return Asked(int(number), moment)


ROUTES = [reviews_page, decide_chosen]

"""The page of prices that wait for the seller's word: each beside the price of now, accepted or
dismissed one by one or together.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get, post
from litestar.response import Template

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.dashboard.confirmed import writer_of
from cardsync.dashboard.messages import left, message, together
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, field, read_form, see
from cardsync.database.session import Database
from cardsync.orders.filters import read_page
from cardsync.plans import writes
from cardsync.pricing.decisions.listing import reviews_of
from cardsync.pricing.decisions.shown import reviews_body
from cardsync.proposals.decide import Answer, Asked, Decided
from cardsync.settings import Settings
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
        found = await reviews_of(reads, caller, page, PER_PAGE, clock.now())
    told = reviews_body(found, page, PER_PAGE)
    return show_part(request, caller, "pricing_reviews.html", told=told, reasons=REASONS)


@post(PATH, opt=BY_FORM | WRITES)
async def decide_chosen(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    """Accept or dismiss the chosen prices; one that changed meanwhile keeps no other back."""
    form = await read_form(request)
    answer: Answer = "dismissed" if field(form, "answer") == "dismissed" else "accepted"
    asked = [_asked(text) for text in dict.fromkeys(form.get("take", [])[:PER_PAGE])]
    if not asked:
        return see(PATH, done=message("none_chosen"))
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        done = await writes.decide_reviews(
            writer_of(session, caller, settings, form), asked, answer
        )
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

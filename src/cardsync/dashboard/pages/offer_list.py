"""The page of offers by their state, and the page on which a new offer begins: a member finds the
customer's cards by number and name, as on *Add cards*.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import GRADES
from cardsync.buying.offers import offer_drafts, offer_reads
from cardsync.buying.offers.models import State
from cardsync.buying.offers.price_lines import OfferWant
from cardsync.catalog.printings import printings_of
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, TemplateValues, games_of, see, show
from cardsync.platform import clock, errors, limits, read_json
from cardsync.platform.database.read_sources import Source
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.stock.quick_add.type_ahead import products_like
from cardsync.web.forms import Form
from cardsync.web.request import reading

STATES: Final = get_args(State)
GRADE_CHOICES: Final = [(grade, grade) for grade in GRADES]
CHIPS: Final = {
    "draft": "plain",
    "offered": "info",
    "accepted": "warn",
    "received": "warn",
    "paid": "warn",
    "in_stock": "good",
    "declined": "bad",
    "expired": "bad",
}
_ROW: Final = ("condition", "printing", "cash_each", "credit_each")


@get("/buying/offers")
async def offers_page(request: PageRequest, caller: Caller) -> Template:
    query = request.query_params
    wanted: Any = query.get("status", "")
    state = wanted if wanted in STATES else None
    before = read_id(query.get("before", ""))
    async with reading(request) as reads:
        found = await offer_reads.find_offers(reads, caller, state, None, before)
    return show(
        request,
        caller,
        "offer_list.html",
        offers=found.offers,
        next=found.next,
        status=state or "",
        statuses=[("", "All"), *((name, words_of(name)) for name in STATES)],
        chips=CHIPS,
    )


@get("/buying/offers/new")
async def new_offer_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        values = await found_cards(request, caller, reads)
    return show(request, caller, "offer_new.html", **values)


@post_form("/buying/offers/new")
async def draft_by_form(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Draft an offer of the form's cards, or of the matched rows of a collection."""
    now = clock.now()
    collection_id = read_id(form["collection_id"])
    wants = None if collection_id else wants_of(form)
    offer = await offer_drafts.draft_offer(session, caller, wants, now, collection_id=collection_id)
    return see(f"/buying/offers/{offer.id}", message("offer_drafted"))


async def found_cards(request: PageRequest, caller: Caller, source: Source) -> TemplateValues:
    """Return the page's values for the search of a customer's cards."""
    query = request.query_params
    typed = query.get("q", "")[: limits.SEARCHED_CHARACTERS]
    game = query.get("game", "")
    line = game if game in caller.account.product_lines else None
    return {
        "typed": typed,
        "game": game,
        "games": games_of(caller),
        "products": await products_like(source, caller, typed, line, limits.TYPE_AHEAD),
        "conditions": GRADE_CHOICES,
        "printings_of": printings_of,
    }


def wants_of(form: Form, *, some: bool = True) -> list[OfferWant]:
    """Return the form's cards that have a number of copies. Raises InvalidPayload for an unreadable
    form; with `some`, also for a form without such cards.
    """
    wants = []
    for name in form:
        product_id = read_id(name.removeprefix("copies:"))
        if not name.startswith("copies:") or not form[name] or product_id is None:
            continue
        given = {part: form[f"{part}:{product_id}"] for part in _ROW}
        values: dict[str, object] = {part: text for part, text in given.items() if text}
        values |= {"product_id": product_id, "copies": form[name]}
        wants.append(read_json.read(values, OfferWant, f"card {product_id}, ", strict=False))
    if some and not wants:
        raise errors.InvalidPayload("copies: enter the copies of at least one card")
    return wants


def words_of(state: str) -> str:
    return state.replace("_", " ").capitalize()


ROUTES: Final = [offers_page, new_offer_page, draft_by_form]

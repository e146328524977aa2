"""The page of one card: its position in the list that led here, the same product in other
conditions, prices of all sources with their age, history, orders, shelves, lists, match, and the
explanation of its target. The module also has the page on which a member settles the card's match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form, writer_of
from cardsync.dashboard.ladder import fall_of, ladder_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.card_charts import DAYS, charts_of, days_of, sources_of
from cardsync.dashboard.pages.card_filters import VIEWS
from cardsync.dashboard.pages.cards import pinned_by, read_asked
from cardsync.dashboard.shell import PageRequest, TemplateValues, back_to, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.money import UNITS_PER_CENT
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import read_place
from cardsync.platform.storage import Store
from cardsync.prices.plans import writes
from cardsync.prices.receipts.archive import breakdown_at
from cardsync.prices.receipts.explain import explain_card
from cardsync.prices.receipts.in_short import receipt_of
from cardsync.prices.receipts.schemas import Explanation, ReceiptThen
from cardsync.prices.receipts.what_if import WhatIf, what_if
from cardsync.prices.recommendations.badges import badges_of
from cardsync.prices.recommendations.why_held import gate_hold
from cardsync.prices.rules.rule_forms import read_percent
from cardsync.sales.lots import profit, read_lots
from cardsync.sales.orders.of_card import orders_of_card
from cardsync.shop.activity.entry_words import summary_words
from cardsync.shop.activity.feed import names_in
from cardsync.stock.cards.card_filter import CardPage
from cardsync.stock.cards.chosen_match import settle_match
from cardsync.stock.cards.matches import read_match
from cardsync.stock.cards.queries import read_card, read_whole_card, search_cards
from cardsync.stock.cards.same_card import same_cards
from cardsync.stock.cards.schemas import (
    CardWithHistory,
    card_body,
    with_history,
)
from cardsync.stock.contributions.add import publish
from cardsync.stock.quick_add.type_ahead import products_like
from cardsync.stock.shelving.places import assign
from cardsync.web.forms import Form, sentence
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import opened, reading

SOLD = 10
# The parameters of the address that change the card's rule for a trial.
CHANGES = ("price_source", "percent", "adjust_amount", "floor", "ceiling")


class Place(NamedTuple):
    """The card's position in the list that led to it. `name` is the name of the list's view, or its
    search; `before` and `after` are the addresses of the card's neighbors.
    """

    name: str
    address: str
    at: int
    total: int
    before: str
    after: str


@dataclass(frozen=True)
class _Around(CardPage):
    """The card at the place `page` of a list, and its neighbors."""

    @property
    def offset(self) -> int:
        return max(0, self.page - 2)


async def place_of(
    request: PageRequest, reads: Reading, caller: Caller, settings: Settings, card_id: int
) -> Place | None:
    """Return the card's position in the address's list; None if the card is not there. The search
    is the last read of the reading, because its time-out ends the reading.
    """
    at = read_id(str(request.query_params.get("at", "")))
    if at is None or not 0 < at <= limits.CARDS_SCROLLED:
        return None
    try:
        asked = read_asked(request.query_params.dict())
    except errors.InvalidPayload:
        return None
    around = _Around(at, 3 if at > 1 else 2, asked.page.sort, asked.page.direction)
    seconds = settings.read_seconds
    found = (await search_cards(reads, caller, asked.wanted, around, seconds)).found
    ids = dict(enumerate((row.id for row in found.cards), around.offset + 1))

    def address(place: int) -> str:
        there = asked.address(page=None, at=place)
        return there.replace("/cards", f"/cards/{ids[place]}", 1) if place in ids else ""

    if ids.get(at) != card_id:
        return None
    wanted = asked.wanted.search
    page = -(-at // asked.page.per_page)
    return Place(
        dict(VIEWS).get(wanted, wanted),
        asked.address(page=page if page > 1 else None),
        at,
        found.total,
        address(at - 1),
        address(at + 1),
    )


@get("/cards/{card_id:int}")
async def card_page(
    request: PageRequest,
    caller: Caller,
    store: Store,
    settings: Settings,
    heavy: HeavyWork,
    card_id: int,
) -> Template:
    after = read_id(str(request.query_params.get("sold_after", "")))
    now = clock.now()
    sold_at = clock.read_moment(str(request.query_params.get("then", "")))
    changes = {name: str(request.query_params.get(name, "")).strip() for name in CHANGES}
    async with reading(request) as reads:
        sold, same, (row, history) = await at_once(
            orders_of_card(reads, caller, card_id, after, SOLD),
            same_cards(reads, caller, card_id),
            read_card(reads, caller, card_id, last=False),
        )
        card = with_history(row, history)
        why, match, marks, costs = await at_once(
            _why(reads, caller, store, card),
            read_match(reads, caller, card_id),
            badges_of(reads, caller, [], [card_id], now),
            _costs(reads, caller, card),
        )
        then = await _then(reads, caller, store, card, sold_at)
        changed, problem = await _changed(reads, caller, card, changes)
        by = await pinned_by(reads, caller, why.pin if why else None)
        place = await place_of(request, reads, caller, settings, card_id)
    if whole := request.query_params.get("history") == "all":
        row, history = await heavy.read(read_whole_card, caller, Work.LONG, now, card_id)
        card = with_history(row, history)
    days = days_of(str(request.query_params.get("days", "")), whole=whole)
    return show(
        request,
        caller,
        "card.html",
        card=card,
        whole=whole,
        days=days,
        all_days=DAYS,
        same=same,
        place=place,
        why=why,
        mark=marks[0] if marks else None,
        pinned_by=by,
        match=match,
        sold=sold,
        first_sold=after is None,
        changes=changes,
        changed=changed,
        change_problem=problem,
        sold_at=clock.rfc3339(sold_at) if then and sold_at else "",
        then=then,
        **_receipts(changed, why, then),
        **explained(card, why.steps if why else []),
        **charts_of(card, days),
        **costs,
    )


def explained(card: CardWithHistory, steps: Sequence[Mapping[str, object]]) -> TemplateValues:
    """Return the page's values that explain the target: sources, receipt, fall and ladder. Pure."""
    receipt = receipt_of(steps)
    return {
        "gate_hold": gate_hold(steps),
        "sources": sources_of(card, steps),
        "receipt": receipt,
        "fall": fall_of(receipt.short),
        "ladder": ladder_of(card, steps),
    }


async def _costs(reads: Reading, caller: Caller, card: CardWithHistory) -> TemplateValues:
    """Return the card's lots and profit; no cost if the caller may not see revenue."""
    if not caller.sees_revenue or card.contribution is not None or card.custom:
        return {"cost": None}
    number = card.marketplace_id
    earned, lots, cost = await at_once(
        profit.of_card(reads, caller, number),
        read_lots.newest_of_card(reads, caller, number, limits.LOTS_PER_PAGE),
        read_lots.cost_of(reads, caller, number),
    )
    return {"cost": cost, "lots": lots, "earned": earned}


def _receipts(
    changed: WhatIf | None, why: Explanation | None, then: ReceiptThen | None
) -> TemplateValues:
    """Return the receipts of the target under the tried rule, of the present target, and of the
    price at which a copy was sold.
    """
    return {
        "receipt_if": receipt_of(changed.steps if changed else []),
        "kept_receipt": receipt_of(_kept_steps(why)),
        "receipt_at_sale": receipt_of(_kept_steps(then)),
    }


def _kept_steps(found: Explanation | ReceiptThen | None) -> list[dict[str, object]]:
    kept = found.historical_breakdown if found else None
    return kept["steps"] if kept else []


async def _why(
    reads: Reading,
    caller: Caller,
    store: Store,
    card: CardWithHistory,
) -> Explanation | None:
    """Return the explanation of the target; None if the card is a contribution."""
    if card.contribution is not None:
        return None
    try:
        return await explain_card(reads, caller.seller_id, store, card.marketplace_id, clock.now())
    except errors.NotFound:
        return None


async def _then(
    reads: Reading,
    caller: Caller,
    store: Store,
    card: CardWithHistory,
    at: datetime | None,
) -> ReceiptThen | None:
    """Return the stored receipt of the price at the time `at`; None without a time."""
    if at is None or card.contribution is not None:
        return None
    return await breakdown_at(reads, caller, store, card.marketplace_id, at)


async def _changed(
    reads: Reading,
    caller: Caller,
    card: CardWithHistory,
    changes: Mapping[str, str],
) -> tuple[WhatIf | None, str]:
    """Return the card's target under its rule with `changes`, or the reason why it has
    no target.
    """
    if caller.role != "owner" or not any(changes.values()):
        return None, ""
    try:
        body = body_of(changes)
        return await what_if(reads, caller, card.marketplace_id, body, clock.now()), ""
    except (errors.InvalidRule, errors.NotFound) as e:
        return None, sentence(e)


def body_of(changes: Mapping[str, str]) -> dict[str, object]:
    """Return the changed fields as the body of a rule, with percentages as basis points. Pure.
    Raises InvalidRule.
    """
    body: dict[str, object] = {
        name: value for name, value in changes.items() if value and name != "percent"
    }
    if percent := changes["percent"]:
        body["adjust_bp"] = read_percent(percent, "percent")
    return body


@post_form("/cards/{card_id:int}/pin")
async def pin_card(
    request: PageRequest,
    caller: Caller,
    form: Form,
    card_id: int,
) -> Response[str]:
    number = await _marketplace_id(request, caller, card_id)
    async with opened(request, long=True) as session:
        writer = writer_of(request, session)
        shown_at = clock.read_moment(form["seen"])
        try:
            price = await writes.pin(writer, number, {"price": form["price"]}, shown_at)
        except errors.ChangedSince as e:
            names = await names_in(session, caller, [str(e)])
            raise errors.ChangedSince(summary_words(str(e), names)) from e
    return _after(form, card_id, message("pinned", price // UNITS_PER_CENT))


def _after(form: Form, card_id: int, done: str) -> Response[str]:
    """Send the browser back to the page with the form: the table of cards, or the card's page."""
    return back_to(form["back"], done) if form["back"] else see(f"/cards/{card_id}", done=done)


@post_form("/cards/{card_id:int}/place")
async def place_card(
    caller: Caller, form: Form, session: AsyncSession, card_id: int
) -> Response[str]:
    """Move the copies in one place, or the unassigned copies, to the typed place."""
    origin = read_place(form["from"]) if form["from"] else None
    target = read_place(form["place"]) if form["place"] else None
    copies = await assign(session, caller, card_id, origin, target, clock.now())
    if target is not None:
        done = message("copies_put", copies, target)
    else:
        done = message("card_taken_out", origin) if origin else message("same")
    return _after(form, card_id, done)


@post_form("/cards/{card_id:int}/unpin")
async def unpin_card(
    request: PageRequest,
    caller: Caller,
    form: Form,
    card_id: int,
) -> Response[str]:
    number = await _marketplace_id(request, caller, card_id)
    async with opened(request, long=True) as session:
        await writes.unpin(writer_of(request, session), number)
    return _after(form, card_id, message("unpinned"))


async def _marketplace_id(request: PageRequest, caller: Caller, card_id: int) -> int:
    async with reading(request) as reads:
        row, _ = await read_card(reads, caller, card_id)
    return row.marketplace_id


@post_form("/cards/{card_id:int}/publish")
async def publish_card(caller: Caller, bounded: AsyncSession, card_id: int) -> Response[str]:
    """Make a contribution visible to all members of the shop."""
    await publish(bounded, caller, card_id, clock.now())
    return see(f"/cards/{card_id}", done=message("card_published"))


@get("/cards/{card_id:int}/match")
async def match_page(
    request: PageRequest,
    caller: Caller,
    card_id: int,
) -> Template:
    """Show the products in the catalog that the card may be."""
    async with reading(request) as reads:
        match, (row, _) = await at_once(
            read_match(reads, caller, card_id),
            read_card(reads, caller, card_id, last=False),
        )
        card = card_body(row)
        typed = request.query_params.get("typed", card.product_name)[: limits.SEARCH_CHARACTERS]
        found = await products_like(reads, caller, typed, None, limits.TYPE_AHEAD_MOST)
    return show(
        request, caller, "card_match.html", card=card, match=match, typed=typed, products=found
    )


@post_form("/cards/{card_id:int}/match")
async def settle(
    caller: Caller,
    form: Form,
    bounded: AsyncSession,
    card_id: int,
) -> Response[str]:
    product_id = read_id(form["product_id"])
    if product_id is None or abs(product_id) > limits.LARGEST_ID:
        raise errors.InvalidPayload("product_id: choose the product that the card is")
    await settle_match(bounded, caller, card_id, product_id, clock.now())
    return see(f"/cards/{card_id}", done=message("match_settled"))


ROUTES = [card_page, pin_card, place_card, unpin_card, publish_card, match_page, settle]

"""The page of one offer in each of its states: its cards with their explanations, the customer, and
the one next step; and the forms of all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, get_args

from litestar import MediaType, Response, get
from litestar.response import Template
from msgspec import UNSET
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.buylist.buylist_settings import shop_of
from cardsync.buying.limits import OFFER_DAYS_USUAL
from cardsync.buying.offers import into_stock, offer_drafts, offer_life, offer_links, offer_reads
from cardsync.buying.offers.models import Way
from cardsync.buying.offers.offer_life import CountedLine
from cardsync.buying.offers.price_lines import OfferWant
from cardsync.buying.offers.schemas import OfferInFull, OfferLine
from cardsync.buying.store_credit import buying_customers
from cardsync.buying.store_credit.schemas import Customers
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.customer_offer import WAYS, chosen_of, part_of
from cardsync.dashboard.pages.offer_list import CHIPS, found_cards, wants_of, words_of
from cardsync.dashboard.pages.printing import drawn_code
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors, limits, read_json
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.settings import Settings
from cardsync.web.forms import Form, sentence
from cardsync.web.request import reading

LINES_SHOWN: Final = 200
_TYPED: Final = ("copies", "condition", "cash_each", "credit_each", "price_of")


@get("/buying/offers/{offer_id:int}")
async def offer_page(
    request: PageRequest, caller: Caller, offer_id: int
) -> Template | Response[str]:
    """Show the offer. A page that waits for the customer's answer sends the revision that it shows,
    and gets an empty answer while that is the current revision.
    """
    async with reading(request) as reads:
        if since := read_id(request.query_params.get("since", "")):
            known = await offer_reads.offer_row(reads, caller.seller_id, offer_id)
            if known.revision == since:
                return Response("", status_code=204, media_type=MediaType.TEXT)
        return await _shown(request, caller, reads, offer_id)


async def _shown(
    request: PageRequest, caller: Caller, source: Source, offer_id: int, link: str = ""
) -> Template:
    named = request.query_params.get("customer", "")[: limits.SEARCHED_CHARACTERS]
    offer, customers, cards = await each_of(
        source,
        offer_reads.one_offer(source, caller, offer_id),
        buying_customers.find_customers(source, caller, named, None),
        found_cards(request, caller, source),
    )
    lines = part_of(request, offer.lines, LINES_SHOWN)
    return show(
        request,
        caller,
        "offer_desk.html",
        offer=offer,
        lines=lines.rows,
        page=lines.page,
        pages=lines.pages,
        state_words=words_of(offer.state),
        chips=CHIPS,
        ways=WAYS,
        days=OFFER_DAYS_USUAL,
        most_days=limits.OFFER_DAYS,
        customers=_choices(offer, customers),
        named=named,
        may_search=caller.sees_buyers,
        link=link,
        code=drawn_code(link) if link else "",
        **cards,
    )


def _choices(offer: OfferInFull, found: Customers) -> list[tuple[int | str, str]]:
    """Return the customers to choose from: those that the search found, and the offer's own
    customer.
    """
    choices: list[tuple[int | str, str]] = [(each.id, each.name) for each in found.customers]
    known = {each.id for each in found.customers}
    if offer.customer_id is None:
        return [("", "Choose"), *choices]
    if offer.customer_id not in known:
        own = offer.customer_name or f"Customer {offer.customer_id}"
        choices.insert(0, (offer.customer_id, own))
    return choices


@post_form("/buying/offers/{offer_id:int}/save")
async def save_draft(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    """Save the draft's form: lines, added cards, customer and note. The form's buttons for finding
    cards or customers also save it first, so that no typed value is lost.
    """
    await _keep(session, caller, form, offer_id)
    q, customer = form["q"], form["customer"]
    return _back(offer_id, "draft_saved", q=q, game=form["game"], customer=customer)


@post_form("/buying/offers/{offer_id:int}/preview", status_code=200)
async def preview_draft(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Template:
    """Show the draft's sums for the values in its form."""
    problem, totals = "", None
    try:
        offer = await offer_reads.one_offer(session, caller, offer_id)
        changed, more = _typed_lines(form, offer.lines), wants_of(form, some=False)
        totals = await offer_drafts.preview_lines(
            session, caller, offer_id, more, changed, clock.now()
        )
    except (errors.InvalidPayload, errors.OfferStateWrong) as e:
        # A preview may arrive after the offer was sent to the customer.
        problem = sentence(e)
    return show(request, caller, "offer_sums.html", totals=totals, problem=problem)


async def _keep(session: AsyncSession, caller: Caller, form: Form, offer_id: int) -> OfferInFull:
    """Save the draft's form. Raises what `change_lines` raises."""
    offer = await offer_reads.one_offer(session, caller, offer_id)
    customer_id, now = await _customer(session, caller, form), clock.now()
    return await offer_drafts.change_lines(
        session,
        caller,
        offer_id,
        _revision(form),
        wants_of(form, some=False),
        _typed_lines(form, offer.lines),
        now,
        customer_id=customer_id or UNSET,
        note_text=form["note"] if "note" in form and caller.sees_buyers else UNSET,
    )


async def _customer(session: AsyncSession, caller: Caller, form: Form) -> int | None:
    """Return the id of the customer that the form names, after adding a new one."""
    if not form["name"]:
        return read_id(form["customer_id"])
    made = await buying_customers.add_customer(
        session, caller, form["name"], form["contact"], clock.now()
    )
    return made.id


def _typed_lines(form: Form, lines: Sequence[OfferLine]) -> dict[int, OfferWant | None]:
    """Return the changed lines of the form. A line without copies is removed. If a member typed
    only one of two prices, the other keeps its value. Raises InvalidPayload.
    """
    changed: dict[int, OfferWant | None] = {}
    for line in lines:
        if f"line-copies:{line.id}" not in form:
            continue
        typed = {name: form[f"line-{name}:{line.id}"] for name in _TYPED}
        if typed["copies"] in ("", "0"):
            changed[line.id] = None
            continue
        values = {name: text for name, text in typed.items() if text}
        values |= {name: getattr(line, name) for name in ("product_id", "printing", "language")}
        values.setdefault("condition", line.condition)
        for name in ("cash_each", "credit_each"):
            by_hand = typed["cash_each"] or typed["credit_each"]
            if by_hand and not line.by_hand and not typed[name] and getattr(line, name):
                values[name] = getattr(line, name)
        changed[line.id] = read_json.read(values, OfferWant, f"{line.product_name}, ", strict=False)
    return changed


@post_form("/buying/offers/{offer_id:int}/customer")
async def set_customer(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    """Save the customer, who may be new, and the note. If the form names nobody, the customer does
    not change.
    """
    customer_id = await _customer(session, caller, form)
    await offer_drafts.change_draft(
        session,
        caller,
        offer_id,
        _revision(form),
        clock.now(),
        customer_id=customer_id or UNSET,
        note_text=form["note"],
    )
    return _back(offer_id, "saved")


@post_form("/buying/offers/{offer_id:int}/delete")
async def delete_draft(caller: Caller, session: AsyncSession, offer_id: int) -> Response[str]:
    await offer_drafts.delete_draft(session, caller, offer_id, clock.now())
    return see("/buying/offers", message("offer_deleted"))


@post_form("/buying/offers/{offer_id:int}/offer")
async def offer_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    days = read_id(form["days"])
    if days is None or not 1 <= days <= limits.OFFER_DAYS:
        raise errors.InvalidPayload(f"days: 1 to {limits.OFFER_DAYS}")
    # The button is in the draft's form, so the form's values are saved first.
    kept = "note" in form
    revision = (await _keep(session, caller, form, offer_id)).revision if kept else _revision(form)
    await offer_life.offer_it(session, caller, offer_id, revision, days, clock.now())
    return _back(offer_id, "offer_offered")


@post_form("/buying/offers/{offer_id:int}/link", status_code=200)
async def link_by_form(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    offer_id: int,
) -> Template:
    """Make a link for the customer, and show it this one time with its QR code."""
    origin = settings.origin_for(request.headers.get("host"))
    made = await offer_links.make_link(session, caller, offer_id, origin, clock.now())
    return await _shown(request, caller, session, offer_id, made.url)


@post_form("/buying/offers/{offer_id:int}/accept")
async def accept_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    way, part = _way(form)
    chosen, shown = chosen_of(form)
    await offer_life.answer_yes(
        session,
        caller,
        offer_id,
        _revision(form),
        way,
        part,
        chosen if chosen or shown else None,
        clock.now(),
        shown=shown or None,
    )
    return _back(offer_id, "offer_answered")


@post_form("/buying/offers/{offer_id:int}/decline")
async def decline_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    await offer_life.answer_no(session, caller, offer_id, _revision(form), clock.now())
    return _back(offer_id, "offer_declined")


@post_form("/buying/offers/{offer_id:int}/receive")
async def receive_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    """Save the counted copies and condition of each accepted line."""
    came = []
    for name in form:
        line_id = read_id(name.removeprefix("came:"))
        if not name.startswith("came:") or line_id is None:
            continue
        values: dict[str, object] = {"id": line_id, "copies": form[name] or "0"}
        if form[f"condition:{line_id}"]:
            values["condition"] = form[f"condition:{line_id}"]
        came.append(read_json.read(values, CountedLine, f"line {line_id}, ", strict=False))
    await offer_life.receive(session, caller, offer_id, _revision(form), came, clock.now())
    return _back(offer_id, "offer_received")


@post_form("/buying/offers/{offer_id:int}/pay")
async def pay_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    way, part = _way(form)
    await offer_life.pay(
        session, caller, offer_id, _revision(form), clock.now(), way=way, cash_part=part
    )
    return _back(offer_id, "offer_paid")


@post_form("/buying/offers/{offer_id:int}/stock")
async def stock_by_form(
    caller: Caller, form: Form, session: AsyncSession, offer_id: int
) -> Response[str]:
    await into_stock.take_into_stock(session, caller, offer_id, _revision(form), clock.now())
    return see("/add-cards", message("offer_stocked"), status="draft")


@get("/print/offers/{offer_id:int}")
async def offer_sheet(request: PageRequest, caller: Caller, offer_id: int) -> Template:
    """Show the offer for printing. After payment it is the receipt."""
    async with reading(request) as reads:
        offer, shop = await at_once(
            offer_reads.one_offer(reads, caller, offer_id), shop_of(reads, caller)
        )
    is_receipt = offer.paid_at is not None
    return show(
        request,
        caller,
        "offer_sheet.html",
        offer=offer,
        shop=shop,
        is_receipt=is_receipt,
    )


def _way(form: Form) -> tuple[Way, Decimal | None]:
    """Read how the customer is paid, and the cash part of a split. Raises InvalidPayload."""
    way: Any = form["way"]
    if way not in get_args(Way):
        raise errors.InvalidPayload("way: choose cash, store credit or split")
    part = None
    if way == "split":
        part = read_json.read(form["cash_part"], Decimal, "cash_part: ", strict=False)
    return way, part


def _revision(form: Form) -> int:
    return read_id(form["revision"]) or 0


def _back(offer_id: int, done: str, **query: str) -> Response[str]:
    return see(f"/buying/offers/{offer_id}", message(done), **query)


ROUTES: Final = [
    offer_page,
    save_draft,
    preview_draft,
    set_customer,
    delete_draft,
    offer_by_form,
    link_by_form,
    accept_by_form,
    decline_by_form,
    receive_by_form,
    pay_by_form,
    stock_by_form,
    offer_sheet,
]

"""The pages of buying customers with their store credit, and the public buylist's settings."""

from __future__ import annotations

import secrets
from decimal import Decimal
from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.buylist import buylist_settings
from cardsync.buying.offers import offer_reads
from cardsync.buying.store_credit import buying_customers, credit_entries
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.offer_list import CHIPS
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors, limits, read_json
from cardsync.platform.concurrency import at_once
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.settings import Settings
from cardsync.web.forms import Form
from cardsync.web.request import reading


@get("/buying/customers")
async def buying_customers_page(request: PageRequest, caller: Caller) -> Template:
    query = request.query_params
    typed = query.get("q", "")[: limits.SEARCHED_CHARACTERS]
    before = read_id(query.get("before", ""))
    async with reading(request) as reads:
        found = await buying_customers.find_customers(reads, caller, typed, before)
    return show(
        request,
        caller,
        "credit_customers.html",
        customers=found.customers,
        next=found.next,
        typed=typed,
    )


@post_form("/buying/customers")
async def add_by_form(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    made = await buying_customers.add_customer(
        session, caller, form["name"], form["contact"], clock.now()
    )
    return see(f"/buying/customers/{made.id}", message("saved"))


@get("/buying/customers/{customer_id:int}")
async def buying_customer_page(request: PageRequest, caller: Caller, customer_id: int) -> Template:
    async with reading(request) as reads:
        found, customer, sheet = await at_once(
            offer_reads.find_offers(reads, caller, None, customer_id, None),
            buying_customers.one_customer(reads, caller, customer_id),
            credit_entries.credit_of(reads, caller, customer_id),
        )
    return show(
        request,
        caller,
        "credit_customer.html",
        customer=customer,
        sheet=sheet,
        offers=found.offers,
        chips=CHIPS,
        # The form's own key, so that a form that is sent twice makes only one entry.
        key=secrets.token_urlsafe(18),
    )


@post_form("/buying/customers/{customer_id:int}")
async def change_by_form(
    caller: Caller, form: Form, session: AsyncSession, customer_id: int
) -> Response[str]:
    await buying_customers.change_customer(
        session, caller, customer_id, form["name"], form["contact"], clock.now()
    )
    return see(f"/buying/customers/{customer_id}", message("saved"))


@post_form("/buying/customers/{customer_id:int}/credit")
async def credit_by_form(
    caller: Caller, form: Form, session: AsyncSession, customer_id: int
) -> Response[str]:
    """Add store credit or spend it, depending on the pressed button."""
    amount = read_json.read(form["amount"], Decimal, "amount: ", strict=False)
    if amount < 0:
        raise errors.InvalidPayload("amount: must not be negative")
    signed = amount if form["change"] == "add" else -amount
    await credit_entries.add_or_spend(
        session, caller, customer_id, signed, form["reason"], form["key"], clock.now()
    )
    return see(f"/buying/customers/{customer_id}", message("credit_entered"))


@get("/buying/buylist")
async def buylist_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    async with reading(request) as reads:
        found = await buylist_settings.read_settings(reads, caller)
    origin = settings.origin_for(request.headers.get("host"))
    address = f"{origin}{found.path}"
    return show(request, caller, "buylist_settings.html", buylist=found, address=address)


@post_form("/buying/buylist")
async def change_buylist(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    await buylist_settings.change_settings(
        session, caller, form["is_open"] == "true", form["terms"], clock.now()
    )
    return see("/buying/buylist", message("saved"))


ROUTES: Final = [
    buying_customers_page,
    add_by_form,
    buying_customer_page,
    change_by_form,
    credit_by_form,
    buylist_page,
    change_buylist,
]

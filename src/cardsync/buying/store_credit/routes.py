"""HTTP routes of buying customers and their store credit."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, patch, post
from litestar.params import QueryParameter
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.store_credit import buying_customers, credit_entries
from cardsync.buying.store_credit.schemas import CreditEntry, CreditSheet, Customer, Customers
from cardsync.platform import clock, errors, limits
from cardsync.platform.read_json import Amount
from cardsync.web.request import BEHIND_A_KEY, FOR_EITHER, FOR_OWNERS, WITH_JSON_BODY, problems

Key = Annotated[
    str,
    msgspec.Meta(
        pattern=credit_entries.KEY_FORM,
        description="1 to 255 visible ASCII characters; the same key makes one entry",
    ),
]


class NewCustomer(msgspec.Struct):
    name: str
    contact: str = ""


class CustomerChanges(msgspec.Struct):
    name: str | UnsetType = UNSET
    contact: str | UnsetType = UNSET


class CreditChange(msgspec.Struct):
    """A change of a customer's credit. A positive amount is added and needs a reason; a negative
    amount is spent.
    """

    amount: Amount
    key: Key
    reason: Annotated[str, msgspec.Meta(max_length=limits.CUSTOMER_NOTE_CHARACTERS)] = ""
    """Why the balance changes"""


@get(
    "/buying/customers",
    responses=problems(*BEHIND_A_KEY, errors.InvalidPayload, errors.BuyersHidden),
)
async def list_buying_customers(
    caller: Caller,
    session: AsyncSession,
    typed: Annotated[str, QueryParameter(name="q", max_length=limits.SEARCHED_CHARACTERS)] = "",
    before: Annotated[int | None, QueryParameter(ge=1, le=limits.LARGEST_ID)] = None,
) -> Customers:
    """Customers who sell cards to the shop, newest first. With `q`, only customers with this text
    in their name or contact.
    """
    return await buying_customers.find_customers(session, caller, typed, before)


@post("/buying/customers", responses=problems(*FOR_EITHER, *WITH_JSON_BODY))
async def add_buying_customer(caller: Caller, session: AsyncSession, data: NewCustomer) -> Customer:
    """Add a customer."""
    return await buying_customers.add_customer(
        session, caller, data.name, data.contact, clock.now()
    )


@get("/buying/customers/{customer_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_buying_customer(caller: Caller, session: AsyncSession, customer_id: int) -> Customer:
    """One customer, with the balance of the customer's store credit."""
    return await buying_customers.one_customer(session, caller, customer_id)


@patch(
    "/buying/customers/{customer_id:int}",
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.NotFound, errors.BuyersHidden),
)
async def change_buying_customer(
    caller: Caller, session: AsyncSession, customer_id: int, data: CustomerChanges
) -> Customer:
    """Change a customer's name or contact."""
    return await buying_customers.change_customer(
        session, caller, customer_id, data.name, data.contact, clock.now()
    )


@get(
    "/buying/customers/{customer_id:int}/credit",
    responses=problems(*BEHIND_A_KEY, errors.NotFound),
)
async def read_store_credit(caller: Caller, session: AsyncSession, customer_id: int) -> CreditSheet:
    """A customer's store credit: the balance, and the newest entries of the ledger."""
    return await credit_entries.credit_of(session, caller, customer_id)


@post(
    "/buying/customers/{customer_id:int}/credit",
    responses=problems(
        *FOR_OWNERS,
        *WITH_JSON_BODY,
        errors.NotFound,
        errors.StoreCreditTooLow,
        errors.RefusedByGrant,
    ),
)
async def change_store_credit(
    caller: Caller, session: AsyncSession, customer_id: int, data: CreditChange
) -> CreditEntry:
    """Add store credit by hand, or spend store credit."""
    return await credit_entries.add_or_spend(
        session, caller, customer_id, data.amount, data.reason, data.key, clock.now()
    )


router = Router(
    path="",
    route_handlers=[
        list_buying_customers,
        add_buying_customer,
        read_buying_customer,
        change_buying_customer,
        read_store_credit,
        change_store_credit,
    ],
    tags=["buying"],
)

"""The JSON structs of offers, and the functions that fill them. Pure. Amounts are text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from cardsync.access.caller import Caller
from cardsync.buying.engine.wanted_lines import Reason
from cardsync.buying.offers.models import BuyingOffer, BuyingOfferLine, Source, State, Way
from cardsync.buying.offers.offer_amounts import Priced, Totals, totals
from cardsync.buying.rules.price_schemas import OtherFinish, PriceTakenShown
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.money import dollars, to_units, usd


class Shop(NamedTuple):
    """The shop as customers and strangers see it."""

    name: str
    terms: str
    buylist: str = ""
    """The address of its public buylist, where that is open"""


class Received(msgspec.Struct):
    """The cards as they were counted; `changed` says in sentences what is not as offered."""

    copies: int
    condition: str
    cash_each: str | None
    credit_each: str | None
    changed: list[str]
    """The differences from the offer, in sentences"""


class OfferLine(msgspec.Struct):
    """Copies of one price; without prices they are not bought, and `reason` says why. `accepted`
    is null until the offer is answered.
    """

    id: int
    product_id: int
    game: str
    set_name: str
    product_name: str
    number: str
    condition: str
    printing: str
    language: str
    copies: int
    cash_each: str | None
    credit_each: str | None
    reason: str
    reason_code: Reason | None
    """The reason as a code, such as no_price"""
    price_of: str | None
    """The finish whose price counts by a person's choice"""
    price_taken: PriceTakenShown | None
    """The price by which the card was valued; null: none is known, or it was set by hand"""
    other_finishes: list[OtherFinish]
    """The finishes that may be chosen in place of an unknown price"""
    explanation: list[str]
    by_hand: bool
    """Its prices were set by hand"""
    rule_id: int | None
    accepted: bool | None
    """Whether the customer accepted it; null before the answer"""
    received: Received | None
    """The copies that arrived; null before"""
    quick_add_id: int | None
    """The quick-add entry of the copies; null before"""


class OfferTotals(msgspec.Struct):
    """The copies that are bought, and what all of them bring in one way. Lines that bring nothing
    are not counted.
    """

    copies: int
    cash: str
    credit: str
    not_counted: int
    """The lines that the amounts leave out"""


class Offer(msgspec.Struct):
    """`totals` counts the lines that are bought: all of a draft, the accepted ones after that, and
    what came once the cards are received. `revision` goes with the next change. `customer_name` and
    `note` are empty for a caller who may not see buyers.
    """

    id: int
    revision: int
    state: State
    source: Source
    collection_id: int | None
    customer_id: int | None
    customer_name: str
    note: str
    way: Way | None
    cash_part: str | None
    paid_cash: str | None
    paid_credit: str | None
    totals: OfferTotals
    has_link: bool
    created_by: str
    answered_by: str | None
    created_at: str
    updated_at: str
    offered_at: str | None
    expires_at: str | None
    answered_at: str | None
    received_at: str | None
    paid_at: str | None
    stocked_at: str | None


class OfferInFull(Offer):
    lines: list[OfferLine]
    """The cards of the offer"""


class Offers(msgspec.Struct):
    """`next` is the cursor of the next page, null on the last one."""

    offers: list[Offer]
    next: int | None


class OfferLinkMade(msgspec.Struct):
    """The link is shown once; a new one ends it."""

    offer_id: int
    url: str


def counted(line: BuyingOfferLine) -> Priced:
    """Return the line as it counts now: not at all where it was not accepted."""
    if line.accepted is False:
        return Priced(0, None, None)
    if line.received_copies is None:
        return Priced(line.copies, line.cash_each, line.credit_each)
    return Priced(line.received_copies, line.received_cash_each, line.received_credit_each)


def totals_body(of: Totals) -> OfferTotals:
    cash, credit = dollars(to_units(of.cash)), dollars(to_units(of.credit))
    return OfferTotals(of.copies, cash, credit, of.not_counted)


def offer_body(caller: Caller, row: BuyingOffer, name: str | None, of: Totals) -> Offer:
    return Offer(**_fields(caller, row, name, of))


def offer_in_full(
    caller: Caller, row: BuyingOffer, name: str | None, lines: Sequence[BuyingOfferLine]
) -> OfferInFull:
    of = totals(counted(line) for line in lines)
    return OfferInFull(**_fields(caller, row, name, of), lines=[line_body(line) for line in lines])


def _fields(caller: Caller, row: BuyingOffer, name: str | None, of: Totals) -> dict[str, Any]:
    amounts = ("cash_part", "paid_cash", "paid_credit")
    moments = ("offered", "expires", "answered", "received", "paid", "stocked")
    own: dict[str, Any] = {
        "customer_name": caller.buyer(name) or "",
        "note": caller.buyer(row.note) or "",
        "totals": totals_body(of),
        "has_link": row.secret_hash is not None,
        "created_at": rfc3339(row.created_at),
        "updated_at": rfc3339(row.updated_at),
        **{amount: usd(getattr(row, amount)) for amount in amounts},
        **{f"{at}_at": rfc3339_or_none(getattr(row, f"{at}_at")) for at in moments},
    }
    same = {field: getattr(row, field) for field in Offer.__struct_fields__ if field not in own}
    return own | same


def line_body(row: BuyingOfferLine) -> OfferLine:
    own: dict[str, Any] = {
        "game": row.product_line,
        "cash_each": usd(row.cash_each),
        "credit_each": usd(row.credit_each),
        "received": _received(row),
        "price_taken": msgspec.convert(row.price_taken, PriceTakenShown | None),
        "other_finishes": msgspec.convert(row.other_finishes, list[OtherFinish]),
    }
    same = {field: getattr(row, field) for field in OfferLine.__struct_fields__ if field not in own}
    return OfferLine(**own, **same)


def _received(row: BuyingOfferLine) -> Received | None:
    if row.received_copies is None or row.received_condition is None:
        return None
    return Received(
        row.received_copies,
        row.received_condition,
        usd(row.received_cash_each),
        usd(row.received_credit_each),
        changes(row),
    )


def changes(row: BuyingOfferLine) -> list[str]:
    """Say what came otherwise than it was offered."""
    said = []
    if row.received_copies is not None and row.received_copies != row.copies:
        said.append(f"{row.received_copies} of {row.copies} copies were received.")
    if row.received_condition not in (None, row.condition):
        said.append(f"The condition is {row.received_condition}, not {row.condition}.")
    for way, was, now in (
        ("in cash", row.cash_each, row.received_cash_each),
        ("in credit", row.credit_each, row.received_credit_each),
    ):
        if row.received_copies and was != now:
            said.append(f"We pay {_amount(now)} {way}, not {_amount(was)}.")
    return said


def _amount(each: Decimal | None) -> str:
    return "nothing" if each is None else f"${dollars(to_units(each))}"

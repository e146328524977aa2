"""The JSON structs of offers. Pure. Amounts are text."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, NamedTuple

import msgspec

from cardsync.access.caller import BuyerText
from cardsync.buying.engine.wanted_lines import Reason
from cardsync.buying.offers.models import BuyingOfferLine, Source, State, Way
from cardsync.buying.offers.offer_amounts import Priced
from cardsync.buying.rules.price_schemas import OtherFinish, PriceTakenShown
from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, Usd, struct_of
from cardsync.platform.money import usd


class Shop(NamedTuple):
    """The shop as customers and visitors see it."""

    name: str
    terms: str
    buylist: str = ""
    """The address of the shop's public buylist; empty if it is not open"""


class Received(msgspec.Struct):
    """The counted cards of a line. `changed` has the differences from the offer as sentences."""

    copies: Annotated[int, Column("received_copies")]
    condition: Annotated[str, Column("received_condition")]
    cash_each: Annotated[Usd | None, Column("received_cash_each")]
    credit_each: Annotated[Usd | None, Column("received_credit_each")]
    changed: Annotated[list[str], OfRow(changes)]
    """The differences from the offer, as sentences"""


class OfferLine(msgspec.Struct):
    """Copies of a card with the same price. Copies without prices are not bought, for the reason
    `reason`. `accepted` is null until the offer is answered.
    """

    id: int
    product_id: int
    game: Annotated[str, Column("product_line")]
    set_name: str
    product_name: str
    number: str
    condition: str
    printing: str
    language: str
    copies: int
    cash_each: Usd | None
    credit_each: Usd | None
    reason: str
    reason_code: Reason | None
    """The reason as a code, such as no_price"""
    price_of: str | None
    """The finish whose price a person chose"""
    price_taken: PriceTakenShown | None
    """The price by which the card was valued; null if none is known or the price was set by hand"""
    other_finishes: list[OtherFinish]
    """The finishes with a known price, one of which may be chosen if the card's price is unknown"""
    explanation: list[str]
    by_hand: bool
    """Whether the prices were set by hand"""
    rule_id: int | None
    accepted: bool | None
    """Whether the customer accepted the line; null until the offer is answered"""
    received: Annotated[Received | None, OfRow(_received)]
    """The counted copies; null until they are counted"""
    quick_add_id: int | None
    """The quick-add entry of the copies; null until they are taken into stock"""


class OfferTotals(msgspec.Struct):
    """The number of bought copies, and their sums if paid in cash or in credit. Lines without a
    price are not bought.
    """

    copies: int
    cash: Usd
    credit: Usd
    not_counted: int
    """The number of lines that are not bought"""


class Offer(msgspec.Struct):
    """A shop's offer for a customer's cards. `totals` are the sums of all bought lines, after the
    answer of the accepted lines, and after the count of the counted copies. The next change must
    send `revision`. `customer_name` and `note` are empty for a caller who may not see buyers.
    """

    id: int
    revision: int
    state: State
    source: Source
    collection_id: int | None
    customer_id: int | None
    customer_name: BuyerText
    note: BuyerText
    way: Way | None
    cash_part: Usd | None
    paid_cash: Usd | None
    paid_credit: Usd | None
    totals: OfferTotals
    has_link: Annotated[bool, Column("secret_hash"), Reads(bool)]
    created_by: str
    answered_by: str | None
    created_at: datetime
    updated_at: datetime
    offered_at: datetime | None
    expires_at: datetime | None
    answered_at: datetime | None
    received_at: datetime | None
    paid_at: datetime | None
    stocked_at: datetime | None


class OfferInFull(Offer):
    lines: list[OfferLine]
    """The lines of the offer"""


class Offers(msgspec.Struct):
    """A page of offers. `next` is the cursor of the next page; null on the last page."""

    offers: list[Offer]
    next: int | None


class OfferLinkMade(msgspec.Struct):
    """The customer's link to an offer. It is shown only once; a new link ends it."""

    offer_id: int
    url: str


def counted(line: BuyingOfferLine) -> Priced:
    """Return the current copies and prices of a line: counted if they were counted, else offered. A
    line that was not accepted has no copies.
    """
    if line.accepted is False:
        return Priced(0, None, None)
    if line.received_copies is None:
        return Priced(line.copies, line.cash_each, line.credit_each)
    return Priced(line.received_copies, line.received_cash_each, line.received_credit_each)


def _received(row: BuyingOfferLine) -> Received | None:
    return None if row.received_condition is None else struct_of(Received, row)


def changes(row: BuyingOfferLine) -> list[str]:
    """Return sentences about the differences between the counted and the offered cards of a
    line.
    """
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
    return "nothing" if each is None else f"${usd(each)}"

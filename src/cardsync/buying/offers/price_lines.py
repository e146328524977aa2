"""Prices a customer's cards by the shop's buy rules, or by hand, as lines of an offer.

If the rules buy copies of a card at different prices, each price gets a line. Copies that the rules
don't buy get a line without prices, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_sentences import sentences
from cardsync.buying.engine.wanted_lines import REASONS, LineFacts, ValuedLine, WantedLine
from cardsync.buying.limits import OFFER_COPIES, OFFER_LINES
from cardsync.buying.offers.offer_amounts import USUAL_GRADES, Priced, need_payable
from cardsync.buying.rules.day_budgets import spent_today
from cardsync.buying.rules.price_schemas import PriceTakenShown, finishes_to_choose
from cardsync.buying.rules.value_offer import value
from cardsync.buying.store_credit.credit_entries import cents
from cardsync.platform import errors
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import from_units
from cardsync.platform.read_json import Amount
from cardsync.stock.quick_add.checked_entry import Id, Text, Wanted, columns_of
from cardsync.stock.quick_add.drafts import known_products

_CARD = (
    "product_id",
    "product_line",
    "set_name",
    "product_name",
    "number",
    "rarity",
    "condition",
    "printing",
    "language",
)
# The default values of a line's columns, for lines that were priced by hand.
_PLAIN: Final[Mapping[str, Any]] = {
    "cash_each": None,
    "credit_each": None,
    "reason": "",
    "reason_code": None,
    "price_of": None,
    "price_taken": None,
    "other_finishes": [],
    "grades": {},
    "by_hand": False,
    "rule_id": None,
    "held": None,
    "explanation": [],
}


class OfferWant(msgspec.Struct):
    """A customer's copies of a card. Without `printing`, they have the product's own printing. A
    price by hand replaces the rules' price.
    """

    product_id: Id
    condition: Text
    copies: Annotated[int, msgspec.Meta(ge=1, le=OFFER_COPIES)]
    printing: Text | None = None
    language: Text = "English"
    cash_each: Amount | None = None
    credit_each: Amount | None = None
    price_of: Text | None = None
    """One of `other_finishes`, whose price replaces the card's unknown price"""


async def priced(
    session: AsyncSession, caller: Caller, wants: Sequence[OfferWant], now: datetime
) -> list[dict[str, Any]]:
    """Price the cards, and return the columns of the offer's lines, in the order of `wants`. Raises
    InvalidPayload.
    """
    if not 1 <= len(wants) <= OFFER_LINES:
        raise errors.InvalidPayload(f"lines: an offer has 1 to {OFFER_LINES} lines")
    known = await known_products(session, caller, [want.product_id for want in wants])
    cards = [_card(place, want, known) for place, want in enumerate(wants)]
    asked = [
        WantedLine(
            place,
            card["product_id"],
            card["condition"],
            card["printing"],
            card["language"],
            wants[place].copies,
            price_of=wants[place].price_of,
        )
        for place, card in enumerate(cards)
        if not _by_hand(wants[place])
    ]
    valued: dict[int, tuple[WantedLine, ValuedLine, LineFacts]] = {}
    if asked:
        spent = await spent_today(session, caller, now)
        found = await value(session, caller, asked, now, spent)
        parts = zip(asked, found.lines, found.facts, strict=True)
        valued = {line.line: (line, one, facts) for line, one, facts in parts}
    lines = [
        {**card, **_PLAIN, **part}
        for place, card in enumerate(cards)
        for part in (_parts(*valued[place]) if place in valued else [_hand(place, wants[place])])
    ]
    need_payable(Priced(x["copies"], x["cash_each"], x["credit_each"]) for x in lines)
    return lines


def _by_hand(want: OfferWant) -> bool:
    return want.cash_each is not None or want.credit_each is not None


def _card(place: int, want: OfferWant, known: Any) -> dict[str, Any]:
    at = f"lines[{place}]."
    product = known.get(want.product_id)
    if product is None:
        raise errors.InvalidPayload(f"{at}product_id: there is no product {want.product_id}")
    entry = Wanted(1, want.condition, want.printing, want.language, want.product_id)
    columns = columns_of(entry, product, at)
    if columns["condition"] not in USUAL_GRADES:
        raise errors.InvalidPayload(f"{at}condition: sealed products are not bought by condition")
    return {name: columns[name] for name in _CARD}


def _hand(place: int, want: OfferWant) -> dict[str, Any]:
    prices = {
        name: None if each is None else _price(f"lines[{place}].{name}", each)
        for name, each in (("cash_each", want.cash_each), ("credit_each", want.credit_each))
    }
    said = ["The price was set manually."]
    return {"copies": want.copies, "by_hand": True, "explanation": said, **prices}


def _price(field: str, each: Decimal) -> Decimal:
    exact = cents(each, field)
    if exact < 0:
        raise errors.InvalidPayload(f"{field}: must not be negative")
    return exact


def _parts(line: WantedLine, valued: ValuedLine, facts: LineFacts) -> Iterator[dict[str, Any]]:
    common = {
        "price_of": line.price_of,
        "price_taken": valued.taken
        and msgspec.to_builtins(struct_of(PriceTakenShown, valued.taken)),
        "other_finishes": msgspec.to_builtins(finishes_to_choose(line, facts)),
        "explanation": sentences(valued),
        "rule_id": valued.rule.id if valued.rule else None,
        "held": facts.in_stock + facts.on_order,
        "grades": dict(valued.rule.conditions) if valued.rule else {},
    }
    for part in valued.bought:
        cash, credit = (None if x is None else from_units(x) for x in (part.cash, part.credit))
        yield common | {"copies": part.copies, "cash_each": cash, "credit_each": credit}
    if valued.left:
        reason = REASONS[valued.reason] if valued.reason else ""
        yield common | {"copies": valued.left, "reason": reason, "reason_code": valued.reason}

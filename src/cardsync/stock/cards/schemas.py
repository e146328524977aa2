"""The JSON structs of a card in the answer of GET /api/cards, and the functions that fill them from
rows. Pure.

Amounts are text with at least two decimals.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

import msgspec

from cardsync.platform import clock
from cardsync.platform.kit.row_pages import Page
from cardsync.platform.kit.struct_rows import Column, Reads, Usd, struct_of_values
from cardsync.platform.money import usd
from cardsync.platform.shelf_place import Box, Place
from cardsync.stock.cards.card_filter import CardPage


class CardRow(NamedTuple):
    id: int
    marketplace_id: int
    product_id: int
    product_name: str
    set_name: str
    number: str
    product_line: str
    condition: str | None
    condition_label: str
    printing: str
    language: str
    rarity: str
    quantity: int
    price: Decimal | None
    target_price: Decimal | None
    market: Decimal | None
    low: Decimal | None
    low_with_shipping: Decimal | None
    direct_low: Decimal | None
    gone: bool
    custom: bool
    contribution: Literal["private", "published"] | None
    updated_at: datetime
    marketplace_product_id: int | None
    # The product whose market evidence counts: of a replaced provisional product, the new one.
    evidence_product_id: int | None
    gate: GateHold | None
    pinned_price: Decimal | None
    lists: list[tuple[int, str, str]]
    places: list[tuple[int, int, int]]


class ObservationRow(NamedTuple):
    observed_at: datetime
    price: Decimal | None
    market: Decimal | None
    low: Decimal | None
    low_with_shipping: Decimal | None
    direct_low: Decimal | None
    quantity: int


class FoundCards(NamedTuple):
    """One page of cards, and the number of all matching cards. `worth` is the listed value of all
    matching cards; None if it was not requested or no card has a price.

    If the cards were not counted, `total` is the number of cards up to the page's end, and more
    cards follow.
    """

    cards: list[CardRow]
    total: int
    worth: Decimal | None = None
    has_more: bool = False


class SearchAnswer(NamedTuple):
    """The result of a search. `problems` are the errors in its text: message and offset."""

    found: FoundCards
    problems: list[tuple[str, int]]


class OnList(msgspec.Struct, gc=False):
    id: int
    slug: str
    name: str
    """The name of the list"""


class Location(msgspec.Struct, gc=False):
    box: Box
    slot: int
    code: str
    """The box and the slot, joined by a hyphen"""
    quantity: int


GateHold = Literal[
    "market_stale",
    "no_listing",
    "listings_stale",
    "too_few_listings",
    "sales_stale",
    "too_few_sales",
    "buy_out",
]


class CardBody(msgspec.Struct):
    """A card. `gate_hold` is the market gate that held the rule's price at the last pricing; null
    if no gate held it.
    """

    id: int
    marketplace_id: int
    product_id: int
    marketplace_product_id: int | None
    product_name: str
    set_name: str
    number: str
    game: str
    product_line: str
    condition: str | None
    """The code of the condition; condition_label is the marketplace's own text"""
    condition_label: str
    printing: str
    language: str
    rarity: str
    quantity: int
    price: str | None
    target_price: str | None
    gate_hold: GateHold | None
    pinned_price: str | None
    """The price that a member pinned or an accepted suggestion set; rules do not change it"""
    market_price: str | None
    low_price: str | None
    low_price_with_shipping: str | None
    direct_low: str | None
    status: Literal["active", "gone"]
    """active, or gone: sold out or no longer in the seller's file"""
    custom: bool
    contribution: Literal["private", "published"] | None
    lists: list[OnList]
    """The lists that contain the card"""
    locations: list[Location]
    location_code: str | None
    unshelved_quantity: int
    updated_at: datetime


class PriceObservation(msgspec.Struct, gc=False):
    observed_at: Annotated[str, Reads(clock.rfc3339)]
    price: Usd | None
    market_price: Usd | None
    low_price: Usd | None
    low_price_with_shipping: Usd | None
    direct_low: Usd | None
    quantity: int


class CardWithHistory(CardBody):
    """A card with its observations, newest first. An observation applies until the next one."""

    history: list[PriceObservation]
    """At most 365 observations of the card, newest first"""


def card_body(row: CardRow) -> CardBody:
    locations = [
        Location(box, slot, Place(box, slot).code, quantity) for box, slot, quantity in row.places
    ]
    return CardBody(
        id=row.id,
        marketplace_id=row.marketplace_id,
        product_id=row.product_id,
        marketplace_product_id=row.marketplace_product_id,
        product_name=row.product_name,
        set_name=row.set_name,
        number=row.number,
        game=row.product_line,
        product_line=row.product_line,
        condition=row.condition,
        condition_label=row.condition_label,
        printing=row.printing,
        language=row.language,
        rarity=row.rarity,
        quantity=row.quantity,
        price=usd(row.price),
        target_price=usd(row.target_price),
        gate_hold=row.gate,
        pinned_price=usd(row.pinned_price),
        market_price=usd(row.market),
        low_price=usd(row.low),
        low_price_with_shipping=usd(row.low_with_shipping),
        direct_low=usd(row.direct_low),
        status="gone" if row.gone else "active",
        custom=row.custom,
        contribution=row.contribution,
        lists=[OnList(*entry) for entry in row.lists],
        locations=locations,
        location_code=locations[0].code if locations else None,
        unshelved_quantity=max(0, row.quantity - sum(place.quantity for place in locations)),
        updated_at=row.updated_at,
    )


def with_history(row: CardRow, history: list[ObservationRow]) -> CardWithHistory:
    return CardWithHistory(
        **msgspec.structs.asdict(card_body(row)),
        history=[struct_of_values(PriceObservation, one) for one in history],
    )


class QueryProblem(msgspec.Struct):
    """An error in a search text. `offset` is where the faulty term begins, in characters from 0."""

    message: str
    offset: int


class CardsPage(msgspec.Struct):
    cards: list[CardBody]
    """The cards of the page"""
    total: int
    page: int
    per_page: int
    total_pages: int
    query_errors: list[QueryProblem]


def cards_page(answer: SearchAnswer, page: CardPage) -> CardsPage:
    found = answer.found
    return CardsPage(
        cards=[card_body(row) for row in found.cards],
        **page.of(found.total)._asdict(),
        query_errors=[QueryProblem(*problem) for problem in answer.problems],
    )


class CardsBehind(msgspec.Struct):
    """The next cards of a search. `behind` is the id to send for the part after them; null on the
    last part.
    """

    cards: list[CardBody]
    """The next cards of the selection"""
    behind: int | None
    """The card after which the next part begins; null on the last part"""


def cards_behind_body(page: Page[CardRow]) -> CardsBehind:
    return CardsBehind([card_body(row) for row in page.rows], page.next)


class CompletionBody(msgspec.Struct):
    """A completion of a search: `text` replaces the search from the offset `at` on. `told`
    describes the text, or is empty.
    """

    at: int
    """The offset in the search where the replaced part begins"""
    text: str
    told: Annotated[str, Column("detail")]
    """A description of the text, or an empty text"""


class CompletionsBody(msgspec.Struct):
    completions: list[CompletionBody]

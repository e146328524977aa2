"""Answers `POST /api/discovery/basket`: the copies to buy from each seller, so that cards and
postage together cost least, and the unavailable cards with the reasons.

One statement finds the printings, and one finds their offers. The solver has its own process and a
time limit, and the database connection is returned before the solver begins.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_UP, Decimal

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import NAMES
from cardsync.network.basket_offers import Offered, offers_for
from cardsync.network.basket_schemas import (
    BasketItem,
    BasketParcel,
    BasketStep,
    SplitBasket,
    UnavailableCard,
)
from cardsync.network.buyer_links import buy_url
from cardsync.network.resolve import Resolved, resolve
from cardsync.network.solver import solved
from cardsync.network.split import Answer, Basket, Offer, Split, Wish, filled, postage_of
from cardsync.network.wishes import Wishes, WishLine, read_wishes
from cardsync.platform.database.session import Database
from cardsync.platform.money import dollars, to_units
from cardsync.platform.postage import read_steps
from cardsync.platform.settings import Settings

# The time for solving: 1.5 s for a basket of up to 60 lines, and 0.05 s more for each further line.
_SECONDS = 1.5
_SECONDS_A_LINE = 0.05
_QUICK_LINES = 60
_GAP = Decimal("0.0001")


async def split_basket(
    database: Database,
    caller: Caller,
    body: object,
    settings: Settings,
    now: datetime,
) -> tuple[SplitBasket, list[int]]:
    """Return the split, and the products that no exposed seller offers. The operator's estimate is
    used for a seller who has not set the postage.

    Raises InvalidPayload, NameTooShort, TooManyReferences, ServiceUnavailable.
    """
    wishes = read_wishes(body)
    resolved, offers = await _offered(database, caller, wishes, now)
    known = dict(_meant(wishes.cards, resolved))
    offered = {offer.line for offer in offers}
    reasons = {at: _unresolved(at, one) for at, one in enumerate(resolved) if at not in known}
    reasons |= {at: UnavailableCard(at, "no_offer") for at in known if at not in offered}
    basket, kept, lines = await asyncio.to_thread(
        _weighed, wishes.cards, offers, reasons, settings.default_postage_steps
    )
    answer = Answer(None, None, [])
    if lines:
        seconds = _SECONDS + _SECONDS_A_LINE * max(0, len(lines) - _QUICK_LINES)
        wish = Wish(basket, seconds, wishes.max_sellers, wishes.fewest_parcels)
        answer = await solved(wish)
        if answer.best is None:
            reasons |= {at: UnavailableCard(at, "max_sellers") for at in lines}
    best = answer.best or Split([0] * len(kept), 0, 0, 0)
    gap = Decimal(best.total - best.bound) / (best.total or 1)
    split = SplitBasket(
        _parcels(basket, kept, best.copies, settings),
        _amount(best.total),
        gap.quantize(_GAP, ROUND_UP).normalize() + 0,
        _amount(answer.greedy.total) if answer.greedy else None,
        [BasketStep(sellers, _amount(total)) for sellers, total in answer.steps],
        [reasons[at] for at in sorted(reasons)],
    )
    missed = [at for at, one in reasons.items() if one.reason == "no_offer"]
    return split, [known[at] for at in missed if not wishes.cards[at].any_printing]


async def _offered(
    database: Database, caller: Caller, wishes: Wishes, now: datetime
) -> tuple[list[Resolved], list[Offered]]:
    """Return the printings of each reference, and the offers for the references whose printing is
    certain.
    """
    asked = [one.asked for one in wishes.cards]
    if wishes.game not in NAMES:
        return [Resolved([], 0, None)] * len(asked), []
    async with database.tenant(caller.seller_id) as session:
        resolved = await resolve(session, wishes.game, asked, now)
        meant = _meant(wishes.cards, resolved)
        return resolved, await offers_for(session, meant, wishes.cards, now)


def _meant(cards: Sequence[WishLine], resolved: Sequence[Resolved]) -> list[tuple[int, int]]:
    """Return (line, product) of each reference whose product is certain. A reference for which any
    printing is acceptable has the first printing with exactly its name.
    """
    found = []
    for line, (card, one) in enumerate(zip(cards, resolved, strict=True)):
        named = [printing.id for printing in one.printings if printing.same_name]
        if one.meant is not None:
            found.append((line, one.meant))
        elif card.any_printing and named:
            found.append((line, named[0]))
    return found


def _unresolved(line: int, resolved: Resolved) -> UnavailableCard:
    if not resolved.total:
        return UnavailableCard(line, "no_match")
    return UnavailableCard(line, "not_clear", candidates=resolved.total)


def _weighed(
    cards: Sequence[WishLine],
    offers: Sequence[Offered],
    reasons: dict[int, UnavailableCard],
    default_postage: str,
) -> tuple[Basket, list[Offered], list[int]]:
    """Build the basket of the lines that the stock can serve. Other lines get a reason in
    `reasons`.

    A line whose quantity exceeds the stock is not served at all, so that its copies are available
    for other lines.
    """
    held: dict[int, int] = defaultdict(int)
    for offer in offers:
        held[offer.line] += offer.quantity
    for line, copies in held.items():
        if copies < cards[line].quantity:
            reasons[line] = UnavailableCard(line, "not_enough_copies", copies=copies)
    kept, lines, basket = _kept(cards, offers, reasons, default_postage)
    _, short = filled(basket, set(basket.postage))
    for place, lacking in short.items():
        line = lines[place]
        left = cards[line].quantity - lacking
        reasons[line] = UnavailableCard(line, "not_enough_copies", copies=left)
    if short:
        kept, lines, basket = _kept(cards, offers, reasons, default_postage)
    return basket, kept, lines


def _kept(
    cards: Sequence[WishLine],
    offers: Sequence[Offered],
    reasons: dict[int, UnavailableCard],
    default_postage: str,
) -> tuple[list[Offered], list[int], Basket]:
    kept = [offer for offer in offers if offer.line not in reasons]
    lines = [line for line in range(len(cards)) if line not in reasons]
    return kept, lines, _basket(cards, kept, lines, default_postage)


def _basket(
    cards: Sequence[WishLine],
    offers: Sequence[Offered],
    lines: list[int],
    default_postage: str,
) -> Basket:
    places = {line: place for place, line in enumerate(lines)}
    stocks: dict[tuple[int, int, str], int] = {}
    made = []
    for offer in offers:
        key = (offer.product_id, offer.seller_id, offer.condition)
        stock = stocks.setdefault(key, len(stocks))
        price = to_units(offer.price)
        made.append(Offer(places[offer.line], offer.seller_id, stock, price, offer.quantity))
    said = {offer.seller_id: offer.postage_steps or default_postage for offer in offers}
    postage = {seller: read_steps(steps) for seller, steps in said.items()}
    return Basket([cards[line].quantity for line in lines], made, postage)


def _parcels(
    basket: Basket, offers: Sequence[Offered], copies: Sequence[int], settings: Settings
) -> list[BasketParcel]:
    """Return the parcels of the sellers, the most valuable first."""
    chosen: dict[int, list[tuple[Offered, int]]] = defaultdict(list)
    values: dict[int, int] = defaultdict(int)
    for offer, weighed, count in zip(offers, basket.offers, copies, strict=True):
        if count:
            chosen[offer.seller_id].append((offer, count))
            values[offer.seller_id] += weighed.price * count
    return [
        BasketParcel(
            of_seller.store_name,
            _amount(postage_of(basket.postage[seller], values[seller])),
            [_item(offer, count, settings) for offer, count in chosen[seller]],
            not of_seller.postage_steps,
        )
        for seller in sorted(chosen, key=lambda seller: (-values[seller], seller))
        for of_seller in [chosen[seller][0][0]]
    ]


def _item(offer: Offered, copies: int, settings: Settings) -> BasketItem:
    link = buy_url(offer.marketplace_product_id, offer.listing_url_template, settings)
    price = _amount(to_units(offer.price))
    return BasketItem(offer.line, offer.product_id, offer.condition, price, copies, link)


def _amount(units: int) -> Decimal:
    return Decimal(dollars(units))

"""Answers `POST /api/discovery/basket`: which copies to buy of which seller, so that cards and
postage cost least, and which cannot be had and why.

One statement finds the printings and one their offers. The solver has a process and a time of its
own, and the database's connection is given back before it begins.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import NAMES
from cardsync.database.session import Database
from cardsync.discovery.basket_offers import Offered, offers_for
from cardsync.discovery.resolve import Resolved, resolve
from cardsync.discovery.solver import solved
from cardsync.discovery.split import Answer, Basket, Offer, Split, Wish, filled, postage_of
from cardsync.discovery.wishes import Wanted, read_wishes
from cardsync.money import to_units
from cardsync.postage import read_steps

# A basket of sixty lines may be solved for less than two seconds, one of two hundred for less than
# ten.
_SECONDS = 1.5
_SECONDS_A_LINE = 0.05
_QUICK_LINES = 60


class Unavailable(NamedTuple):
    """`reason` is no_match, not_clear (so many candidates), no_offer, not_enough_copies (so many
    are offered) or max_sellers (the wish for few sellers leaves no split).
    """

    line: int
    reason: str
    candidates: int | None = None
    copies: int | None = None


class Item(NamedTuple):
    line: int
    offer: Offered
    copies: int


class Parcel(NamedTuple):
    """`postage_estimated` says that the seller has not said what a parcel costs."""

    store_name: str | None
    postage: int
    postage_estimated: bool
    items: list[Item]


class Found(NamedTuple):
    """Amounts are ten-thousandths. `missed` are the products that no exposed seller offers."""

    parcels: list[Parcel]
    total: int
    bound: int
    greedy_total: int | None
    steps: list[tuple[int, int]]
    unavailable: list[Unavailable]
    missed: list[int]


async def split_basket(
    database: Database,
    caller: Caller,
    body: object,
    default_postage: str,
    now: datetime,
) -> Found:
    """The parcels of a seller who has not said what they cost count with `default_postage`.

    Raises InvalidPayload, NameTooShort, TooManyReferences, ServiceUnavailable."""
    wishes = read_wishes(body)
    asked = [one.asked for one in wishes.cards]
    resolved = [Resolved([], 0, None)] * len(asked)
    offers: list[Offered] = []
    if wishes.game in NAMES:
        async with database.tenant(caller.seller_id) as session:
            resolved = await resolve(session, wishes.game, asked, now)
            meant = _meant(wishes.cards, resolved)
            offers = await offers_for(session, meant, wishes.cards, now)
    unavailable = [_unresolved(at, one) for at, one in enumerate(resolved)]
    known = dict(_meant(wishes.cards, resolved))
    offered = {offer.line for offer in offers}
    reasons = {at: one for at, one in enumerate(unavailable) if at not in known}
    reasons |= {at: Unavailable(at, "no_offer") for at in known if at not in offered}
    basket, kept, lines = await asyncio.to_thread(
        _weighed, wishes.cards, offers, reasons, default_postage
    )
    answer = Answer(None, None, [])
    if lines:
        seconds = _SECONDS + _SECONDS_A_LINE * max(0, len(lines) - _QUICK_LINES)
        wish = Wish(basket, seconds, wishes.max_sellers, wishes.fewest_parcels)
        answer = await solved(wish)
        if answer.best is None:
            reasons |= {at: Unavailable(at, "max_sellers") for at in lines}
    best = answer.best or Split([0] * len(kept), 0, 0, 0)
    return Found(
        _parcels(basket, kept, best.copies),
        best.total,
        best.bound,
        answer.greedy.total if answer.greedy else None,
        answer.steps,
        [reasons[at] for at in sorted(reasons)],
        [
            known[at]
            for at, one in reasons.items()
            if one.reason == "no_offer" and not wishes.cards[at].any_printing
        ],
    )


def _meant(cards: Sequence[Wanted], resolved: Sequence[Resolved]) -> list[tuple[int, int]]:
    """Return line and product of what is clear. Where any printing will do, one with the very name
    is taken for all of them.
    """
    found = []
    for line, (card, one) in enumerate(zip(cards, resolved, strict=True)):
        named = [printing.id for printing in one.printings if printing.same_name]
        if one.meant is not None:
            found.append((line, one.meant))
        elif card.any_printing and named:
            found.append((line, named[0]))
    return found


def _unresolved(line: int, resolved: Resolved) -> Unavailable:
    if not resolved.total:
        return Unavailable(line, "no_match")
    return Unavailable(line, "not_clear", candidates=resolved.total)


def _weighed(
    cards: Sequence[Wanted],
    offers: Sequence[Offered],
    reasons: dict[int, Unavailable],
    default_postage: str,
) -> tuple[Basket, list[Offered], list[int]]:
    """Build the basket of the lines that the stock can serve; the others get their reason.

    A line that asks for more than there is leaves its copies to the others.
    """
    held: dict[int, int] = defaultdict(int)
    for offer in offers:
        held[offer.line] += offer.quantity
    for line, copies in held.items():
        if copies < cards[line].quantity:
            reasons[line] = Unavailable(line, "not_enough_copies", copies=copies)
    kept, lines, basket = _kept(cards, offers, reasons, default_postage)
    _, short = filled(basket, set(basket.postage))
    for place, lacking in short.items():
        line = lines[place]
        left = cards[line].quantity - lacking
        reasons[line] = Unavailable(line, "not_enough_copies", copies=left)
    if short:
        kept, lines, basket = _kept(cards, offers, reasons, default_postage)
    return basket, kept, lines


def _kept(
    cards: Sequence[Wanted],
    offers: Sequence[Offered],
    reasons: dict[int, Unavailable],
    default_postage: str,
) -> tuple[list[Offered], list[int], Basket]:
    kept = [offer for offer in offers if offer.line not in reasons]
    lines = [line for line in range(len(cards)) if line not in reasons]
    return kept, lines, _basket(cards, kept, lines, default_postage)


def _basket(
    cards: Sequence[Wanted],
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


def _parcels(basket: Basket, offers: Sequence[Offered], copies: Sequence[int]) -> list[Parcel]:
    items: dict[int, list[Item]] = defaultdict(list)
    values: dict[int, int] = defaultdict(int)
    for offer, weighed, count in zip(offers, basket.offers, copies, strict=True):
        if count:
            items[offer.seller_id].append(Item(offer.line, offer, count))
            values[offer.seller_id] += weighed.price * count
    return [
        Parcel(
            items[seller][0].offer.store_name,
            postage_of(basket.postage[seller], values[seller]),
            not items[seller][0].offer.postage_steps,
            items[seller],
        )
        for seller in sorted(items, key=lambda seller: (-values[seller], seller))
    ]

"""Measures the risk of a write, and finds the first limit that it breaks and that only a member's
click lifts. It adds the earlier moves without a click. Pure.

Amounts are ten-thousandths of a dollar. A size counts prices as they become today, and as they
become at worst, when caps and stale cuts have run their course.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal, NamedTuple, cast

import msgspec

from cardsync.platform import errors
from cardsync.platform.money import dollars, percent, to_units
from cardsync.prices.loss.loss_limits import BUDGET_BP, HOUR_TOUCHED_BP, WHOLE_BP, Sums

Risk = Literal["low", "medium", "high", "critical"]
Limit = Literal[
    "price_of_market", "card_hour", "card_day", "hour_listed_value", "loss_budget", "permission"
]
MARKET_PARTS: Final = 100
# The cap of a seller whose rules have no cap: the default preset's.
DEFAULT_CAP_BP: Final = 2_000
# A tenth of the cards may move by more than the cap before a small change counts as high.
_FEW_PARTS: Final = 10


class Fall(NamedTuple):
    by: int
    whole: int


class Size(msgspec.Struct, frozen=True):
    """The size counts the cards whose price would differ, with their listed values before and
    after; `deepest_bp` is the deepest fall of one. `moved_bp` adds up rises and falls of the last
    day, and `beyond` counts cards that moved further than the cap in it.
    """

    cards: int = 0
    before: int = 0
    after: int = 0
    worst_before: int = 0
    worst_after: int = 0
    # The shop's whole value at the prices before, today and at worst: the base of its fall.
    whole: int = 0
    worst_whole: int = 0
    moved_bp: int = 0
    beyond: int = 0
    cap_bp: int = DEFAULT_CAP_BP
    shop_value: int = 0
    deepest_bp: int = 0
    # Cards that would be priced under a hundredth of their market price.
    under_market: int = 0
    first_under_market: int | None = None
    # The plan changes something; it deletes a rule or a list.
    changes: bool = True
    deletes: bool = False
    # A promotion is part of it.
    promotes: bool = False
    sums: Sums = Sums()
    # The shop's budget of a week; none: a part of its listed value.
    loss_budget: int | None = None

    @property
    def falls(self) -> tuple[Fall, Fall]:
        """Return the fall of the shop's value, and the value before it, today and at worst."""
        return (
            Fall(max(self.before - self.after, 0), self.whole),
            Fall(max(self.worst_before - self.worst_after, 0), self.worst_whole),
        )


# The last sentence of every refusal: how to lift the limits.
LIFTED: Final = (
    "an owner's click at confirm_url makes this change all the same, and a key that is a script of"
    " the shop's own is freed by My own script on the page Settings, Keys"
)


class Broken(NamedTuple):
    limit: Limit
    error: str


def risk_of(size: Size) -> Risk:
    """Return the band. The change is measured against the tightest cap of the seller's own rules:
    a quarter of it is low, half of it medium, the whole of it high, and more is critical.
    """
    if size.moved_bp > size.cap_bp:
        return "critical"
    if size.moved_bp * 2 > size.cap_bp or size.beyond * _FEW_PARTS > size.cards:
        return "high"
    if size.moved_bp * 4 > size.cap_bp or size.beyond or size.deletes:
        return "medium"
    return "low"


def broken_limit(size: Size) -> Broken | None:
    """Return the first limit that the change breaks; a change that just reaches a limit keeps
    it.
    """
    if size.under_market:
        return _broken(
            "price_of_market",
            f"{_named(size.under_market, size.first_under_market)} would be priced under 1% of the"
            " market price: raise these prices",
        )
    sums = size.sums
    for limit, cards, first, limit_words in (
        ("card_hour", sums.hour_cards, sums.hour_first, "20% within an hour"),
        ("card_day", sums.day_cards, sums.day_first, "30% within a day"),
    ):
        if cards:
            return _broken(
                cast(Limit, limit),
                f"{_named(cards, first)} would have moved by more than {limit_words} without a"
                " member's approval: change these prices by less",
            )
    if sums.hour_fallen * WHOLE_BP > sums.hour_before * HOUR_TOUCHED_BP:
        return _broken(
            "hour_listed_value",
            f"the listed value of these cards would have fallen from {dollars(sums.hour_before)} by"
            f" {dollars(sums.hour_fallen)}, by more than 20%, within an hour: lower the prices by"
            " less",
        )
    budget = size.loss_budget
    if budget is None:
        budget = size.shop_value * BUDGET_BP // WHOLE_BP
    if sums.week_fallen > budget:
        return _broken(
            "loss_budget",
            f"the shop's listed value would have fallen by {dollars(sums.week_fallen)} within a week"
            f" without a member's approval; the loss budget is {dollars(budget)}: lower the prices"
            " by less, or let an owner raise the setting Loss budget (loss_budget)",
        )
    return None


def _named(cards: int, first: int | None) -> str:
    """Return how many cards, with the first of them."""
    return f"card {first}" if cards == 1 else f"{cards:,} cards, card {first} among them,"


def _broken(limit: Limit, error: str) -> Broken:
    return Broken(limit, f"{error}; {LIFTED}")


# A member confirms a change that lowers a card by more than half, or the shop by over a fifth.
_HALF_BP: Final = 5_000
_SHOP_BP: Final = 2_000
# A promotion that lowers at least this many cards, or the listed value by at least this amount,
# needs a confirmation, too.
_PROMOTED_CARDS: Final = 100
_PROMOTED_VALUE: Final = to_units(Decimal(500))


def needs_confirmation(size: Size) -> bool:
    """Return whether a member has to look at the figures before the change is made."""
    if size.promotes:
        falls = max(fall.by for fall in size.falls)
        if falls and (size.cards >= _PROMOTED_CARDS or falls >= _PROMOTED_VALUE):
            return True
    return size.deepest_bp > _HALF_BP or any(
        fall.by * WHOLE_BP > fall.whole * _SHOP_BP for fall in size.falls
    )


def confirmation_of(size: Size) -> errors.ConfirmationNeeded:
    """Return the refusal that asks a member to confirm, with the figures."""
    fall = max(size.falls, key=lambda fall: (fall.by * WHOLE_BP // (fall.whole or 1), fall.by))
    cards = f"{size.cards:,} cards would change price, one of them"
    if size.cards == 1:
        cards = "1 card would change price,"
    return errors.ConfirmationNeeded(
        f"{cards} by -{percent(size.deepest_bp)}, and the listed value would fall by"
        f" {dollars(fall.by)} of {dollars(fall.whole)}: confirm this change if you mean it",
        cards_affected=size.cards,
        # A promotion that begins later changes nothing today.
        listed_value_change=dollars(-fall.by if size.promotes else size.after - size.before),
        deepest_fall_bp=size.deepest_bp,
    )

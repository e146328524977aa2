"""The risk of a plan and the limits that only a member's click lifts: the size of a change and the
falls of the last hour go in; a band and the first broken limit come out. Pure.

Amounts are ten-thousandths of a dollar. A size says what prices become today and what they become
at worst, when caps and stale cuts have run their course: a fall that a cap spreads over a week is
a fall.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

from cardsync.money import dollars

Risk = Literal["low", "medium", "high", "critical"]
Limit = Literal["plan_listed_value", "hour_listed_value", "price_of_market"]
PLAN_FALL_BP: Final = 3_000
HOUR_FALL_BP: Final = 2_000
MARKET_PARTS: Final = 100
# The cap of a seller whose rules have none: that of the default preset.
DEFAULT_CAP_BP: Final = 2_000
_WHOLE_BP: Final = 10_000
# A tenth of the cards may move by more than the cap before a small change counts as high.
_FEW_PARTS: Final = 10


class Size(msgspec.Struct, frozen=True):
    """The size counts the cards whose price would differ, with their listed values before and
    after; `moved_bp` adds up rises and falls, `beyond` counts cards that move further than the cap.
    """

    cards: int = 0
    before: int = 0
    after: int = 0
    worst_before: int = 0
    worst_after: int = 0
    moved_bp: int = 0
    beyond: int = 0
    cap_bp: int = DEFAULT_CAP_BP
    shop_value: int = 0
    # Cards that would be priced under a hundredth of their market price.
    under_market: int = 0
    first_under_market: int | None = None
    # The plan changes something; it deletes a rule or a list.
    changes: bool = True
    deletes: bool = False

    @property
    def lowered(self) -> int:
        """Return by how much the listed value falls, today or at worst."""
        return max(self.before - self.after, self.worst_before - self.worst_after, 0)


class Hour(NamedTuple):
    """The falls of the plans that applied without a click within the last hour, and the listed
    value of the shop before the first of them.
    """

    lowered: int = 0
    shop_value: int | None = None


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


def broken_limit(size: Size, hour: Hour) -> Broken | None:
    """Return the first limit that the change breaks; a change that just reaches a limit keeps
    it.
    """
    if size.under_market:
        return Broken(
            "price_of_market",
            f"{size.under_market} cards would be priced under 1 % of their market price, card"
            f" {size.first_under_market} among them: raise these prices, or let an owner confirm"
            " the plan",
        )
    for before, after in ((size.before, size.after), (size.worst_before, size.worst_after)):
        if (before - after) * _WHOLE_BP > before * PLAN_FALL_BP:
            return Broken(
                "plan_listed_value",
                f"the listed value of the {size.cards} cards would fall from {dollars(before)} to"
                f" {dollars(after)}, by more than 30 %: lower the prices by less, or let an owner"
                " confirm the plan",
            )
    base = size.shop_value if hour.shop_value is None else hour.shop_value
    fallen = hour.lowered + size.lowered
    if size.lowered and fallen * _WHOLE_BP > base * HOUR_FALL_BP:
        return Broken(
            "hour_listed_value",
            f"the plans of the last hour would lower the shop's listed value of {dollars(base)} by"
            f" {dollars(fallen)}, by more than 20 %: wait until an hour has passed, or let an owner"
            " confirm the plan",
        )
    return None

"""The size of a change of prices, and the risk that it has. Pure.

Amounts are ten-thousandths of a dollar. A size counts prices as they become today, and as they
become at worst, when caps and stale cuts have run their course.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

from cardsync.prices.loss.loss_limits import Sums

Risk = Literal["low", "medium", "high", "critical"]
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

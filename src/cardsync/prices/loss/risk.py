"""Rates the risk of a price change by its size. Pure.

Amounts are in ten-thousandths of a dollar. A size has the listed values by the prices that the
change sets today (`before`, `after`), and by the prices after caps and stale cuts have moved them
fully (`worst_before`, `worst_after`).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

from cardsync.prices.loss.loss_limits import Sums

Risk = Literal["low", "medium", "high", "critical"]
MARKET_PARTS: Final = 100
# The cap of a seller whose rules have no cap: it is that of the default preset.
DEFAULT_CAP_BP: Final = 2_000
# The risk is high if more than a tenth of the cards move further than the cap.
_FEW_PARTS: Final = 10


class Fall(NamedTuple):
    by: int
    whole: int


class Size(msgspec.Struct, frozen=True):
    """The size of a price change: the number of cards whose price would differ, and their listed
    values before and after. `deepest_bp` is the largest fall of a card. `moved_bp` is the sum of
    rises and falls of the last day, and `beyond` counts the cards that moved further than the cap
    in that day.
    """

    cards: int = 0
    before: int = 0
    after: int = 0
    worst_before: int = 0
    worst_after: int = 0
    # The whole shop's value before the change, today and at worst. `falls` are relative to this
    # value.
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
    # Whether the plan changes anything, and whether it deletes a rule or a list.
    changes: bool = True
    deletes: bool = False
    # Whether a promotion is part of the change.
    promotes: bool = False
    sums: Sums = Sums()
    # The shop's own loss budget of a week; None means a share of its listed value.
    loss_budget: int | None = None

    @property
    def falls(self) -> tuple[Fall, Fall]:
        """Return the fall of the shop's value and the value before the fall, first today, then at
        worst.
        """
        return (
            Fall(max(self.before - self.after, 0), self.whole),
            Fall(max(self.worst_before - self.worst_after, 0), self.worst_whole),
        )


def risk_of(size: Size) -> Risk:
    """Return the risk of the change, measured by the tightest cap of the seller's own rules: up to
    a quarter of the cap is low, up to half is medium, up to the cap is high, and more is critical.
    """
    if size.moved_bp > size.cap_bp:
        return "critical"
    if size.moved_bp * 2 > size.cap_bp or size.beyond * _FEW_PARTS > size.cards:
        return "high"
    if size.moved_bp * 4 > size.cap_bp or size.beyond or size.deletes:
        return "medium"
    return "low"

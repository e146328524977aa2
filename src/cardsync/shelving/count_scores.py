"""Boxes that are worth counting: facts about boxes and a moment go in; the boxes by their scores,
with the reasons of each, come out. The module is pure.

A score is the value that lies in a box, times the days since somebody looked, times one more than
the pieces that are gone without a sale.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.money import dollars

# A box that was never counted is as urgent as one that was counted a year ago.
_NEVER: Final = 365


class BoxFacts(NamedTuple):
    """`value` is in ten-thousandths. `dropped` counts the pieces that are recorded here beyond what
    is on hand, and that no recent sale explains.
    """

    box: int
    cards: int
    quantity: int
    value: int
    dropped: int
    counted_at: datetime | None


class Suggestion(NamedTuple):
    facts: BoxFacts
    score: Decimal
    reasons: list[str]


def suggestions(boxes: Iterable[BoxFacts], now: datetime) -> list[Suggestion]:
    """Return the boxes, the most urgent first; of equal ones the lower number."""
    scored = [_scored(box, now) for box in boxes]
    return sorted(scored, key=lambda each: (-each.score, each.facts.box))


def _scored(box: BoxFacts, now: datetime) -> Suggestion:
    days = _NEVER if box.counted_at is None else max((now - box.counted_at).days, 0)
    score = Decimal(box.value).scaleb(-4) * days * (1 + box.dropped)
    reasons = [f"Cards worth ${dollars(box.value)} lie here.", _seen(box, days)]
    if box.dropped:
        gone = "1 piece is" if box.dropped == 1 else f"{box.dropped} pieces are"
        reasons.append(f"{gone} gone from the marketplace without a sale.")
    return Suggestion(box, score.quantize(Decimal("0.01")), reasons)


def _seen(box: BoxFacts, days: int) -> str:
    if box.counted_at is None:
        return "The box was never counted."
    if not days:
        return "The box was counted today."
    return f"The box was counted {days} day{'' if days == 1 else 's'} ago."

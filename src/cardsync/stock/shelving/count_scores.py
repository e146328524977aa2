"""Scores boxes by the urgency of a count, with the reasons for each score. Pure.

A score is the box's value, times the days since its last count, times (1 + the copies that left the
marketplace without a sale).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import UNSET

from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars
from cardsync.platform.shelf_place import Box, way_of
from cardsync.stock.shelving.count_schemas import SuggestedCount

# A box that was never counted is as urgent as a box whose last count was a year ago.
_NEVER: Final = 365


class BoxFacts(NamedTuple):
    """The facts of a box for its score. `value` is in ten-thousandths. `dropped` is the number of
    copies in the box that exceed their card's quantity and that no recent sale explains.
    """

    box: Box
    cards: int
    quantity: int
    value: int
    dropped: int
    counted_at: datetime | None


def suggestions(
    boxes: Iterable[BoxFacts],
    now: datetime,
    *,
    with_value: bool,
) -> list[SuggestedCount]:
    """Return the boxes, the most urgent first; boxes with equal scores are in the order of the
    shelves. Without `with_value`, value, score and the reason with the value are omitted.
    """
    scored = [(_score(box, now), box) for box in boxes]
    first = sorted(scored, key=lambda each: (-each[0], way_of(each[1].box)))
    return [
        struct_of(
            SuggestedCount,
            box,
            value=dollars(box.value) if with_value else UNSET,
            score=str(score.quantize(Decimal("0.01"))) if with_value else UNSET,
            reasons=_reasons(box, now)[0 if with_value else 1 :],
        )
        for score, box in first
    ]


def _days(box: BoxFacts, now: datetime) -> int:
    return _NEVER if box.counted_at is None else max((now - box.counted_at).days, 0)


def _score(box: BoxFacts, now: datetime) -> Decimal:
    return Decimal(box.value).scaleb(-4) * _days(box, now) * (1 + box.dropped)


def _reasons(box: BoxFacts, now: datetime) -> list[str]:
    reasons = [_worth(box), _seen(box, _days(box, now))]
    if box.dropped:
        gone = "1 copy is" if box.dropped == 1 else f"{box.dropped} copies are"
        reasons.append(f"{gone} missing from TCGplayer without a sale.")
    return reasons


def _worth(box: BoxFacts) -> str:
    return f"Holds ${dollars(box.value)} worth of cards." if box.value else "No known prices."


def _seen(box: BoxFacts, days: int) -> str:
    if box.counted_at is None:
        return "The box has never been counted."
    if not days:
        return "The box was counted today."
    return f"The box was counted {days} day{'' if days == 1 else 's'} ago."

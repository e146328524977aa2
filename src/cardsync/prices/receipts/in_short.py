"""Summarizes a receipt in two lines: the steps that moved the price, and the limits that applied.
It also finds the step that decides the price. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.platform.money import percent
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.receipts.limit_sentences import LIMITS

Step = JsonMapping

SOURCES: Final = {
    "market": "Market",
    "low": "Lowest listing",
    "low_with_shipping": "Lowest with shipping",
    "direct_low": "Lowest Direct price",
    "sales_anchor": "Recent sales",
    "current": "Your price",
}
_BOUNDS: Final = {
    "floor": "the rule's floor",
    "cost_floor": "the rule's cost-based floor",
    "hard_floor": "your minimum price",
    "ceiling": "the rule's ceiling",
    "never_lower": "never lowered",
    "marketplace_minimum": "TCGplayer's minimum",
    "largest_price": "the largest price",
    "guard_floor": "a guard's floor",
    "guard_ceiling": "a guard's ceiling",
}
_WORDS: Final = {
    "shipping_adder": "shipping added",
    "market_gate": "under the lowest listing",
    "undercut": "up to just under the lowest listing",
    "sale": "promotion",
    "hard_floor": "your minimum price",
    "direct_minimum": "the Direct minimum",
    "fee_gap": "out of the fee gap",
    "rounding": "rounded",
    "holdout": "kept in the control group",
    "review": "kept until you approve it",
    "change": "too small a change",
}
# These steps limit the price, so that it differs from the formula's result.
_LIMITS: Final = ("bounds", "cap", "hard_floor", "direct_minimum", "holdout", "review")
_CENT: Final = Decimal("0.01")


class Move(NamedTuple):
    """Words for a step, and its resulting price; None if the step left no price."""

    words: str
    price: str | None


class InShort(NamedTuple):
    """A receipt in short. `moves` begins with the price source; `limits` is a sentence."""

    moves: list[Move]
    limits: str


class Receipt(NamedTuple):
    """A receipt with its short form. `binding` is the index of the step that decides the price;
    `short` is None if the card was not priced.
    """

    steps: Sequence[Step]
    binding: int | None
    short: InShort | None


def receipt_of(steps: Sequence[Step]) -> Receipt:
    return Receipt(steps, binding_step(steps), in_short(steps))


def binding_step(steps: Sequence[Step]) -> int | None:
    """Return the index of the step that decides the price: the last step that changes the price."""
    moving = [place for place, step in enumerate(steps) if step["input"] != step["output"]]
    return moving[-1] if moving else None


def in_short(steps: Sequence[Step]) -> InShort | None:
    """Return the receipt in short, or None if the card was not priced: the step `change` is then
    missing.
    """
    if not steps or steps[-1]["name"] != "change":
        return None
    source = next(step for step in steps if step["name"] == "price_source")
    moves = [Move(SOURCES[source["source"]], source["output"])]
    limits = []
    for step in steps[steps.index(source) + 1 :]:
        if step["input"] == step["output"]:
            continue
        if _is_within_a_cent(step):
            moves[-1] = Move(moves[-1].words, step["output"])
            continue
        moves.append(Move(_words(step), step["output"]))
        if step["name"] in _LIMITS:
            limits.append(moves[-1].words)
    said = f"Limits applied: {', '.join(limits)}." if limits else "No limits applied."
    return InShort(moves, said)


def _is_within_a_cent(step: Step) -> bool:
    """Return whether a step only rounds a price to whole cents."""
    return (
        step["name"] == "rounding" and abs(Decimal(step["input"]) - Decimal(step["output"])) < _CENT
    )


def _words(step: Step) -> str:
    name = step["name"]
    if name == "formula":
        return _formula(step)
    if name == "bounds":
        return _BOUNDS[step["bound"]]
    if name == "hard_floor" and step["output"] == step.get("guard_floor"):
        return _BOUNDS["guard_floor"]
    if name == "cap":
        return LIMITS[step["period"]]
    if name == "stale_reduction":
        return f"unsold for {step['days']} days"
    return _WORDS[name]


def _formula(step: Step) -> str:
    bp, amount = step["adjust_bp"], Decimal(step["adjust_amount"] or 0)
    parts = [f"{percent(abs(bp))} {'above' if bp > 0 else 'under'}"] if bp else []
    if amount:
        parts.append(f"{abs(amount):.2f} {'more' if amount > 0 else 'less'}")
    return ", ".join(parts)

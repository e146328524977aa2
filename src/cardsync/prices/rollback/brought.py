"""Adds up the effect of a file's prices: the raised and lowered prices by rule, and the largest
moves. Pure.

An event stores the sums as JSON while its prices are moved in parts: `rules` has [rule, raised,
value, lowered, value], and `largest` has [card, price before, price, copies].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from cardsync.platform.value_types import JsonObject

# The number of runs that are searched for the newest change of a price, which names the price's
# rule.
RUNS_LOOKED_AT: Final = 50
LARGEST: Final = 10


def with_more(
    kept: JsonObject | None,
    rules: Sequence[Sequence[object]] | None,
    largest: Sequence[Sequence[object]] | None,
) -> dict[str, object]:
    """Return the stored sums with those of one more part added."""
    before = kept or {"rules": [], "largest": []}
    return {
        "rules": added([*before["rules"], *(rules or ())]),
        "largest": largest_of([*before["largest"], *(largest or ())]),
    }


def added(rules: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return the sums of each rule. For prices without a rule, the rule is null."""
    sums: dict[int | None, list[Any]] = {}
    for rule, *figures in rules:
        own = sums.setdefault(rule, [0, Decimal(0), 0, Decimal(0)])
        own[:] = [one + Decimal(str(more)) for one, more in zip(own, figures, strict=True)]
    return [
        [rule, int(raised), f"{up:f}", int(lowered), f"{down:f}"]
        for rule, (raised, up, lowered, down) in sums.items()
    ]


def largest_of(moves: Iterable[Sequence[object]]) -> list[list[object]]:
    """Return the moves with the largest change of the listed value."""

    def worth(move: Sequence[Any]) -> Decimal:
        _, was, price, copies = move
        return abs(Decimal(str(price)) - Decimal(str(was or 0))) * int(copies)

    ordered = sorted(moves, key=lambda move: (-worth(move), move[0]))[:LARGEST]
    return [
        [card, None if was is None else str(was), str(price), copies]
        for card, was, price, copies in ordered
    ]

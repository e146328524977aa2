"""Works out from the counts of each rule's cards how many it governs and which rules shadow it.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """The facts count the active cards that one rule selects and those that it governs."""

    id: int
    selects: int
    governs: int
    broken: bool
    # `shared` counts the cards that this rule and an earlier one select, by the earlier one's id.
    shared: Mapping[int, int]
    # `lost` counts the cards that this rule selects and an earlier live rule takes, by that rule's
    # id.
    lost: Mapping[int, int]


class Overlap(msgspec.Struct, frozen=True):
    id: int
    """The other rule"""
    cards: int
    """Cards that both select"""


class Finding(msgspec.Struct, frozen=True):
    id: int
    selects: int
    """How many cards it selects"""
    governs: int
    """How many of them no earlier rule takes"""
    never_matches: bool
    """It selects no card"""
    shadowed_by: list[int]
    """The ids of earlier rules that take all of its cards"""
    broken: bool
    """Its query cannot be read"""
    overlaps: list[Overlap]
    """Other rules that select some of the same cards"""


def findings(facts: Sequence[RuleFacts]) -> list[Finding]:
    """Return the findings in the order of priority.

    A rule is shadowed when it selects cards and earlier rules govern every one of them.
    """
    both: dict[int, dict[int, int]] = {fact.id: {} for fact in facts}
    for fact in facts:
        for other, cards in fact.shared.items():
            if cards:
                both[fact.id][other] = both[other][fact.id] = cards
    return [
        Finding(
            fact.id,
            fact.selects,
            fact.governs,
            never_matches=not fact.selects and not fact.broken,
            # A draft governs nothing either, but only earlier rules shadow it.
            shadowed_by=list(fact.lost)
            if fact.selects and sum(fact.lost.values()) == fact.selects
            else [],
            broken=fact.broken,
            overlaps=[Overlap(id, cards) for id, cards in both[fact.id].items()],
        )
        for fact in facts
    ]

"""Finds rules that govern no cards, are shadowed or overlap, from counts of each rule's cards.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from cardsync.platform.kit.struct_rows import struct_of


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """The counts of active cards that a rule selects and that it governs."""

    id: int
    selects: int
    governs: int
    broken: bool
    # Counts of the cards that this rule and an earlier rule both select, by the earlier rule's id.
    shared: Mapping[int, int]
    # Counts of the cards that this rule selects but an earlier live rule governs, by that rule's
    # id.
    lost: Mapping[int, int]


class Overlap(msgspec.Struct, frozen=True):
    id: int
    """Id of the other rule"""
    cards: int
    """Number of cards that both rules select"""


class Finding(msgspec.Struct, frozen=True):
    id: int
    selects: int
    """Number of cards that the rule selects"""
    governs: int
    """Number of the selected cards that no earlier rule governs"""
    never_matches: bool
    """True if the rule selects no card"""
    shadowed_by: list[int]
    """Ids of the earlier rules that govern all of its cards"""
    broken: bool
    """True if the rule's query cannot be read"""
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
        struct_of(
            Finding,
            fact,
            never_matches=not fact.selects and not fact.broken,
            # A draft governs no card either, so the rule is shadowed only if earlier rules govern
            # all its cards.
            shadowed_by=list(fact.lost)
            if fact.selects and sum(fact.lost.values()) == fact.selects
            else [],
            overlaps=[Overlap(id, cards) for id, cards in both[fact.id].items()],
        )
        for fact in facts
    ]

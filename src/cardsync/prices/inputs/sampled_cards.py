"""Chooses the cards of a sample, which a preview prices first if a shop has many cards.

A sample has one run of neighboring ids in so many. The cards of a run are in the same few pages of
the table, while single cards would be in all of its pages. The runs depend only on the ids, so a
card that is in the sample stays in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, overload

from cardsync.platform.database.read_sources import Source, rows_of

# A sample of runs is as exact as one of single cards, even if a shop's file is sorted (ADR 55).
RUN: Final = 16
# Each step skips to the next ids that the seller has, because ids of sellers are mixed.
_FIRSTS: Final = """
    WITH RECURSIVE part (n) AS (
        (SELECT id / :ids FROM card WHERE seller_id = :seller
            AND EXISTS (SELECT FROM card WHERE seller_id = :seller OFFSET :few)
          ORDER BY id LIMIT 1)
         UNION ALL
        SELECT (SELECT id / :ids FROM card WHERE seller_id = :seller
                   AND id >= (part.n + 1) * :ids ORDER BY id LIMIT 1)
          FROM part WHERE part.n IS NOT NULL
    )
    SELECT n * :ids FROM part WHERE n IS NOT NULL
"""


class Sample(Sequence[int]):
    """The ids of runs that begin with these ids; some of the ids may have no card."""

    def __init__(self, firsts: Sequence[int]) -> None:
        self._ids = list(chain.from_iterable(range(first, first + RUN) for first in firsts))

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._ids[index]


async def sample_of(source: Source, seller_id: int, one_in: int, few: int = 0) -> Sample | None:
    """Return the sample that has one card in `one_in`; None for all cards, also if the seller has
    at most `few` cards. Cards that are gone count, too, so that an index alone answers.
    """
    if one_in == 1:
        return None
    values = {"seller": seller_id, "ids": RUN * one_in, "few": few}
    firsts = [first for (first,) in await rows_of(source)(_FIRSTS, values)]
    return Sample(firsts) if firsts else None

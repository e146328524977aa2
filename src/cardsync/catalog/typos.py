"""Finds words that differ in one or two letters, because both words have a common form without
these letters. Pure.

The forms of a word without one or two letters are its *deletes*. Every word is stored with its
deletes, and a mistyped word is searched by its own deletes. Words with fewer than six letters may
differ in one letter, longer words in two. Only the first seven letters of a word have deletes,
which limits these to about thirty.
"""

from __future__ import annotations

from collections.abc import Iterator

from rapidfuzz.distance import OSA

# Words with fewer letters are similar to too many other words, so their typos are not searched.
SHORTEST = 3
LONG = 6
BEGINNING = 7


def distance_of(word: str) -> int:
    """Return the number of letters in which a word may differ."""
    return 0 if len(word) < SHORTEST else 1 if len(word) < LONG else 2


def deletes(word: str) -> set[str]:
    """Return the beginning of the word with none, one or two letters removed."""
    found = left = {word[:BEGINNING]}
    for _ in range(distance_of(word)):
        left = {shorter for one in left for shorter in _one_less(one)}
        found = found | left
    return found


def _one_less(word: str) -> Iterator[str]:
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]


def near(typed: str, word: str) -> bool:
    """Return whether `typed` may be a typo of `word`: they differ in at most the letters that both
    of their lengths allow.
    """
    most = min(distance_of(typed), distance_of(word))
    return OSA.distance(typed, word, score_cutoff=most) <= most

"""Finds words that differ in a letter or two: they share a form with those letters removed. Pure.

Every word is stored under such shortened forms, its deletes; a mistyped word is looked up by its
own. Short words may differ in one letter, words from six letters in two. Only the beginning of a
long word counts, which limits a word's deletes to about thirty.
"""

from __future__ import annotations

from collections.abc import Iterator

from rapidfuzz.distance import OSA

# Words under three letters have too many neighbors for a guess.
SHORTEST = 3
LONG = 6
BEGINNING = 7


def distance_of(word: str) -> int:
    """Return how many letters may differ."""
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
    """Return whether `word` may be meant: few letters differ for its length.

    A word that is still being typed may be the beginning of a longer one.
    """
    most = min(distance_of(typed), distance_of(word))
    return OSA.distance(typed, word, score_cutoff=most) <= most

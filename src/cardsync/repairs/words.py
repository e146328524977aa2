"""Words of labels and of names that programs give: texts in, sets of words and how alike they are
out. Pure.

`exportBtn`, `export-btn` and "Export" share the word export; btn says nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_WORDS = 40
# Words of markup and of step names that tell no element from another.
_EMPTY_WORDS = """
    a an and the of to in on for your this with
    btn button link input field form control icon wrapper wrap container content box item row col
    cell div span ul li td tr tbody thead table nav menu main page app root js css ui mat mui
    primary secondary default active inner outer block element el component id name class text
    small large sm md lg xl click press open select fill choose wait step data test testid qa cy
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
# Beginnings of words that make another act of the same thing: to delete an export, help on it.
_TURNS = """
    abort archiv cancel configur decline deactivat delet destroy disabl discard dismiss document
    empty erase exampl faq guide help hide histor learn preferenc preview remov reset restor revert
    sampl schedul setting stop templat tutorial undo
"""
_TURNING = tuple(_TURNS.split())
# A file's kind says how a thing is done, and nothing of which thing.
_FORMATS = frozenset({"csv", "file", "xls", "xlsx", "excel", "json", "pdf", "txt", "tsv", "zip"})


@lru_cache(maxsize=2048)
def words(text: str) -> frozenset[str]:
    """The words of a text, small letters, camel case taken apart."""
    found = _PARTS.findall(_CAMEL.sub(" ", text[:500]))
    return frozenset(word.lower() for word in found[:_MOST_WORDS])


@lru_cache(maxsize=2048)
def telling(text: str) -> frozenset[str]:
    """The words that tell one element from another."""
    return words(text) - _EMPTY


def turning(found: frozenset[str]) -> frozenset[str]:
    """The beginnings of those words that make another act of the same thing."""
    return frozenset(begin for begin in _TURNING if any(word.startswith(begin) for word in found))


def without_formats(found: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
    """The words found but for kinds of files, where the wanted words name no kind and others
    are left.
    """
    return found if wanted & _FORMATS else (found - _FORMATS) or found


def strangers(found: frozenset[str], known: frozenset[str]) -> frozenset[str]:
    """Those of the words found that nothing known explains."""
    rest = without_formats(found, known) - known
    return frozenset(word for word in rest if not any(alike(word, other) for other in known))


@lru_cache(maxsize=4096)
def alike(one: str, other: str) -> bool:
    """Whether both are the same word but for an ending or a slip.

    The first letters are equal, so that "activate" never finds "deactivate".
    """
    if one == other:
        return True
    if one[0] != other[0] or min(len(one), len(other)) < 4 or one.isdigit():
        return False
    return fuzz.ratio(one, other) >= 85


def covered(wanted: frozenset[str], among: frozenset[str]) -> float:
    """The part of the wanted words that occur among others."""
    if not wanted:
        return 0.0
    missing = wanted - among
    hits = len(wanted) - len(missing)
    if missing and (rest := among - wanted):
        hits += sum(
            any(word[0] == other[0] and alike(word, other) for other in rest) for word in missing
        )
    return hits / len(wanted)


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """From 0 to 1: the words that both have, of all that either has."""
    if not one or not other:
        return 0.0
    shared = covered(one, other) * len(one)
    return shared / (len(one) + len(other) - shared) if shared else 0.0

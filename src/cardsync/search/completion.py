"""What may be written next in a search: the text up to the cursor and the seller's own names in, whole terms out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cardsync.search.fields import CONDITIONS, FIELDS, FLAGS, SELECTORS, THINGS
from cardsync.search.words import folded

MOST = 20
# The term under the cursor: not inside closed quotes.
_LAST = re.compile(r'(?:^|[\s(])-?([^\s()"]*(?:"[^"]*)?)$')
_FIELD_NAMES = (*dict.fromkeys(field.name for field in FIELDS.values()), "not")
_TERM = re.compile(r"([a-z_]+)(!=|<=|>=|[:=<>])(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class OwnNames:
    """What only this seller has: sets in stock, product lines, lists as (slug, name), names of rules."""

    sets: Sequence[str] = ()
    games: Sequence[str] = ()
    lists: Sequence[tuple[str, str]] = ()
    rules: Sequence[str] = ()


@dataclass(frozen=True)
class Completion:
    """`text` takes the place of what stands from `at` on; `told` says more of it."""

    at: int
    text: str
    told: str = ""


def complete(text: str, own: OwnNames) -> list[Completion]:
    """At the end of `text`. What begins as the term does comes first, then what holds it."""
    found = _LAST.search(text)
    if found is None:
        return []
    at, term = found.start(1), found.group(1)
    if not (split := _TERM.fullmatch(term)):
        return [Completion(at, f"{name}:") for name in _like(term, _FIELD_NAMES)]
    name, op, value = split.groups()
    alternatives, bar, last = value.rpartition("|")
    before = f"{name}{op}{alternatives}{bar}"
    told = _values(name.lower(), own)
    return [Completion(at, before + _quoted(word), told[word]) for word in _like(last.lstrip('"'), told)]


def _values(field: str, own: OwnNames) -> dict[str, str]:
    if field == "not":
        return dict.fromkeys(FLAGS, "")
    known = {
        "is": dict.fromkeys(FLAGS, ""),
        "has": dict.fromkeys(THINGS, ""),
        "cond": dict.fromkeys(CONDITIONS, ""),
        "v": dict.fromkeys(SELECTORS.values(), ""),
        "set": dict.fromkeys(own.sets, ""),
        "game": dict.fromkeys(own.games, ""),
        "list": dict(own.lists),
        "rule": dict.fromkeys(own.rules, ""),
    }
    return known.get(FIELDS[field].name, {}) if field in FIELDS else {}


def _like(begun: str, known: Iterable[str]) -> list[str]:
    wanted = folded(begun)
    by_place = [(folded(word).find(wanted), word) for word in known]
    return [word for _, word in sorted((place > 0, word) for place, word in by_place if place >= 0)][:MOST]


def _quoted(word: str) -> str:
    return (
        word if re.fullmatch(r"[\w.-]+", word) and ".." not in word else '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'
    )

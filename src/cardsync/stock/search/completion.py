"""Completes the end of a search with whole terms, including the seller's own names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardsync.stock.search.fields import CONDITIONS, FIELDS, FLAGS, THINGS
from cardsync.stock.search.folding import folded
from cardsync.stock.search.variants import SELECTORS

MOST = 20
_CLOSED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_HIDDEN = "\0"
# The last term of a text. Closed quotes in the text were replaced by _HIDDEN.
_LAST = re.compile(r'(?:^|[\s(])-?([^\s()"]*(?:".*)?)$', re.DOTALL)
# A `v:` term whose unquoted value contains a space.
_SPACED = re.compile(
    r'(?:^|[\s(])-?((?:v|variant)(?:!=|[:=])(?:[^\s()"]*\|)?)([^()"|]*\s[^()"|]*)$', re.IGNORECASE
)
_SPACES = re.compile(r"\s+")
_ESCAPED = re.compile(r'\\(["\\])')
_FIELD_NAMES = dict.fromkeys([*(field.name for field in FIELDS.values()), "not"], "")
_TERM = re.compile(r"([a-z_]+)(!=|<=|>=|[:=<>])(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class OwnNames:
    """A seller's own names: sets in stock, product lines, lists as (slug, name), and names of
    rules.
    """

    sets: Sequence[str] = ()
    games: Sequence[str] = ()
    lists: Sequence[tuple[str, str]] = ()
    rules: Sequence[str] = ()


@dataclass(frozen=True)
class Completion:
    """A completion of a search: `text` replaces the search from the offset `at` on; `detail`
    describes `text`.
    """

    at: int
    text: str
    detail: str = ""


def field_at_end(text: str) -> str:
    """Return the name of the field of the last term in `text`, or an empty text if that term has no
    field.
    """
    found = _LAST.search(_CLOSED.sub(lambda closed: _HIDDEN * len(closed.group()), text))
    split = _TERM.fullmatch(text[found.start(1) :]) if found else None
    field = FIELDS.get(split[1].lower()) if split else None
    return field.name if field else ""


def complete(text: str, own: OwnNames) -> list[Completion]:
    """Return completions of the last term of `text`. Names that begin with the typed characters
    precede names that only contain them.
    """
    hidden = _CLOSED.sub(lambda closed: _HIDDEN * len(closed.group()), text)
    if spaced := _spaced(text, hidden):
        return spaced
    found = _LAST.search(hidden)
    if found is None or hidden.endswith(_HIDDEN):
        return []
    at = found.start(1)
    if not (split := _TERM.fullmatch(text[at:])):
        return [Completion(at, f"{name}:") for name in _like(text[at:], _FIELD_NAMES)]
    name, _, value = split.groups()
    # A bar inside open quotes does not separate alternatives.
    alternatives, bar, _ = hidden[len(text) - len(value) :].partition('"')[0].rpartition("|")
    last = value[len(alternatives) + len(bar) :]
    before = text[at : len(text) - len(last)]
    values = _values(name.lower(), own)
    quoted = _quoted_name if FIELDS.get(name.lower()) is FIELDS["rule"] else _quoted
    return [
        Completion(at, before + quoted(word), values[word])
        for word in _like(_unquoted(last), values)
    ]


def _spaced(text: str, hidden: str) -> list[Completion]:
    """Complete the value of a `v:` term that contains a space and has no quotes."""
    if not (found := _SPACED.search(hidden)):
        return []
    at = found.start(1)
    begun = folded(_SPACES.sub(" ", found.group(2)))
    meant = dict.fromkeys(name for written, name in SELECTORS.items() if written.startswith(begun))
    return [Completion(at, text[at : found.start(2)] + _quoted(name)) for name in meant]


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


def _like(begun: str, known: Mapping[str, str]) -> list[str]:
    """Return the words that contain `begun`, or whose description contains it. For a list, the word
    is its slug and the description is its name.
    """
    wanted = folded(begun)
    places = [
        ((folded(word).find(wanted), folded(detail).find(wanted)), word)
        for word, detail in known.items()
    ]
    found = sorted((0 not in of_both, word) for of_both, word in places if max(of_both) >= 0)
    return [word for _, word in found][:MOST]


def _unquoted(begun: str) -> str:
    return _ESCAPED.sub(r"\1", begun[1:]) if begun.startswith('"') else begun


def _quoted(word: str) -> str:
    return (
        word
        if re.fullmatch(r"[\w.-]+", word) and ".." not in word
        else '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'
    )


def _quoted_name(word: str) -> str:
    """Quote a name that is only digits, because the parser would take it for an id."""
    return f'"{word}"' if word.isdecimal() else _quoted(word)

"""The filters and views on the page of cards, as terms of its search. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cardsync.stock.search.chips import chips_of, query_of, with_part
from cardsync.stock.search.fields import QueryError

# Terms that a quick filter adds to a search or removes from it, each with its name.
FILTERS = (
    ("is:foil", "Foil"),
    ("is:pinned", "Pinned"),
    ("is:capped", "Limited by cap"),
    ("is:underpriced", "Under target"),
    ("is:overpriced", "Over target"),
    ("is:unpriced", "No price"),
    ("is:unshelved", "No location"),
    ("is:custom", "Custom"),
    ("unsold>90", "No sale in 90 days"),
    ("-has:cost", "Cost unknown"),
)
# The fields in the form of further filters. Each filled field becomes a term of the search.
MORE_FILTERS = {
    "in_set": 'set:"{}"',
    "in_cond": "cond:{}",
    "in_rule": 'rule:"{}"',
    "price_from": "price>={}",
    "price_to": "price<={}",
    "cost_from": "cost>={}",
    "cost_to": "cost<={}",
    "margin_under": "margin<{}",
    "age_over": "age>{}",
    "unsold_over": "unsold>{}",
}
# The views that every shop has. The shop's saved searches follow them.
VIEWS = (
    ("", "All"),
    ("is:underpriced", "Under target"),
    ("is:overpriced", "Over target"),
    ("is:unshelved", "No location"),
    ("price>=50", "Over $50"),
    ("unsold>90", "No sale in 90 days"),
)


# The error of search/fields.py that suggests the nearest valid word.
_NEAREST = re.compile(r"""(.*?["']([^"']+)["'].*?)\. Did you mean ([^?]+)\?""", re.S)


class View(NamedTuple):
    """A search with a name."""

    query: str
    name: str


class Filter(NamedTuple):
    """A quick filter, whether the search contains it, and the address's search after a
    click on it.
    """

    name: str
    on: bool
    search: str


class Fault(NamedTuple):
    """An invalid search, split at its wrong word. `nearest` is the most similar valid word, and
    `better` is the search with that word in place of the wrong one.
    """

    message: str
    before: str
    word: str
    after: str
    nearest: str
    better: str


def filters_of(search: str) -> list[Filter]:
    """Return the quick filters for a search. Pure. Raises QueryError."""
    has = {chip.text for chip in chips_of(search)}
    return [Filter(name, part in has, with_part(search, part)) for part, name in FILTERS]


def fault_of(search: str, message: str, at: int) -> Fault:
    """Split an invalid search at the word that begins at offset `at`. Pure."""
    rest = search[at:]
    word = rest.split(None, 1)[0] if rest.strip() else ""
    known = _NEAREST.fullmatch(message)
    said, wrong, nearest = known.groups() if known else (message, "", "")
    better = search[:at] + rest.replace(wrong, nearest, 1) if wrong and wrong in rest else ""
    return Fault(said, search[:at], word, rest[len(word) :], nearest, better)


def filters_in(given: Mapping[str, Sequence[str]]) -> str:
    """Return the filled fields in the form of further filters as terms of a search. Pure."""
    filled = ((pattern, last_value(given, name)) for name, pattern in MORE_FILTERS.items())
    return " ".join(pattern.format(text.replace('"', "")) for pattern, text in filled if text)


def last_value(given: Mapping[str, Sequence[str]], name: str) -> str:
    return (given.get(name) or [""])[-1].strip()


def joined(search: str, term: str) -> str:
    """Return a search with one more term. If either is invalid, both are joined as typed. Pure."""
    texts = [text for text in (search, term) if text]
    if len(texts) < 2:
        return "".join(texts)
    try:
        return query_of(texts)
    except QueryError:
        return " ".join(texts)

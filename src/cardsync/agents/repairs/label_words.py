"""Splits labels, and names in markup, into words, weighs them, and compares them. Pure.

`exportBtn`, `export-btn`, "Export" and "Exportieren" have the same meaning; "btn" is ignored.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

from cardsync.agents.repairs.meanings import is_act, meanings

_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MOST_WORDS = 40
# Each phrase is replaced by one word.
_PHRASES = (
    (re.compile(r"\b(?:log|sign)[ _-]?in\b|\biniciar sesión\b|\bse connecter\b"), "login"),
    (re.compile(r"\b(?:log|sign)[ _-]?out\b|\bcerrar sesión\b|\bse déconnecter\b"), "logout"),
    (re.compile(r"\bsign[ _-]?up\b"), "register"),
    (re.compile(r"\bcheck[ _-]?out\b"), "checkout"),
    (re.compile(r"\b(?:select|toggle|mark|check)[ _-]?(?:all|every|everything)\b"), "selectall"),
    (re.compile(r"\bmot de passe\b"), "password"),
    # "to" at the end of a label means the end of a range of days; elsewhere it has no meaning.
    (re.compile(r"\bto(?:[ -](?:day|date))?$|\bdate to\b"), "until"),
    (re.compile(r"\be-?mail[ -](?:address|adresse)\b|\badresse e-?mail\b|\be-mail\b"), "email"),
    (re.compile(r"\b(?:zip|postal)[ -]?code\b|\bcode postal\b|\bcódigo postal\b"), "postcode"),
    (re.compile(r"\b(?:keep me|stay) (?:logged|signed) in\b|\bangemeldet bleiben\b"), "remember"),
)
# Words of markup and grammar, which do not distinguish elements.
_EMPTY_WORDS = """
    a an and the of in on for your my this that with is as by it its or me you we us
    und der die das als zu zum zur le la les des du de en au aux pour el los las al para por il lo i
    btn btns button buttons lnk link wrapper wrap container content box div span ul li td tr tbody
    thead col cell nav root js css html php ui mat mui inner outer block elt el class sm md lg xl
    testid qa cy
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
# Words that distinguish elements only a little.
_WEAK_WORDS = """
    page list table result main form item name text id tab app icon row menu primary secondary default
    small large big test data body header footer toolbar sidebar navbar bar dialog modal panel group
    file nr number to now please do go click press check open choose option optional date only full
    selected current last action actions react vue all every everything also too here show view see
"""
_WEAK = frozenset(_WEAK_WORDS.split())
# Words that often mean only a time or a manner have half the weight.
_MODEST = frozenset({"start", "begin", "load", "quick", "bulk"})
VERSIONS = frozenset({"old", "new", "legacy", "beta", "v", "alt", "temp", "tmp"})
# Last words of a name in markup that are ignored: its version, or the element's use.
_USES = frozenset(
    {"input", "field", "select", "dropdown", "checkbox", "radio", "control", "textbox", "combobox"}
)
_LAST = VERSIONS | _USES
_ASIDE = re.compile(r"\([^()]*\)")
_SUFFIX = re.compile(r"(\w{3,}?)(?:button|btn|link|bar|box|field|input)\Z")
_WHOLE = frozenset({"toolbar", "navbar", "sidebar", "checkbox", "textbox", "combobox", "inbox"})
# A file format does not name an object.
FORMATS = frozenset(
    {"csv", "xls", "xlsx", "excel", "json", "pdf", "txt", "tsv", "zip", "tar", "gz", "xml"}
)
_WEIGHT_OF_ACT, _WEIGHT_OF_FORMAT, _WEIGHT_OF_NUMBER, _SOME = 1.5, 0.4, 0.3, 0.5
_LITTLE, _NEXT_TO_NOTHING = 0.2, 0.05


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, in lower case, with camel case split."""
    text = _CAMEL.sub(" ", text[:500]).lower().replace("_", " ")
    for pattern, word in _PHRASES:
        text = pattern.sub(word, text)
    return tuple(_PARTS.findall(text)[:_MOST_WORDS])


@lru_cache(maxsize=4096)
def distinctive(text: str) -> tuple[str, ...]:
    """Return the words that distinguish one element from another."""
    found = (_without_suffix(word) for word in words(text))
    return tuple(word for word in found if word not in _EMPTY)


def without_asides(text: str) -> str:
    """Return a label without its parts in brackets, unless nothing distinctive is left."""
    if "(" not in text:
        return text
    rest = _ASIDE.sub(" ", text)
    return rest if distinctive(rest) else text


def aside(text: str) -> str:
    """Return a label's parts in brackets, or an empty text if the rest is not distinctive."""
    if "(" not in text:
        return ""
    found = _ASIDE.findall(text)
    return " ".join(found) if found and distinctive(_ASIDE.sub(" ", text)) else ""


@lru_cache(maxsize=4096)
def named(text: str) -> tuple[str, ...]:
    """Return the distinctive words of a name in markup. `import-button-old` means import."""
    found = distinctive(text)
    while len(found) > 1 and (found[-1] in _LAST or found[-1] == "1"):
        found = found[:-1]
    return found


def _without_suffix(word: str) -> str:
    cut = None if word in _WHOLE else _SUFFIX.match(word)
    return cut[1] if cut else word


@lru_cache(maxsize=8192)
def weight(word: str) -> float:
    """Return how distinctive a word is."""
    if word.isdigit():
        return _WEIGHT_OF_NUMBER
    if word in _USES:
        return _NEXT_TO_NOTHING
    if word in _WEAK or word.removesuffix("s") in _WEAK or len(word) == 1:
        return _LITTLE
    if word in FORMATS:
        return _WEIGHT_OF_FORMAT
    if word in _MODEST:
        return _SOME
    return _WEIGHT_OF_ACT if is_act(word) and not word.endswith("ed") else 1.0


@lru_cache(maxsize=16384)
def likeness(one: str, other: str) -> float:
    """Return the likeness of two words: 1 for the same word, less for another ending, a typo or
    only a shared meaning, else 0.
    """
    if one == other:
        return 1.0
    if alike(one, other):
        return 0.95
    return 0.85 if meanings(one) & meanings(other) else 0.0


@lru_cache(maxsize=16384)
def alike(one: str, other: str) -> bool:
    """Return whether two words differ at most in an ending or a typo.

    The first letters must be equal: "activate" never matches "deactivate".
    """
    if one == other:
        return True
    if one[0] != other[0] or min(len(one), len(other)) < 4 or one.isdigit():
        return False
    return fuzz.ratio(one, other) >= 85

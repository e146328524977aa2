"""Builds the regular expression that finds the selectors of `v:` in a card's search text. Pure.

A variant is the text inside one (...) or [...] of the product's or the set's name. Selectors match
whole words: `champion` is not in `(World Championships 2004)`. A word ends before a character that
is neither a letter from a to z nor a digit.
"""

from __future__ import annotations

import re

from cardsync.stock.search.folding import RARITY, SET, folded, without_spaces

# The selectors of `v:` that name stamps.
STAMPS = ("prerelease", "staff", "winner", "finalist", "champion", "stamped")
# The folded spellings of the selectors of `v:`. A search may also use any other text of a variant.
SELECTORS = {
    **{name: name for name in ("shadowless", *STAMPS)},
    "no symbol": "No Symbol",
    "no rarity": "No Rarity",
    "1999-2000": "1999-2000",
    "4th print": "1999-2000",
    **{
        name.lower(): name
        for name in (
            "Master Ball Pattern",
            "Master Ball",
            "Poke Ball Pattern",
            "Poke Ball",
            "Friend Ball Pattern",
            "Love Ball Pattern",
            "Quick Ball Pattern",
            "Dusk Ball Pattern",
            "Energy Symbol Pattern",
            "Team Rocket Pattern",
            "Cosmos Holo",
            "Cracked Ice",
        )
    },
}
# The beginnings of selectors with several words, each up to one of the spaces.
SELECTOR_BEGINNINGS = frozenset(
    name[: space.start()] for name in SELECTORS for space in re.finditer(" ", name)
)
_ROUND = ("(", ")")
_SQUARE = ("[", "]")
_SPACES = f"[ {without_spaces(' ')}]"
_APART = f"{SET}{RARITY}"
_OF_WORD = re.compile("[a-z0-9]")


def _inside(opens: str, closes: str, inner: str) -> str:
    return rf"\{opens}{inner}\{closes}"


def _anywhere(found: list[str]) -> str:
    """Match only in the name and the set, because the rarity may have parentheses, too."""
    return f"^[^{RARITY}]*(?:{'|'.join(found)})"


# The pattern matches a product or a set that has any variant.
ANY = _anywhere(
    [_inside(opens, closes, rf"[^\{closes}{_APART}]+") for opens, closes in (_ROUND, _SQUARE)]
)


def plain_variant(value: str) -> str:
    return folded(value).strip(" ")


def pattern_of(values: list[str]) -> str | None:
    """Return the pattern, or None if no variant can match these values: a text with both closing
    brackets fits into neither kind of brackets.
    """
    found = [
        _inside(opens, closes, _among(closes, value))
        for value in map(plain_variant, values)
        for opens, closes in (_ROUND, _SQUARE)
        if closes not in value
    ]
    return _anywhere(found) if found else None


def _among(closes: str, value: str) -> str:
    other = rf"[^\{closes}{_APART}]*"
    apart = rf"[^a-z0-9\{closes}{_APART}]"
    before = f"(?:{other}{apart})?" if _OF_WORD.match(value[0]) else other
    behind = f"(?:{apart}{other})?" if _OF_WORD.match(value[-1]) else other
    return before + re.escape(value).replace("\\ ", _SPACES) + behind

"""Builds the regular expression that matches the values of `v:` (selectors) with a card's search
text. Pure.

A variant is a text in parentheses or brackets in the name of the product or the set. Selectors
match whole words, so `champion` does not match `(World Championships 2004)`. A word ends before a
character that is neither a letter from a to z nor a digit.
"""

from __future__ import annotations

import re

from cardsync.stock.search.folding import RARITY, SET, folded, without_spaces

# The selectors of `v:` that name stamps.
STAMPS = ("prerelease", "staff", "winner", "finalist", "champion", "stamped")
# The predefined selectors of `v:` by their folded spellings. Any other text matches variants that
# contain its words.
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
# For each selector of several words, its text up to each of its spaces.
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
    """Return the pattern that finds one of these patterns in the name or the set. The rarity, which
    may contain parentheses, is not searched.
    """
    return f"^[^{RARITY}]*(?:{'|'.join(found)})"


# The pattern that matches a card whose product or set has a variant.
ANY = _anywhere(
    [_inside(opens, closes, rf"[^\{closes}{_APART}]+") for opens, closes in (_ROUND, _SQUARE)]
)


def plain_variant(value: str) -> str:
    return folded(value).strip(" ")


def pattern_of(values: list[str]) -> str | None:
    """Return the pattern that finds a variant with one of these values. Return None if no variant
    can match, because each value contains both `)` and `]`.
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

"""Draws the stand-in of a card without a picture: the game's color, the set, the number and a mark
of the rarity. Pure.

The drawing has no style and no script, so every content security policy allows it.
"""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

# White text is readable on each of these colors.
_COLORS: Final = {
    "magic": "#6d4a26",
    "pokemon": "#a8440f",
    "pokemon_japan": "#a8440f",
    "yugioh": "#6a3790",
    "lorcana": "#2a5288",
    "flesh_and_blood": "#8f2233",
    "one_piece": "#1d6068",
    "riftbound": "#3f5a1f",
}
_OTHER: Final = "#555555"
_MARKS: Final = {
    "common": "M0-3.6a3.6 3.6 0 1 0 .01 0z",
    "uncommon": "M0-4.5 4.5 0 0 4.5-4.5 0z",
    "rare": "M0-5 1.5-1.5 5-1.5 2.3.8 3.2 4.5 0 2.4-3.2 4.5-2.3.8-5-1.5-1.5-1.5z",
    "other": "M0-6 2-2 6 0 2 2 0 6-2 2-6 0-2-2z",
}
_CHARACTERS: Final = 11


class Face(NamedTuple):
    """The texts of a stand-in. An empty text is not drawn."""

    game: str
    set_name: str = ""
    number: str = ""
    rarity: str = ""


def stand_in(face: Face) -> str:
    """Return the drawing as SVG."""
    code, number = _text(_code(face.set_name)), _text(face.number)
    color = _COLORS.get(face.game, _OTHER)
    mark = f'<path transform="translate(31.5 40) scale(2.2)" d="{_mark(face.rarity)}"/>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 63 88" width="63" height="88"'
        ' fill="#fff" font-family="system-ui, sans-serif" font-weight="600" text-anchor="middle">'
        f'<rect width="63" height="88" rx="3" fill="{color}"/>'
        '<rect x="3.5" y="3.5" width="56" height="81" rx="2" fill="none" stroke="#fff"'
        f' stroke-opacity=".45"/>{mark if face.rarity else ""}'
        f'<text x="31.5" y="19" font-size="{_size(code)}">{code}</text>'
        f'<text x="31.5" y="74" font-size="{_size(number)}">{number}</text></svg>'
    )


def _size(text: str) -> str:
    """Return the font size at which a text of this length fits into the card's frame."""
    return f"{min(11.0, 80 / max(len(text), 1)):.3g}"


def _mark(rarity: str) -> str:
    """Return the mark of a rarity; some games write rarities as letters, others as words."""
    first = rarity.casefold()
    if first.startswith("c"):
        return _MARKS["common"]
    if first.startswith("u"):
        return _MARKS["uncommon"]
    return _MARKS["rare"] if first in ("r", "rare", "holo rare") else _MARKS["other"]


def _code(set_name: str) -> str:
    """Return a set code as it is, and a set name as its initials."""
    words = set_name.split()
    return set_name if len(words) < 2 else "".join(word[0] for word in words).upper()


def _text(text: str) -> str:
    # Control characters are removed, because XML does not allow most of them, even escaped.
    shown = "".join(sign for sign in text if sign.isprintable())
    cut = shown if len(shown) <= _CHARACTERS else shown[: _CHARACTERS - 1] + "…"
    return escape(cut)

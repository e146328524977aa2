"""Makes the slug of a list's name, and the form in which names are compared. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Container

from cardsync.search.folding import folded, words

FALLBACK = "list"


def is_one_line(name: str) -> bool:
    """Return whether the name has no control character and no end of a line."""
    return not any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in name)


def slug_of(name: str) -> str:
    """Return the name's lower ASCII words, joined by `-`."""
    return "-".join(word for word in words(folded(name)) if word.isascii()) or FALLBACK


def free_slug(name: str, used: Container[str]) -> str:
    """Return the name's slug, with a number from 2 on if the slug is used or ever was."""
    slug = slug_of(name)
    number = 2
    while (found := slug if number == 2 else f"{slug}-{number - 1}") in used:
        number += 1
    return found

"""Writes the name of a list in the form in which names are compared. Pure."""

from __future__ import annotations

import unicodedata


def seen_name(name: str) -> str:
    """Return the name without invisible parts: characters that only format, and outer spaces."""
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", seen).strip()


def name_key(name: str) -> str:
    """Return the key of a name; two names with one key are the same name."""
    return unicodedata.normalize("NFC", seen_name(name).casefold())

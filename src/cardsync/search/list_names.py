"""Names of lists as they are compared. Pure."""

from __future__ import annotations

import unicodedata


def seen_name(name: str) -> str:
    """Without what nobody sees: characters that only format, and spaces around it."""
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", seen).strip()


def name_key(name: str) -> str:
    """Two names of one key are the same name."""
    return unicodedata.normalize("NFC", seen_name(name).casefold())

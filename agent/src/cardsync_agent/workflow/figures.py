"""Reads the one number of a text in the format of the page's language. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d(?:[\d.,'\u00a0\u202f]*\d)?(?![\w])")
# The languages that write 1.234,56.
_COMMA = frozenset({"de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "fi", "nb", "cs", "tr"})


def figure_of(text: str, locale: str) -> Decimal | None:
    """Return the number, or None if the text has none or several."""
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    decimal, thousands = (",", ".") if locale.partition("-")[0] in _COMMA else (".", ",")
    whole = found[0].replace("\u2212", "-")
    for mark in (thousands, "'", "\u00a0", "\u202f"):
        whole = whole.replace(mark, "")
    try:
        return Decimal(whole.replace(decimal, "."))
    except InvalidOperation:
        return None

"""Splits a single name into its comparable parts, for requests with a few names. `product_names.py`
does the same for columns and takes much longer for one name. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from cardsync.catalog.collector_number import CollectorNumber, read_collector_number
from cardsync.catalog.product_names import SAME

_OPENS: Final = "[(（]"
_NUMBER: Final = r"#?([^\s/()（）\[\]]+/[^\s/()（）\[\]]+)"
_PLAIN_NUMBER: Final = r"#?([A-Za-z]*[0-9][A-Za-z0-9]*[*★+]?)"
_SUFFIX: Final = re.compile(rf"(?:\s*-\s*{_NUMBER}|\s+-\s+{_PLAIN_NUMBER})\s*(\Z|{_OPENS}|\[)")
_BRACKETED: Final = re.compile(r"[(（]#?([0-9]+[A-Za-z]?)[)）]")
_BASE: Final = re.compile(r"\s*[^(（\s][^(（]*")
_VARIANT: Final = re.compile(r"\s*[^(（\s][^(（]*([(（].*)\Z")
_DELTA: Final = re.compile(r"\s*[δΔ]")
_BARE_VARIANT: Final = re.compile(r"\s+-\s+(Full Art)\Z|\s*\[(Version [0-9]+)\]\Z")
_APOSTROPHES: Final = re.compile(r"['’‘ʼ`´.]")
_LATIN_MARKS: Final = re.compile(r"[\u0300-\u036F]")
_SPELLED: Final = str.maketrans(SAME)


class NameParts(NamedTuple):
    name_key: str
    back_key: str | None
    variant_key: str

    def full(self) -> str:
        return " ".join(part for part in self if part)


def folded(text: str) -> str:
    """Return the words in lower case, joined by single spaces, without accents, apostrophes or
    punctuation.
    """
    plain = _APOSTROPHES.sub("", text)
    if plain.isascii():
        plain = plain.lower()
    else:
        plain = unicodedata.normalize("NFKD", plain).lower()
        plain = unicodedata.normalize("NFC", _LATIN_MARKS.sub("", plain))
    plain = plain.translate(_SPELLED)
    return " ".join(word for word in "".join(map(_of_word, plain)).split(" ") if word)


def _of_word(letter: str) -> str:
    kind = unicodedata.category(letter)
    return letter if kind[0] in "LNM" or kind == "So" else " "


def key(text: str) -> str:
    """Return the folded text; a name of only punctuation is unchanged."""
    return folded(text) or text.strip()


def name_parts(name: str, number: CollectorNumber) -> NameParts:
    """Return the parts of a name. `number` is the card's number, which the name may repeat."""
    spelled = _DELTA.sub(" (Delta Species)", _title(name, number), count=1)
    spelled = _BARE_VARIANT.sub(lambda match: f" ({match[1] or match[2]})", spelled)
    found = _BASE.match(spelled)
    base = found.group() if found else spelled
    variant = _VARIANT.match(spelled)
    front, dashes, back = base.partition(" // ")
    return NameParts(
        key(front),
        key(back) if dashes else None,
        folded(variant.group(1)) if variant else "",
    )


def number_in(name: str) -> CollectorNumber:
    """Return the collector number at the end of a name."""
    suffix = _SUFFIX.search(name)
    return read_collector_number(suffix and (suffix.group(1) or suffix.group(2)))


def _title(name: str, number: CollectorNumber) -> str:
    """Return the name without the card's number; another number remains in the name."""
    suffix, bracketed = _SUFFIX.search(name), _BRACKETED.search(name)
    bare = _SUFFIX.sub(lambda match: f" {match.group(3)}", name, count=1)
    bare = _BRACKETED.sub("", bare, count=1).strip()
    if not bare:
        return name
    if suffix is not None:
        own = read_collector_number(suffix.group(1) or suffix.group(2))
        if not own.agrees_with(number):
            return name
    if bracketed is not None and read_collector_number(bracketed.group(1)).key != number.key:
        return name
    return bare if suffix or bracketed else name

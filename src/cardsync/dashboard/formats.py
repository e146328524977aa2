"""Formats figures and times for a page in the reader's language and the account's zone. Pure.

An amount is text or Decimal and never a float. A value that is not known is a dash, never zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from cardsync import clock

UNKNOWN = "–"
_CENT = Decimal("0.01")
# The marks between thousands and before decimals, by language; English is the rule.
_NARROW = "\u202f"
_MARKS = {
    "de": (".", ","), "nl": (".", ","), "es": (".", ","), "it": (".", ","), "pt": (".", ","),
    "da": (".", ","), "tr": (".", ","), "id": (".", ","), "fr": (_NARROW, ","),
    "pl": (_NARROW, ","), "cs": (_NARROW, ","), "sv": (_NARROW, ","), "nb": (_NARROW, ","),
    "fi": (_NARROW, ","), "ru": (_NARROW, ","), "uk": (_NARROW, ","),
}  # fmt: skip
_STEPS = ((60, 60, "min"), (3600, 24, "h"), (86_400, 45, "d"))


# Only an amount has more than two decimals; a share has at most two.
_AMOUNT = re.compile(r"(?<![\d.])\d+\.\d{3,}(?!\.?\d)")


def _rounded(amount: Decimal) -> Decimal:
    return amount if abs(amount) < _CENT else amount.quantize(_CENT, ROUND_HALF_UP)


@dataclass(frozen=True)
class Reader:
    """The person at the browser: the first language of Accept-Language, the account's zone, now."""

    language: str
    zone: tzinfo
    now: datetime

    def number(self, value: int | Decimal | None, places: int = 0) -> str:
        if value is None:
            return UNKNOWN
        thousands, point = _MARKS.get(self.language, (",", "."))
        text = f"{value:,.{places}f}"
        return text.replace(",", "\0").replace(".", point).replace("\0", thousands)

    def count(self, value: int, what: str) -> str:
        """Return how many of a thing there are; `what` is its plural."""
        one = what.removesuffix("ies") + "y" if what.endswith("ies") else what.removesuffix("s")
        return f"{self.number(value)} {one if value == 1 else what}"

    def money(self, amount: Decimal | str | None) -> str:
        """Return dollars and cents; an amount under a cent keeps its places."""
        if amount is None:
            return UNKNOWN
        value = _rounded(Decimal(amount))
        places = 4 if 0 < abs(value) < _CENT else 2
        sign = "−" if value < 0 else ""
        return f"{sign}${self.number(abs(value), places)}"

    def in_cents(self, sentence: str, price: str) -> str:
        """Return the sentence of a price with its amounts in whole cents: what became the price reads
        as the price, whichever way it was rounded.
        """

        def cents(found: re.Match[str]) -> str:
            amount, became = Decimal(found[0]), Decimal(price)
            return str(_rounded(became if abs(amount - became) < _CENT else amount))

        return _AMOUNT.sub(cents, sentence)

    def estimate(self, amount: Decimal | str | None) -> str:
        """Return whole cents of an amount that is estimated or a mean: more places would be false
        precision.
        """
        return self.money(None if amount is None else Decimal(amount).quantize(_CENT))

    def change(self, before: Decimal | str | None, after: Decimal | str | None) -> Change | None:
        """Return how an amount changes; None if either is not known or nothing changes."""
        if before is None or after is None:
            return None
        old, new = Decimal(before), Decimal(after)
        if old == new:
            return None
        share = ((new - old) / old * 100).quantize(Decimal("0.1"), ROUND_HALF_UP) if old else None
        text = self.money(abs(new - old))
        percent = "" if share is None else f"{self.number(abs(share), 1)} %"
        return Change("up" if new > old else "down", text, percent)

    def exact(self, moment: datetime | str | None) -> str:
        """Return the time in the account's zone, to the minute."""
        if moment is None:
            return UNKNOWN
        local = _moment(moment).astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"

    def ago(self, moment: datetime | str | None) -> str:
        """Return how long ago, or in how long, something is."""
        if moment is None:
            return "never"
        seconds = (self.now - _moment(moment)).total_seconds()
        past, seconds = seconds >= 0, abs(seconds)
        if seconds < 45:
            return "just now"
        for unit, most, name in _STEPS:
            count = round(seconds / unit)
            if count < most:
                return f"{count} {name} ago" if past else f"in {count} {name}"
        return f"{_moment(moment).astimezone(self.zone):%Y-%m-%d}"


@dataclass(frozen=True)
class Change:
    """`direction` is up or down; the signs are words for screen readers and arrows for eyes."""

    direction: str
    amount: str
    percent: str


def _moment(moment: datetime | str) -> datetime:
    read = clock.read_moment(moment) if isinstance(moment, str) else moment
    assert read is not None, moment
    return read


def language_of(accept_language: str | None) -> str:
    """Return the first language of the header, two letters; English if it names none."""
    first = (accept_language or "en").split(",")[0].split(";")[0].strip().lower()
    return first[:2] if first[:2].isascii() and first[:2].isalpha() else "en"


def game_name(product_line: str) -> str:
    """Return a product line as people write it: `flesh_and_blood` is Flesh And Blood."""
    return product_line.replace("_", " ").title()


def zone_of(name: str) -> tzinfo:
    return ZoneInfo(name)

"""Formats figures and times for a page in the reader's language and the account's time zone. Pure.

An amount is text or Decimal, never a float. An unknown value is shown as a dash, never as zero.
"""

from __future__ import annotations

import re
from calendar import month_name
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from cardsync.platform import clock

UNKNOWN = "–"
# Seconds below which a deadline is shown in hours, and days below which it is shown by its weekday.
_SHORTLY: Final = 48 * 3600
_WEEK: Final = 7
_CENT = Decimal("0.01")
# The separators of thousands and of decimals, by language; any other language has those of English.
_NARROW = "\u202f"
_MARKS = {
    "de": (".", ","), "nl": (".", ","), "es": (".", ","), "it": (".", ","), "pt": (".", ","),
    "da": (".", ","), "tr": (".", ","), "id": (".", ","), "fr": (_NARROW, ","),
    "pl": (_NARROW, ","), "cs": (_NARROW, ","), "sv": (_NARROW, ","), "nb": (_NARROW, ","),
    "fi": (_NARROW, ","), "ru": (_NARROW, ","), "uk": (_NARROW, ","),
}  # fmt: skip
_NEVER: Final = Markup('<span class="muted">never</span>')
_STEPS = ((60, 60, "min", "min"), (3600, 24, "hr", "hr"), (86_400, 45, "day", "days"))


# A date or a month that is not part of a timestamp, a number or a name.
_DAY = re.compile(r"(?<![\w-])20\d\d-\d\d(-\d\d)?(?![\w-])")
# Amounts in a sentence: numbers with decimals, but no percentages. Quoted names match first, so
# that they stay unchanged.
_AMOUNT = re.compile(r"“[^”]*”|(?<![\d.,$])\$?\d+\.\d{2,}(?![\d%]|\.\d)")

GAMES: Final = {
    "magic": "Magic: The Gathering",
    "yugioh": "Yu-Gi-Oh!",
    "pokemon": "Pokémon",
    "flesh_and_blood": "Flesh and Blood",
    "digimon": "Digimon",
    "one_piece": "One Piece",
    "lorcana": "Disney Lorcana",
    "star_wars_unlimited": "Star Wars: Unlimited",
    "dragon_ball_fusion_world": "Dragon Ball Super: Fusion World",
    "union_arena": "Union Arena",
    "pokemon_japan": "Pokémon Japan",
    "gundam": "Gundam",
    "riftbound": "Riftbound",
}


@dataclass(frozen=True)
class Reader:
    """The person at the browser: the first language of Accept-Language, the account's time zone,
    and the current time.
    """

    language: str
    zone: tzinfo
    now: datetime
    _times: dict[datetime | str, Markup] = field(default_factory=dict, init=False, compare=False)

    def number(self, value: int | Decimal | None, places: int = 0) -> str:
        if value is None:
            return UNKNOWN
        text = f"{value:,.{places}f}"
        marks = _MARKS.get(self.language)
        if marks is None:
            return text
        thousands, point = marks
        return text.replace(",", "\0").replace(".", point).replace("\0", thousands)

    def count(self, value: int, what: str) -> str:
        """Return a number with its noun; `what` is the noun's plural."""
        one = what.removesuffix("ies") + "y" if what.endswith("ies") else what.removesuffix("s")
        return f"{self.number(value)} {one if value == 1 else what}"

    def money(self, amount: Decimal | str | None) -> str:
        """Return dollars and cents. An amount under a cent is shown as less than a cent, not as
        zero.
        """
        if amount is None:
            return UNKNOWN
        value = Decimal(amount)
        sign = "−" if value < 0 else ""
        if 0 < abs(value) < _CENT:
            return f"{sign}<${self.number(_CENT, 2)}"
        return f"{sign}${self.number(abs(value).quantize(_CENT, ROUND_HALF_UP), 2)}"

    def marked_money(self, amount: Decimal | str | None) -> Markup:
        """Return money with its markup. A macro for it takes three times as long, and a page has
        hundreds.
        """
        return Markup(f'<span class="money">{escape(self.money(amount))}</span>')  # noqa: S704

    def round(self, amount: Decimal | str) -> str:
        """Return an amount as money, without the cents if they are zero: $1,000."""
        return self.money(amount).removesuffix(self.number(Decimal(0), 2)[1:])

    def less(self, amount: Decimal | str) -> str:
        """Return a deduction with a minus sign; zero has no sign."""
        return self.money(-Decimal(amount) or Decimal(0))

    def percent(self, share: Decimal | None, places: int = 1) -> str:
        """Return a percentage like 11.1%."""
        return UNKNOWN if share is None else f"{self.number(share, places)}%"

    def in_cents(self, sentence: str, *prices: str | None) -> str:
        """Return the explanation of a price with its amounts as money. An amount within a cent of
        one of `prices` is shown as that price.
        """
        became = [Decimal(price) for price in prices if price is not None]

        def cents(found: re.Match[str]) -> str:
            if found[0].startswith("“"):
                return found[0]
            amount = Decimal(found[0].lstrip("$"))
            return self.money(next((one for one in became if abs(amount - one) < _CENT), amount))

        return _AMOUNT.sub(cents, sentence)

    def estimate(self, amount: Decimal | str | None) -> str:
        """Return an estimate or a mean as money in whole cents, because more places would be false
        precision.
        """
        return self.money(None if amount is None else Decimal(amount).quantize(_CENT))

    def change(self, before: Decimal | str | None, after: Decimal | str | None) -> Change | None:
        """Return the change of an amount; None if either amount is unknown or both are equal."""
        if before is None or after is None:
            return None
        old, new = Decimal(before), Decimal(after)
        if old == new:
            return None
        share = ((new - old) / old * 100).quantize(Decimal("0.1"), ROUND_HALF_UP) if old else None
        text = self.money(abs(new - old))
        percent = "" if share is None else self.percent(abs(share))
        return Change("up" if new > old else "down", text, percent)

    def exact(self, moment: datetime | str | None) -> str:
        """Return a time in the account's zone, to the minute: November 24, 2026, 4:05 PM EST."""
        if moment is None:
            return UNKNOWN
        local = _moment(moment).astimezone(self.zone)
        return f"{self.day(local)}, {_hour(local)} {local.tzname()}"

    def marked_time(self, moment: datetime | str | None) -> Markup:
        """Return the time relative to now with its markup; its title is the exact time. The rows of
        a page often have the same time.
        """
        if not moment:
            return _NEVER
        if moment not in self._times:
            self._times[moment] = Markup(  # noqa: S704
                f'<time tabindex="-1" datetime="{escape(self.sent(moment))}"\n'
                f' title="{self.exact(moment)}">{self.ago(moment)}</time>'
            )
        return self._times[moment]

    def sent(self, moment: datetime | str) -> str:
        """Return a time in the format of the API's JSON."""
        return moment if isinstance(moment, str) else clock.rfc3339(moment)

    def weekday(self, moment: datetime | str) -> str:
        """Return a time in the account's zone, with its weekday: Fri, Nov 27, 4:05 PM."""
        local = _moment(moment).astimezone(self.zone)
        return f"{local:%a, %b} {local.day}, {_hour(local)}"

    def day(self, day: date | str | None) -> str:
        """Return a date: November 24, 2026."""
        if day is None:
            return UNKNOWN
        day = date.fromisoformat(day) if isinstance(day, str) else day
        return f"{month_name[day.month]} {day.day}, {day.year}"

    def days(self, first: date, last: date) -> str:
        """Return a range of dates: November 1 to 24, 2026."""
        if first == last:
            return self.day(first)
        if (first.year, first.month) == (last.year, last.month):
            return f"{first:%B} {first.day} to {last.day}, {last.year}"
        year = "" if first.year == last.year else f", {first.year}"
        return f"{first:%B} {first.day}{year} to {self.day(last)}"

    def short_day(self, day: date) -> str:
        """Return a date without its year: Thu, Nov 26."""
        return f"{day:%a, %b} {day.day}"

    def short_month(self, day: date) -> str:
        """Return a month in short form, for places where several months are side by
        side: Nov 2026.
        """
        return f"{day:%b} {day.year}"

    def month(self, day: date | str | None) -> str:
        """Return the month of a date, or of a text like 2026-10: October 2026."""
        if day is None:
            return UNKNOWN
        day = date.fromisoformat(f"{day}-01"[:10]) if isinstance(day, str) else day
        return f"{day:%B} {day.year}"

    def in_words(self, sentence: str) -> str:
        """Return a sentence with its dates and months in words: 2026-10 becomes October 2026."""

        def written(found: re.Match[str]) -> str:
            try:
                return self.day(found[0]) if found[1] else self.month(found[0])
            except ValueError:
                return found[0]

        return _DAY.sub(written, sentence)

    def game(self, product_line: str | None) -> str:
        """Return the game's name; empty if the product line is unknown."""
        return game_name(product_line or "")

    def short(self, condition: str | None) -> str:
        """Return a condition as sellers abbreviate it: Near Mint Foil is NM Foil."""
        text = condition or ""
        for words, letters in CONDITIONS.items():
            if text == words or text.startswith(f"{words} "):
                return f"{letters}{text.removeprefix(words)}"
        return text

    def status(self, status: str) -> str:
        """Return the status of an order or a pull in US English: the marketplace and the API may
        write `Cancelled`.
        """
        return status.replace("ncelled", "nceled")

    def clock_time(self, moment: datetime | str) -> str:
        """Return the time of day, preceded by the day unless it is today."""
        local, today = _moment(moment).astimezone(self.zone), self.now.astimezone(self.zone).date()
        time = _hour(local)
        if local.date() == today:
            return time
        year = "" if local.year == today.year else f", {local.year}"
        return f"{local:%B} {local.day}{year}, {time}"

    def left(self, deadline: datetime | str) -> str:
        """Return the time until a deadline: 22 min left, 5 hr left, by Friday, 3 hr late."""
        moment = _moment(deadline)
        seconds = (moment - self.now).total_seconds()
        minutes, hours = round(abs(seconds) / 60), round(abs(seconds) / 3600)
        if abs(seconds) >= _SHORTLY:
            local = moment.astimezone(self.zone)
            days = (local.date() - self.now.astimezone(self.zone).date()).days
            if seconds < 0:
                return f"{-days} days late"
            return f"by {local:%A}" if days < _WEEK else f"by {local:%B} {local.day}"
        span = f"{minutes} min" if minutes < 60 else f"{hours} hr"
        return f"{span} left" if seconds >= 0 else f"{span} late"

    def ago(self, moment: datetime | str | None) -> str:
        """Return the time since a moment, or until it."""
        if moment is None:
            return "never"
        seconds = (self.now - _moment(moment)).total_seconds()
        past, seconds = seconds >= 0, abs(seconds)
        if seconds < 45:
            return "just now" if past else "in a moment"
        for unit, most, one, many in _STEPS:
            count = round(seconds / unit)
            if count < most:
                long = f"{count} {one if count == 1 else many}"
                return f"{long} ago" if past else f"in {long}"
        return self.day(_moment(moment).astimezone(self.zone).date())


CONDITIONS: Final = {
    "Near Mint": "NM",
    "Lightly Played": "LP",
    "Moderately Played": "MP",
    "Heavily Played": "HP",
    "Damaged": "DMG",
}


@dataclass(frozen=True)
class Change:
    """A change of an amount. `direction` is up or down. `amount` and `percent` have no sign."""

    direction: str
    amount: str
    percent: str


def _hour(local: datetime) -> str:
    return f"{local.hour % 12 or 12}:{local.minute:02} {'AM' if local.hour < 12 else 'PM'}"


def _moment(moment: datetime | str) -> datetime:
    read = clock.read_moment(moment) if isinstance(moment, str) else moment
    assert read is not None, moment
    return read


def language_of(accept_language: str | None) -> str:
    """Return the first language of the header, two letters; English if it names none."""
    first = (accept_language or "en").split(",")[0].split(";")[0].strip().lower()
    return first[:2] if first[:2].isascii() and first[:2].isalpha() else "en"


def game_name(product_line: str) -> str:
    """Return a product line as its publisher writes it: `flesh_and_blood` is Flesh and Blood."""
    return GAMES.get(product_line) or product_line.replace("_", " ").title()


def zone_of(name: str) -> tzinfo:
    return ZoneInfo(name)

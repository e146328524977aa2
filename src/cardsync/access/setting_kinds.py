"""Defines the kinds of account settings: how each is stored, read from a text, and typed in the
API. Pure.

A reader raises ValueError with the format that the setting takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from sqlalchemy import Boolean, Integer, Text

from cardsync.platform.database.columns import Moment, Money
from cardsync.platform.kit import typed_numbers
from cardsync.platform.money import read_amount

PRODUCT: Final = "{marketplace_product_id}"
_LONGEST_TEMPLATE: Final = 500
_QUIET_HOURS: Final = r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d"


@dataclass(frozen=True)
class Kind:
    """`body` is the type in a change by the API, `answer` the type in its answers; `input` and
    `options` describe the form's field.
    """

    column: Any
    read: Callable[[str], object]
    body: Any
    answer: Any
    input: str = "text"
    options: tuple[tuple[str, str], ...] = ()


def _flag(value: str) -> bool:
    if value.lower() in ("true", "1", "yes", "on"):
        return True
    if value.lower() in ("false", "0", "no", "off"):
        return False
    raise ValueError("true or false")


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as e:
        raise ValueError("a moment like 2027-01-31T12:00:00Z, or nothing") from e
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _amount(value: str) -> Decimal:
    try:
        amount = read_amount(value)
    except ValueError as e:
        raise ValueError("an amount like 50.00") from e
    if amount < 0:
        raise ValueError("an amount like 50.00")
    return amount


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise ValueError("a time zone like America/New_York") from e
    return value


def quiet_hours(value: str) -> str:
    if not re.fullmatch(_QUIET_HOURS, value):
        raise ValueError("a span like 22:00-06:00, or nothing")
    return value


def listing_url_template(value: str) -> str:
    """Check a seller's template of a buyer's link to a listing, and return it."""
    text = value.strip()
    parts = urlsplit(text.replace(PRODUCT, "1"))
    if len(text) > _LONGEST_TEMPLATE or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an address like https://shop.example/product/{PRODUCT}, or nothing")
    if PRODUCT not in text or PRODUCT in (parts.netloc or ""):
        raise ValueError(f"an address that holds {PRODUCT}, or nothing")
    return text


def words(read: Callable[[str], str], form: str = "text") -> Kind:
    return Kind(Text, read, str, str, form)


def short(most: int) -> Kind:
    """Return the kind of a text of at most this many characters."""

    def read(value: str) -> str | None:
        if len(value.strip()) > most:
            raise ValueError(f"no more than {most} characters")
        return value.strip() or None

    return Kind(Text, read, str, str)


def whole(least: int, most: int, takes: str) -> Kind:
    def read(value: str) -> int:
        number = typed_numbers.whole(value, most, least)
        if number is None:
            raise ValueError(takes)
        return number

    return Kind(Integer, read, Annotated[int, msgspec.Meta(ge=least, le=most)], int)


def choice(**options: str) -> Kind:
    """Return the kind of one of these names, each with its label in a form."""

    def read(value: str) -> str:
        if value not in options:
            raise ValueError("one of " + ", ".join(options))
        return value

    named = Literal.__getitem__(tuple(options))
    return Kind(Text, read, named, named, "select", tuple(options.items()))


FLAG: Final = Kind(Boolean, _flag, bool, bool, "check")
AMOUNT: Final = Kind(Money, _amount, str | int | float, str)
MOMENT: Final = Kind(Moment, _moment, str, str)
TIME_ZONE: Final = words(_time_zone, "zone")

"""Declares `Printing` and `Broken`, which the readers of all sources yield for each record of a
file. `catalog/load_catalog.py` writes the printings and lists the broken records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from cardsync.platform.errors import CommandError
from cardsync.platform.value_types import JsonMapping


class CatalogError(CommandError):
    """The file is not a catalog; the message is one sentence."""


class Unfit(ValueError):
    """A record cannot be used; the message is the reason."""


class Printing(NamedTuple):
    """The columns of a catalog, in order. `product_id` is the marketplace's product id, and
    `picture_url` the URL of a picture of the card. The last columns are ids of other projects and
    marketplaces (`IDS`).
    """

    game: str
    set_name: str
    set_code: str | None
    product_name: str
    number: str | None
    rarity: str | None
    finish: str | None
    language: str
    product_id: int | None
    picture_url: str | None = None
    scryfall_id: str | None = None
    cardmarket_id: str | None = None
    cardtrader_id: str | None = None
    mtgjson_id: str | None = None


class Broken(NamedTuple):
    """A skipped record: a description of its place in the file, and the reason."""

    where: str
    reason: str


IDS: Final = ("scryfall_id", "cardmarket_id", "cardtrader_id", "mtgjson_id")
Record = JsonMapping
Found = Iterator[Printing | Broken]

# The sets, names and numbers of real cards are shorter.
_LONGEST = 500
_LONGEST_ID = 64


def text_in(record: Record, field: str) -> str:
    """Return a required text. Raises Unfit."""
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Unfit(f"{field} is missing")
    if len(value) > _LONGEST:
        raise Unfit(f"{field} is longer than {_LONGEST} characters")
    return value.strip()


def text_or_none(record: Record, field: str) -> str | None:
    """Return a text, or a number as text; None if the field is missing. Raises Unfit."""
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise Unfit(f"{field} is no text")
    return value.strip()


def part(record: Record, field: str) -> Record:
    """Return an object inside the record; empty if it is missing."""
    value = record.get(field)
    return value if isinstance(value, dict) else {}


def id_or_none(value: object) -> int | None:
    """Return a marketplace's id from a number or text; None for any other value."""
    digits = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def id_text(value: object) -> str | None:
    """Return an id of another project as text; None if it is missing."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    fits = isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST_ID
    return str(value).strip().lower() if fits else None


def address_or_none(value: object) -> str | None:
    """Return the URL of a picture; None if it is not a valid https URL."""
    fits = isinstance(value, str) and value.startswith("https://") and len(value) <= _LONGEST
    return str(value) if fits else None


def each(
    records: Iterable[object],
    printings: Callable[[Record], Iterable[Printing]],
    named: Callable[[Record], str],
) -> Found:
    """Yield the printings of each record, or a `Broken` with the reason if the record cannot be
    used.
    """
    for at, record in enumerate(records, 1):
        if isinstance(record, Broken):
            yield record
            continue
        if not isinstance(record, dict):
            yield Broken(f"record {at}", "it is no object")
            continue
        try:
            yield from list(printings(record))
        except Unfit as e:
            yield Broken(f"record {at} ({named(record) or 'without an id'})", str(e))
        except (TypeError, AttributeError, KeyError, ValueError) as e:
            # A field has another type than its source documents.
            yield Broken(f"record {at} ({named(record) or 'without an id'})", f"its form: {e}")


def named_by(*fields: str) -> Callable[[Record], str]:
    """Return a function that describes a record by its values of `fields`."""
    return lambda record: " ".join(str(record[field])[:80] for field in fields if field in record)

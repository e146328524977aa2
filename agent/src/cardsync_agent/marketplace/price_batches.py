"""Divides a price file into batches for the marketplace, and compares the sent rows with the
marketplace's own report and with the prices that it shows afterwards. Pure.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

import msgspec

from cardsync_agent.card_failures import records_of
from cardsync_agent.cells import read_amount, read_whole
from cardsync_agent.csv_records import Record, lines_of, records
from cardsync_agent.file_kinds import column

# Set, product, number and condition, which identify a card without an ID.
Names: TypeAlias = tuple[str, ...]
CANARY = 20
_ID, _PRICE, _ADDS = "TCGplayer Id", "TCG Marketplace Price", "Add to Quantity"
_QUANTITY = "Total Quantity"
_NAMES = ("Set Name", "Product Name", "Number", "Condition")


class Listed(msgspec.Struct, frozen=True):
    """A card as the marketplace shows it. None means that the card has no price, or that its
    quantity is not shown.
    """

    price: str | None
    quantity: int | None

    @property
    def amount(self) -> Decimal | None:
        return None if self.price is None else Decimal(self.price)


@dataclass(frozen=True)
class Row:
    """One line of a price file with its bytes. A new listing has no ID yet."""

    record: bytes = field(repr=False)
    id: int | None
    price: Decimal | None
    adds: int
    condition: str = ""
    names: Names = ()


@dataclass(frozen=True)
class Plan:
    """The files to import, in order. `gone` are cards that the marketplace no longer lists. With
    `has_canary` the first file has the smallest changes. Each file of `added` is one card whose
    stock is added by the marketplace's own form.
    """

    files: list[bytes]
    has_canary: bool
    gone: list[int]
    added: list[bytes] = field(default_factory=list)


def rows_of(content: bytes) -> tuple[bytes, list[Row]]:
    """Return the header's bytes and the rows. Raises KeyError if the ID column is missing."""
    header, *lines = list(records_of(content))
    names = [column(name) for name in _cells(header)]
    at = {name: names.index(column(name)) for name in _NAMES if column(name) in names}
    known = (_ID, _PRICE, _ADDS)
    places = {name: names.index(column(name)) for name in known if column(name) in names}
    at_id = places[_ID]
    rows = []
    for line in lines:
        cells = _cells(line)
        if not cells:
            continue
        number = read_whole(cells[at_id]) if at_id < len(cells) else None
        price = _amount(cells, places.get(_PRICE))
        given = [_text(cells, at.get(name)) for name in _NAMES]
        rows.append(Row(line, number, price, _adds(cells, places), given[-1], _names(given)))
    return header, rows


def listed_of(content: bytes) -> dict[int, Listed]:
    """Return the cards of an export, or of a list of single cards' prices."""
    found = {}
    for record in records(lines_of(content)):
        if not isinstance(record, Record):
            continue
        if (id := read_whole(record.get(column(_ID)))) is not None:
            price = read_amount(record.get(column(_PRICE)))
            quantity = read_whole(record.get(column(_QUANTITY)))
            found[id] = Listed(price if price and Decimal(price) else None, quantity)
    return found


def plan(
    content: bytes,
    shop: Mapping[int, Listed],
    most_rows: int | None,
    *,
    canary: bool,
    by_form: Mapping[Names, int] | None = None,
) -> Plan:
    """Split a price file into a plan. The canary has the rows with the smallest price changes; rows
    that add stock are not in it. `by_form` has the export's cards by their names if the marketplace
    has a form for new stock, and is None otherwise.
    """
    header, rows = rows_of(content)
    new = [row for row in rows if row.adds > 0 and row.price is not None]
    apart = {id(row): row.id or (by_form or {}).get(row.names) for row in new}
    apart = {key: card for key, card in apart.items() if card and by_form is not None}
    added = [_with_id(header, row, apart[id(row)]) for row in new if id(row) in apart]
    rows = [row for row in rows if id(row) not in apart]
    gone = [row.id for row in rows if row.id is not None and row.id not in shop and not row.adds]
    kept = [row for row in rows if row.id is None or row.id in shop or row.adds]
    first = _smallest(kept, shop) if canary and len(kept) > CANARY else []
    if not first and canary and len(kept) > CANARY:
        first = [row for row in kept if not row.adds][:CANARY]
    chosen = set(map(id, first))
    rest = [row for row in kept if id(row) not in chosen]
    most = most_rows or max(len(rest), 1)
    parts = [first] if first else []
    parts += [rest[at : at + most] for at in range(0, len(rest), most)]
    files = [_file(header, part) for part in parts if part]
    return Plan(files, bool(first), gone, added)


def cards_by_name(export: bytes) -> dict[Names, int]:
    """Return the cards of an export by their names, without names that several cards share."""
    found: dict[Names, int] = {}
    several: set[Names] = set()
    for record in records(lines_of(export)):
        id = read_whole(record.get(column(_ID))) if isinstance(record, Record) else None
        if id is not None and isinstance(record, Record):
            names = _names([record.get(column(name)) or "" for name in _NAMES])
            several |= {names} & found.keys()
            found[names] = id
    return {names: id for names, id in found.items() if names not in several}


def _names(given: Sequence[str]) -> Names:
    return tuple(" ".join(name.split()).casefold() for name in given)


def _with_id(header: bytes, row: Row, card: int | None) -> bytes:
    """Return a file of one row with its card's ID."""
    out = io.StringIO(newline="")
    cells = _cells(row.record)
    cells[[column(name) for name in _cells(header)].index(column(_ID))] = str(card)
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(cells)
    return header + out.getvalue().encode()


def joined(files: Sequence[bytes]) -> bytes:
    """Join several price files with the same header into one."""
    header = rows_of(files[0])[0]
    return _file(header, (row for file in files for row in rows_of(file)[1]))


def _smallest(rows: Sequence[Row], shop: Mapping[int, Listed]) -> list[Row]:
    measured = [
        (abs(row.price - card.amount), row)
        for row, _, card in _with_cards(rows, shop)
        if row.price is not None and card.amount is not None and not row.adds
        and row.price != card.amount
    ]  # fmt: skip
    measured.sort(key=lambda pair: pair[0])
    return [row for _, row in measured[:CANARY]]


def _with_cards(
    rows: Iterable[Row], shop: Mapping[int, Listed]
) -> Iterator[tuple[Row, int, Listed]]:
    """Yield the rows whose cards the marketplace lists, with ID and card."""
    for row in rows:
        if row.id is not None and (card := shop.get(row.id)) is not None:
            yield row, row.id, card


def _file(header: bytes, rows: Iterable[Row]) -> bytes:
    return b"".join([header, *(row.record for row in rows)])


def refused_of(report: bytes) -> dict[int, str]:
    """Return the reasons of the cards in the marketplace's import report."""
    found = {}
    for record in records(lines_of(report)):
        if isinstance(record, Record) and (id := read_whole(record.get(column(_ID)))) is not None:
            found[id] = record.get(column("Reason"))[:300] or "the marketplace refused it"
    return found


def largest_moves(content: bytes, shop: Mapping[int, Listed], most: int | None) -> list[int]:
    """Return the `most` cards of a file with the largest price changes; with None, all cards with a
    price.
    """
    moves = [
        (abs(row.price - (card.amount or Decimal(0))), id)
        for row, id, card in _with_cards(rows_of(content)[1], shop)
        if row.price is not None
    ]
    return [id for _, id in sorted(moves, reverse=True)[:most]]


def differing(
    content: bytes, shown: Mapping[int, Listed]
) -> list[tuple[int, Decimal, Decimal | None]]:
    """Return the cards that the marketplace shows with another price than the file has: Each has
    ID, sent price and shown price. Cards that the marketplace does not show are omitted.
    """
    return [
        (id, row.price, card.amount)
        for row, id, card in _with_cards(rows_of(content)[1], shown)
        if row.price is not None and card.amount != row.price
    ]


def cards_of(content: bytes, shop: Mapping[int, Listed]) -> dict[int, Listed]:
    """Return the cards of a file as the marketplace shows them."""
    return {id: card for _, id, card in _with_cards(rows_of(content)[1], shop)}


def was_published(
    content: bytes, before: Mapping[int, Listed], after: Mapping[int, Listed]
) -> bool | None:
    """Return whether the marketplace shows that a file was published, by the cards that it changes.
    Return None if the cards disagree, or if no card gives evidence.
    """
    told = {
        _has_come(row, card, after[id])
        for row, id, card in _with_cards(rows_of(content)[1], before)
        if id in after and _is_change(row, card)
    }
    return told.pop() if len(told) == 1 else None


def adds_stock(content: bytes) -> bool:
    """Return whether importing the file twice would do harm, because it adds to quantities."""
    return any(row.adds for row in rows_of(content)[1])


def _is_change(row: Row, was: Listed) -> bool:
    return bool(row.adds) or (row.price is not None and row.price != was.amount)


def _has_come(row: Row, was: Listed, now: Listed) -> bool | None:
    if row.adds:
        # An unchanged quantity proves nothing: copies may have sold since.
        expected = None if was.quantity is None else was.quantity + row.adds
        return True if expected is not None and now.quantity == expected else None
    came, left = now.amount == row.price, now.amount == was.amount
    return came if came != left else None


def _cells(record: bytes) -> list[str]:
    text = record.decode("utf-8-sig", "replace")
    return next(csv.reader(io.StringIO(text, newline="")), [])


def _amount(cells: list[str], at: int | None) -> Decimal | None:
    text = read_amount(cells[at]) if at is not None and at < len(cells) else None
    return None if text is None else Decimal(text)


def _text(cells: list[str], at: int | None) -> str:
    return cells[at].strip() if at is not None and at < len(cells) else ""


def _adds(cells: list[str], places: Mapping[str, int]) -> int:
    at = places.get(_ADDS)
    text = cells[at].strip() if at is not None and at < len(cells) else ""
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else 0

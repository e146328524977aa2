"""Reads the cells of a collection's rows into one frame, and reports each row that cannot be read
with its line, column and reason. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl

from cardsync.buying.collections.collection_text import Cells
from cardsync.buying.collections.file_formats import Recognized
from cardsync.catalog.condition import CODES, LANGUAGES, PRINTINGS, read_condition
from cardsync.catalog.product_lines import LINES, NAMES

MOST_COPIES: Final = 100_000
_TEXT_CHARACTERS: Final = 300
_SHOWN: Final = 60


class RejectedRow(msgspec.Struct):
    """`column` is the file's own name of it; it is empty where the whole row cannot be read."""

    line: int
    column: str
    reason: str


class ReadRows(NamedTuple):
    """`frame` has a row for each card: `row` (its line in the file) and ROW_TEXTS. `empty` counts
    rows of no copies.
    """

    frame: pl.DataFrame
    rejected: list[RejectedRow]
    empty: int


SCHEMA: Final[dict[str, Any]] = {
    "row": pl.Int64,
    "copies": pl.Int64,
    "name": pl.String,
    "set_name": pl.String,
    "set_code": pl.String,
    "number": pl.String,
    "finish": pl.String,
    "condition": pl.String,
    "language": pl.String,
    "game": pl.String,
    "sku": pl.Int64,
    "listing_id": pl.Int64,
    "scryfall_id": pl.String,
}


class _Unreadable(Exception):
    """The cell's reason."""


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


# Conditions as apps write them. The European grades between Near Mint and Played follow what shops
# in the United States take them for; the counter corrects a grade when the cards are counted.
_CONDITIONS: Final = {_squeezed(label): code for label, code in CODES.items() if code != "U"} | {
    "": "NM",
    "nm": "NM",
    "m": "NM",
    "mint": "NM",
    "nmm": "NM",
    "ex": "LP",
    "excellent": "LP",
    "lp": "LP",
    "sp": "LP",
    "lightplayed": "LP",
    "slightlyplayed": "LP",
    "goodlightlyplayed": "LP",
    "good": "MP",
    "gd": "MP",
    "mp": "MP",
    "moderateplayed": "MP",
    "mediumplayed": "MP",
    "played": "HP",
    "pl": "HP",
    "hp": "HP",
    "heavyplayed": "HP",
    "poor": "DMG",
    "po": "DMG",
    "dm": "DMG",
    "d": "DMG",
    "dmg": "DMG",
}
_FINISHES: Final = {_squeezed(name): name for name in PRINTINGS} | {
    **dict.fromkeys(("", "no", "false", "0", "n", "nonfoil", "regular", "nofoil"), "Normal"),
    **dict.fromkeys(("yes", "true", "1", "y", "x", "etched", "foiletched", "etchedfoil"), "Foil"),
    "glossy": "Foil",
    "coldfoil": "Foil",
    "holo": "Holofoil",
    "reverseholo": "Reverse Holofoil",
}
_LANGUAGES: Final = (
    {_squeezed(name): name for name in LANGUAGES}
    | {code: name for name, code in reversed(LANGUAGES.items())}
    | {
        "": "English",
        "jp": "Japanese",
        "kr": "Korean",
        "cn": "Simplified Chinese",
        "cs": "Simplified Chinese",
        "ct": "Traditional Chinese",
        "tw": "Traditional Chinese",
        "zhcn": "Simplified Chinese",
        "zhtw": "Traditional Chinese",
        "sp": "Spanish",
        "ge": "German",
        "portuguesebrazil": "Portuguese",
    }
)
_GAMES: Final = (
    {_squeezed(line.label): line.name for line in LINES}
    | {_squeezed(name): name for name in NAMES}
    | {
        "": "",
        "magicthegathering": "magic",
        "mtg": "magic",
        "onepiece": "one_piece",
        "fleshandblood": "flesh_and_blood",
        "digimon": "digimon",
        "starwarsunlimited": "star_wars_unlimited",
        "dragonballfusionworld": "dragon_ball_fusion_world",
        "gundam": "gundam",
        "riftbound": "riftbound",
        "pokemonjapanese": "pokemon_japan",
    }
)


def _known(table: dict[str, str], needed: str) -> Callable[[str], str]:
    def read(cell: str) -> str:
        found = table.get(_squeezed(cell))
        if found is None:
            raise _Unreadable(f"{cell[:_SHOWN]!r} is not a known {needed}")
        return found

    return read


def _copies(cell: str) -> int:
    plain = cell.strip().lower().removesuffix("x").removeprefix("x").replace(",", "").strip()
    whole, _, part = plain.partition(".")
    if not whole.isascii() or not whole.isdecimal() or part.strip("0"):
        raise _Unreadable(f"must be a whole number, not {cell[:_SHOWN]!r}")
    count = int(whole[:12])
    if count > MOST_COPIES:
        raise _Unreadable(f"must be at most {MOST_COPIES:,}")
    return count


def _text(cell: str) -> str:
    plain = " ".join(cell.split())
    if len(plain) > _TEXT_CHARACTERS:
        raise _Unreadable(f"has more than {_TEXT_CHARACTERS} characters")
    return plain


def _name(cell: str) -> str:
    if not cell.strip():
        raise _Unreadable("is empty")
    return _text(cell)


def _id(cell: str) -> int | None:
    """An id helps to find a card; one that cannot be read leaves the other columns to find it."""
    plain = cell.strip().removesuffix(".0")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < 19 else None


def _scryfall_id(cell: str) -> str:
    return cell.strip().lower()


def _grade(cell: str) -> str:
    if _squeezed(cell) not in ("", "ungraded", "raw", "none"):
        raise _Unreadable(f"{cell[:_SHOWN]!r} is a graded card, which no buy rule values")
    return ""


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "copies": _copies,
    "name": _name,
    "set_name": _text,
    "set_code": _text,
    "number": _text,
    "finish": _known(_FINISHES, "finish"),
    "condition": _known(_CONDITIONS, "condition"),
    "language": _known(_LANGUAGES, "language"),
    "game": _known(_GAMES, "game"),
    "grade": _grade,
    "sku": _id,
    "listing_id": _id,
    "scryfall_id": _scryfall_id,
}
# A file that lacks these columns means the commonest card.
_ABSENT: Final[dict[str, Any]] = {
    "copies": 1,
    "finish": "Normal",
    "condition": "NM",
    "language": "English",
    "sku": None,
    "listing_id": None,
}


def read_rows(rows: Sequence[Cells], found: Recognized, header: Sequence[str]) -> ReadRows:
    """Read the rows of a file whose columns are known. A row with a cell that cannot be read is
    rejected whole.
    """
    whole = [row for row in rows if not row.fault]
    rejected = {row.line: RejectedRow(row.line, "", row.fault) for row in rows if row.fault}
    lines = [row.line for row in whole]
    columns: dict[str, list[Any]] = {}
    for field, at in found.columns.items():
        if field not in _READ:
            continue
        label = field == "condition" and found.key == "pricing_export"
        read = _of_label if label else _READ[field]
        cells = [row.cells[at] for row in whole]
        values, faults = _distinct(cells, read)
        columns[field] = list(map(values.get, cells))
        name = header[at] if at < len(header) else field
        if faults:
            for line, cell in zip(lines, cells, strict=True):
                if cell in faults:
                    rejected.setdefault(line, RejectedRow(line, name, faults[cell]))
    frame = _frame(lines, columns, rejected, found)
    empty = frame.filter(pl.col("copies") == 0).height
    in_order = [rejected[line] for line in sorted(rejected)]
    return ReadRows(frame.filter(pl.col("copies") > 0), in_order, empty)


def _distinct(
    cells: Iterable[str], read: Callable[[str], Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read each distinct cell once: a file has few conditions and sets. Return the values, and the
    reasons of what cannot be read.
    """
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for cell in set(cells):
        try:
            values[cell] = read(cell)
        except _Unreadable as e:
            faults[cell] = str(e)
    return values, faults


def _frame(
    lines: list[int],
    columns: dict[str, list[Any]],
    rejected: Mapping[int, RejectedRow],
    found: Recognized,
) -> pl.DataFrame:
    """Return the rows that are not rejected, with what the file leaves out."""
    kept = {"row": lines, **columns}
    if rejected:
        good = [line not in rejected for line in lines]
        kept = {field: list(compress(values, good)) for field, values in kept.items()}
    if found.key == "pricing_export" and "condition" in kept:
        # The marketplace writes condition, finish and language as one text.
        labels = kept["condition"]
        kept |= {name: [label[name] for label in labels] for name in _OF_LABEL}
    absent = {
        field: pl.lit(_ABSENT.get(field, ""), kind)
        for field, kind in SCHEMA.items()
        if field not in kept
    }
    known = {field: kept[field] for field in SCHEMA if field in kept}
    frame = pl.DataFrame(known, schema={field: SCHEMA[field] for field in known})
    frame = frame.with_columns(**absent).select(*SCHEMA)
    return frame.with_columns(game=pl.lit(found.game)) if found.game else frame


_OF_LABEL: Final = ("condition", "finish", "language")


def _of_label(cell: str) -> dict[str, str]:
    label = read_condition(cell)
    if label.code is None or label.code == "U":
        raise _Unreadable(f"{cell[:_SHOWN]!r} is not the condition of a single card")
    return {"condition": label.code, "finish": label.printing, "language": label.language}

"""Parses the cells of a collection's rows into one frame. A row that is unreadable or has an
unknown word waits for a choice, with its text and the reason; a proxy is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl

from cardsync.buying.collections.app_words import (
    NOT_FOIL,
    SHOWN,
    Condition,
    UnknownWord,
    condition_of,
    finish_of,
    game_of,
    ladder_of,
    language_of,
    own_words,
    squeezed,
)
from cardsync.buying.collections.file_formats import BY_KEY, Format, Mapped, Recognized
from cardsync.platform.table_text import Row, typed_whole
from cardsync.platform.value_types import FrameSchema

MOST_COPIES: Final = 100_000
_TEXT_CHARACTERS: Final = 300
_ROW_CHARACTERS: Final = 500


class RejectedRow(msgspec.Struct):
    """A row that can't be read as a card. `column` is empty if the whole row is unreadable."""

    line: int
    column: str
    reason: str


class ReadRows(NamedTuple):
    """The rows of a file. `frame` has a row for each card, with the columns of SCHEMA and KEPT.
    Rows in `rejected` can't be read as a card, and wait with their text. `empty` is the number of
    lines without copies.
    """

    frame: pl.DataFrame
    rejected: list[RejectedRow]
    empty: int


# The columns that identify a card. `row` is the number of its line. If a line has two cards, `row`
# of the second card is a number after the last line.
SCHEMA: Final[FrameSchema] = {
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
    "cardmarket_id": pl.Int64,
    "cardtrader_id": pl.Int64,
    "mtgjson_id": pl.String,
}
# Further columns: the line, whether and why a row waits or is left out, an unreadable row's text.
KEPT: Final[FrameSchema] = {
    "line": pl.Int64,
    "left_out": pl.Boolean,
    "reason": pl.String,
    "text": pl.String,
}
# The values of these columns for files that lack them.
_ABSENT: Final[dict[str, object]] = {
    "copies": 1,
    "foil_copies": 0,
    "condition": "NM",
    "sku": None,
    "listing_id": None,
    "cardmarket_id": None,
    "cardtrader_id": None,
    "proxy": False,
    "grade": False,
}
_TYPES: Final = (
    dict.fromkeys(("variation", "of_finish", "of_language"), pl.String)
    | {"foil_copies": pl.Int64, "proxy": pl.Boolean, "grade": pl.Boolean}
    | {name: kind for name, kind in SCHEMA.items() if name != "row"}
)
_NO: Final = frozenset({"", "false", "no", "0", "n", "none", "ungraded", "raw"})
_LEFT_OUT: Final = {"proxy": "a proxy", "grade": "a graded card; buy rules don't price those"}
_SEVERAL: Final = re.compile(r"\s*\d+x[^,]+,\s*\d+x", re.IGNORECASE)
_PART: Final = re.compile(r"(\d+)x\s*([^,]+?)\s*(?:,|$)", re.IGNORECASE)
# Other columns may mark a proxy, as in "Proxy", "Foil (Proxy)" or "Black Lotus [Proxy]".
_PROXY: Final = re.compile(r"\b(?:prox(?:y|ies|ied)|counterfeit|fake)\b", re.IGNORECASE).search
_NAMED_PROXY: Final = re.compile(
    r"[(\[][^)\]]*\bprox(?:y|ied)\b[^)\]]*[)\]]|\s[-–]\s+proxy$", re.IGNORECASE
).search
_SAYS_PROXY: Final[Mapping[str, Callable[[str], object]]] = {
    "condition": _PROXY,
    "finish": _PROXY,
    "name": _NAMED_PROXY,
}
# A number that contains the set's code and further values, such as "OGN-154-Foil".
_WITH_CODE: Final = r"^([A-Za-z0-9]+)-([0-9]+[A-Za-z*]?)(?:-.*)?$"


_SAYING: Final = (
    "name",
    "sku",
    "listing_id",
    "scryfall_id",
    "cardmarket_id",
    "cardtrader_id",
    "mtgjson_id",
    "set_code",
    "number",
)


class _Unreadable(Exception):
    """A cell that a card needs and that is unreadable. The message is the reason."""


def _copies(cell: str, decimal: str) -> int:
    try:
        count = typed_whole(cell.strip().lower().removesuffix("x").removeprefix("x"), decimal)
    except ValueError:
        raise _Unreadable(f"must be a whole number, not {cell[:SHOWN]!r}") from None
    if count > MOST_COPIES:
        raise _Unreadable(f"must be at most {MOST_COPIES:,}")
    return count


def _text(cell: str) -> str:
    plain = " ".join(cell.split())
    if len(plain) > _TEXT_CHARACTERS:
        raise _Unreadable(f"has more than {_TEXT_CHARACTERS} characters")
    return plain


def _id(cell: str) -> int | None:
    """Return a card's ID, or None for an unreadable cell: other columns identify the card then."""
    try:
        number = typed_whole(cell)
    except ValueError:
        return None
    return number if number < 10**18 else None


def _uuid(cell: str) -> str:
    return cell.strip().lower()


_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("name", "set_name", "set_code", "number", "variation"), _text),
    "game": game_of,
    **dict.fromkeys(("sku", "listing_id", "cardmarket_id", "cardtrader_id"), _id),
    **dict.fromkeys(("scryfall_id", "mtgjson_id"), _uuid),
}


class _Problems(NamedTuple):
    """The problems of rows by index: the first unknown word, and the reason why a row is no
    card.
    """

    words: dict[int, str]
    broken: dict[int, tuple[str, str]]


def read_rows(
    rows: Sequence[Row], found: Recognized, header: Sequence[str], decimal: str = "."
) -> ReadRows:
    """Parse the rows of a file. `decimal` is the file's decimal separator."""
    app = BY_KEY.get(found.key)
    rows = _apart(rows, found.columns)
    problems = _Problems({}, {at: ("", row.fault) for at, row in enumerate(rows) if row.fault})
    columns = _columns(rows, found, header, app, problems, decimal)
    _mark_rows_without_a_card(rows, columns, found, header, problems)
    reasons = problems.words | {
        at: f"{name}: {reason}" if name else reason
        for at, (name, reason) in problems.broken.items()
    }
    names = columns.get("name", [""] * len(rows))
    frame = pl.DataFrame(columns, schema={name: _TYPES[name] for name in columns}).with_columns(
        line=pl.Series([row.line for row in rows], dtype=pl.Int64),
        reason=pl.Series([reasons.get(at, "") for at in range(len(rows))], dtype=pl.String),
        text=pl.Series(
            [
                _said(row) if at in reasons or not name else ""
                for at, (row, name) in enumerate(zip(rows, names, strict=True))
            ],
            dtype=pl.String,
        ),
    )
    whole = _whole(frame, found.game, app)
    empty = whole.filter((pl.col("copies") == 0) & (pl.col("foil_copies") == 0)).height
    in_order = sorted(problems.broken.items())
    rejected = [RejectedRow(rows[at].line, *problem) for at, problem in in_order]
    return ReadRows(_lines(whole), rejected, empty)


def _apart(rows: Sequence[Row], columns: Mapped) -> Sequence[Row]:
    """Split a row with several conditions or languages in one cell ("1xGood,2xPlayed") into one row
    for each, unless the copies in the cell do not add up to the row's copies.
    """
    counts = [at for field in ("copies", "foil_copies") for at in columns.get(field, ())]
    several = [columns[field][-1] for field in ("condition", "language") if field in columns]
    if not any(_SEVERAL.match(row.cells[at]) for at in several for row in rows if not row.fault):
        return rows
    return [part for row in rows for part in _parts_of(row, counts, several)]


def _parts_of(row: Row, counts: Sequence[int], several: Sequence[int]) -> Iterator[Row]:
    lists = [at for at in several if not row.fault and _SEVERAL.match(row.cells[at])]
    given = [at for at in counts if not row.fault and row.cells[at].strip() not in ("", "0")]
    if len(lists) == len(given) == 1:
        [its_list], [its_count] = lists, given
        parts = _PART.findall(row.cells[its_list])
        if row.cells[its_count].strip() == str(sum(int(copies) for copies, _ in parts)):
            for copies, word in parts:
                cells = list(row.cells)
                cells[its_count], cells[its_list] = copies, word
                yield Row(row.line, cells)
            return
    yield row


def _columns(
    rows: Sequence[Row],
    found: Recognized,
    header: Sequence[str],
    app: Format | None,
    problems: _Problems,
    decimal: str,
) -> dict[str, list[Any]]:
    """Return the values of the rows by field name. Unknown words stay unchanged."""
    columns: dict[str, list[Any]] = {}
    proxies: set[int] = set()
    blank = [""] * (max(map(max, found.columns.values())) + 1)
    table = [blank if row.fault else row.cells for row in rows]
    for field, places in found.columns.items():
        name = header[places[0]] if places[0] < len(header) else field
        if field in ("copies", "foil_copies"):
            alone = "foil_copies" not in found.columns and len(places) == 1
            columns[field] = _counted(table, places, name, problems, decimal, alone)
            continue
        written = _written(table, places)
        if field in _SAYS_PROXY and (fakes := set(filter(_SAYS_PROXY[field], set(written)))):
            proxies.update(at for at, cell in enumerate(written) if cell in fakes)
            if field != "name":
                written = ["" if cell in fakes else cell for cell in written]
        read = _reader(field, name, written, app)
        if read is None:
            continue
        values, unknown, faults = _distinct(written, read)
        if unknown or faults:
            for at, cell in enumerate(written):
                if cell in unknown:
                    problems.words.setdefault(at, f"{name}: {unknown[cell]}")
                elif cell in faults:
                    problems.broken.setdefault(at, (name, faults[cell]))
        if field == "condition":
            said = {cell: _labels(value) for cell, value in values.items()}
            for place, part in enumerate(("condition", "of_finish", "of_language")):
                columns[part] = [said[cell][place] for cell in written]
        else:
            columns[field] = list(map(values.get, written))
    if proxies:
        flagged = columns.get("proxy", [False] * len(rows))
        columns["proxy"] = [one or at in proxies for at, one in enumerate(flagged)]
    return columns


def _labels(said: Condition | str) -> Condition:
    return said if isinstance(said, Condition) else Condition(said)


def _written(table: Sequence[Sequence[str]], places: Sequence[int]) -> list[str]:
    """Return the cells of a field. Of several columns, a row's first non-empty cell is used."""
    found = [cells[places[-1]] for cells in table]
    for at in reversed(places[:-1]):
        found = [
            cells[at] if cells[at].strip() else cell
            for cells, cell in zip(table, found, strict=True)
        ]
    return found


def _counted(
    table: Sequence[Sequence[str]],
    places: Sequence[int],
    name: str,
    problems: _Problems,
    decimal: str,
    alone: bool,
) -> list[int]:
    """Return the copies of each row. An unreadable number counts as 1 until a member corrects it. A
    blank cell means 0 copies, but is unreadable if `alone` (no other column has copies).
    """
    counts = [0] * len(table)
    for place in places:
        written = [cells[place] for cells in table]
        values, _, faults = _distinct(written, partial(_copies, decimal=decimal))
        for at, cell in enumerate(written):
            if cell in values:
                counts[at] += values[cell]
            elif at in problems.broken:
                counts[at] = 1
            elif cell.strip() or alone:
                problems.broken[at] = (name, faults[cell])
                counts[at] = 1
    return counts


def _own_finishes(app: Format | None, name: str) -> dict[str, str]:
    """Return the app's own words for finishes. If the file's format is unknown, a blank cell in a
    column named foil means that the card is not a foil.
    """
    if app:
        return own_words(app.finishes)
    return {"": "Normal"} if "foil" in name.casefold() else {}


def _reader(
    field: str, name: str, written: Sequence[str], app: Format | None
) -> Callable[[str], object] | None:
    if field == "condition":
        ladder = app.ladder if app else ladder_of(set(written))
        return partial(condition_of, ladder=ladder, own=own_words(app.conditions) if app else {})
    if field == "finish":
        return partial(finish_of, own=_own_finishes(app, name))
    if field == "language":
        return partial(language_of, own=own_words(app.languages) if app else {})
    if field in _LEFT_OUT:
        return lambda cell: squeezed(cell) not in _NO
    return _READ.get(field)


def _distinct(
    cells: Sequence[str], read: Callable[[str], object]
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Parse each distinct cell once, because a file has few different conditions and sets. Return
    the values, the reasons for unknown words, and the reasons for unreadable cells, each by cell.
    """
    values: dict[str, object] = {}
    unknown: dict[str, str] = {}
    faults: dict[str, str] = {}
    for cell in set(cells):
        try:
            values[cell] = read(cell)
        except UnknownWord as e:
            values[cell], unknown[cell] = " ".join(cell.split())[:SHOWN], str(e)
        except _Unreadable as e:
            faults[cell] = str(e)
    return values, unknown, faults


def _mark_rows_without_a_card(
    rows: Sequence[Row],
    columns: Mapping[str, list[object]],
    found: Recognized,
    header: Sequence[str],
    problems: _Problems,
) -> None:
    """Mark rows that identify no card: a row needs a name, an ID, or a set's code and a number."""
    nothing = [""] * len(rows)
    said = zip(*(columns.get(field, nothing) for field in _SAYING), strict=True)
    place = found.columns.get("name")
    name = header[place[0]] if place and place[0] < len(header) else ""
    for at, (*ids, code, number) in enumerate(said):
        if not any(ids) and not (code and number):
            problems.broken.setdefault(at, (name, "is empty" if name else "has no card name"))


def _said(row: Row) -> str:
    return " | ".join(cell.strip() for cell in row.cells if cell.strip())[:_ROW_CHARACTERS]


def _whole(frame: pl.DataFrame, game: str, app: Format | None) -> pl.DataFrame:
    """Add the columns that the file lacks, and correct values that depend on several columns."""
    counted_apart = "foil_copies" in frame.columns
    absent = _ABSENT | {"finish": _own_finishes(app, "").get("", "")}
    frame = frame.with_columns(
        pl.lit(absent.get(field, ""), kind).alias(field)
        for field, kind in _TYPES.items()
        if field not in frame.columns
    ).with_columns(pl.col(pl.String).fill_null(""))
    if counted_apart:
        # If foils have a column of their own, the copies in the other column are not foils.
        frame = frame.with_columns(pl.col("finish").replace("", "Normal"))
    plain = pl.col("finish").is_in(("", "Normal", NOT_FOIL))
    by_label = plain & (pl.col("of_finish") != "")
    varied = pl.col("variation")
    numbered = (pl.col("number") == "") & varied.str.contains(r"^[0-9]+[A-Za-z]?$")
    named = (pl.col("number") == "") & (varied != "") & ~numbered
    frame = frame.with_columns(
        finish=pl.when(by_label).then("of_finish").otherwise("finish"),
        language=pl.coalesce(
            pl.when(pl.col(name) != "").then(name) for name in ("language", "of_language")
        ).fill_null("English"),
        # Spreadsheets turn the number "222" into "222.0".
        number=pl.when(numbered)
        .then(varied)
        .otherwise(pl.col("number").str.replace(r"^([0-9]+)\.0+$", "${1}")),
        name=pl.when(named).then(pl.format("{} ({})", "name", varied)).otherwise("name"),
        game=pl.lit(game) if game else pl.col("game"),
        left_out=pl.col("proxy") | pl.col("grade"),
        reason=pl.coalesce(
            *(pl.when(field).then(pl.lit(why)) for field, why in _LEFT_OUT.items()), "reason"
        ),
    )
    if app and app.number_holds_code:
        code = pl.col("number").str.extract(_WITH_CODE, 1)
        frame = frame.with_columns(
            number=pl.coalesce(pl.col("number").str.extract(_WITH_CODE, 2), "number"),
            set_code=pl.when(pl.col("set_code") == "")
            .then(code.fill_null(""))
            .otherwise("set_code"),
        )
    return frame


def _lines(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each card. A line with regular and foil copies, or with copies in two
    conditions, has two cards.
    """
    behind = pl.int_range(pl.len(), dtype=pl.Int64) + (frame["line"].max() or 0) + 1
    first = pl.col("line").is_first_distinct()
    frame = frame.with_columns(behind=behind, row=pl.when(first).then("line").otherwise(behind))
    foils = frame.with_columns(
        copies="foil_copies",
        finish=pl.when(pl.col("finish") == "Normal").then(pl.lit("Foil")).otherwise("finish"),
        row=pl.when(pl.col("copies") == 0).then("row").otherwise("behind"),
    )
    both = [frame, foils]
    kept = [one.filter(pl.col("copies") > 0).select(*SCHEMA, *KEPT) for one in both]
    return pl.concat(kept).sort("line", "row")

"""Checks the JSON of an order-data upload, and reads it into a data frame with one typed row per
key, and a list of unreadable values. Pure.

An absent field differs from a null: a field that only some rows contain has an additional column
`has_<field>`, and a field that no row contains has no column. An unreadable value counts as absent
and is reported with row, column, code and reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from cardsync.catalog.app_files import app_of
from cardsync.catalog.product_lines import NAME_BY_LABEL, NAMES
from cardsync.platform import errors, limits
from cardsync.platform.file_kinds import kind_in
from cardsync.platform.read_json import not_json
from cardsync.platform.table_text import HEAD_BYTES, NotATable, lines_of
from cardsync.platform.value_types import JsonObject
from cardsync.sales.errors import EmptyPayload, InvalidJson
from cardsync.sales.limits import BUYER_NAME_CHARACTERS, ORDER_NUMBER_CHARACTERS, STATUS_CHARACTERS
from cardsync.sales.orders import cells
from cardsync.sales.orders.cells import Column

_TEXT = cells.texts()
_AMOUNT = cells.amounts()
_REFUNDED = cells.amounts_from_zero()
_COUNT = cells.whole("integer", 0, 2**31 - 1)
# Indexes contain the buyer's name and the status, so their length is limited.
_BUYER = cells.texts(BUYER_NAME_CHARACTERS)
_WORD = cells.texts(STATUS_CHARACTERS)
_ORDER = {
    "buyer_name": _BUYER,
    "order_date": cells.each("date", "bad_date", "not a date", cells.read_date),
    "status": _WORD,
    "product_amt": _AMOUNT,
    "shipping_amt": _AMOUNT,
    "total_amt": _AMOUNT,
}
KINDS: Mapping[str, Mapping[str, Column]] = {
    "orders": {
        **_ORDER,
        "order_placed_at": cells.each(
            "timestamptz",
            "bad_date",
            "not a time like 2026-07-03T12:00:00Z",
            cells.read_moment,
        ),
    },
    "refunds": {
        **_ORDER,
        **dict.fromkeys(("product_amt", "shipping_amt", "total_amt"), _REFUNDED),
        "refund_type": cells.each(
            "text", "bad_type", "not full or partial", cells.read_refund_type
        ),
        **dict.fromkeys(("refund_origin", "refund_reason", "refund_note"), _TEXT),
    },
    "items": {
        "sku_id": cells.whole("bigint", -(2**63), 2**63 - 1),
        **dict.fromkeys(
            ("product_name", "condition", "set_name", "rarity", "main_photo_url"),
            _TEXT,
        ),
        "product_line": _WORD,
        "quantity": _COUNT,
        "unit_price": _AMOUNT,
    },
    "shipping": {
        **dict.fromkeys(
            ("shipping_method", "city", "state", "postal_code", "tracking_number"),
            _TEXT,
        ),
        "item_count": _COUNT,
        "product_weight": _AMOUNT,
    },
}


class _Numbered(msgspec.Struct, gc=False):
    """The only field of a row that the check needs. The decoder checks the JSON of all other fields
    without storing it.
    """

    order_number: Annotated[str, msgspec.Meta(min_length=1, max_length=ORDER_NUMBER_CHARACTERS)]


_CHECK = msgspec.json.Decoder(list[_Numbered])
_PLACE = re.compile(r"(.*) - at `\$\[(\d+)\](?:\.order_number)?`", re.DOTALL)


def _other_file(body: bytes) -> str:
    """Return a sentence about the kind of file that was sent instead of JSON, such as a known CSV
    file; empty for an unknown kind.
    """
    try:
        lines, _ = lines_of(body[:HEAD_BYTES])
    except NotATable as e:
        return str(e)
    kind = kind_in(lines) or kind_in(lines, app_of)
    return kind.told() if kind else ""


def check(body: bytes) -> int:
    """Check a body and return the number of its rows.

    Raises InvalidJson, InvalidPayload naming the row, EmptyPayload or TooManyRows.
    """
    try:
        # The decoder does not check the UTF-8 of texts that it does not store.
        body.decode()
        rows = _CHECK.decode(body)
    except msgspec.ValidationError as e:
        raise _misshapen(body, str(e)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InvalidJson(_other_file(body) or not_json(e, body)) from None
    if not rows:
        raise EmptyPayload
    if len(rows) > limits.UPLOAD_ROWS:
        raise errors.TooManyRows(
            f"{len(rows):,} rows; an upload can have at most {limits.UPLOAD_ROWS:,}"
        )
    numbers = list(map(attrgetter("order_number"), rows))
    if any(map(str.isspace, numbers)):
        blank = next(at for at, number in enumerate(numbers) if number.isspace())
        raise errors.InvalidPayload(f"row {blank + 1}: order_number is blank")
    return len(rows)


def _misshapen(body: bytes, reason: str) -> errors.Problem:
    """Return the error for a body with wrong types. The decoder stops at the first wrong type, so
    the rest of the body may be invalid JSON.
    """
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as e:
        return InvalidJson(not_json(e, body))
    if not (place := _PLACE.fullmatch(reason)):
        return errors.InvalidPayload("the body is not an array of objects")
    row = int(place[2]) + 1
    words = place[1]
    if "Expected `object`" in words:
        return errors.InvalidPayload(f"row {row} is not an object")
    if "missing required field" in words:
        return errors.InvalidPayload(f"row {row}: order_number is missing")
    if "length >= 1" in words:
        return errors.InvalidPayload(f"row {row}: order_number is blank")
    if "length <=" in words:
        most = ORDER_NUMBER_CHARACTERS
        return errors.InvalidPayload(f"row {row}: order_number is longer than {most} characters")
    return errors.InvalidPayload(f"row {row}: order_number is not a string")


@dataclass
class Rows:
    """The rows of an upload. `count` is the number of uploaded rows, of which `duplicates` were
    merged into other rows. `frame` has the columns `row`, `order_number` and the uploaded fields.
    """

    frame: pl.DataFrame
    count: int
    duplicates: int = 0
    rejected: list[JsonObject] = field(default_factory=list)
    rejected_count: int = 0

    def carries(self, name: str) -> bool:
        return name in self.frame.columns

    def always(self, name: str) -> bool:
        """Return whether all rows contain the field."""
        return self.carries(name) and not self.carries(f"has_{name}")


def read(body: bytes, kind: str) -> Rows:
    """Return the rows of a body that `check` accepted, one for each key."""
    given = _columns(_decoded(body, kind), ["order_number", *KINDS[kind]])
    numbers = given["order_number"].values
    rows = Rows(pl.DataFrame(), len(numbers))
    columns = [
        pl.Series(
            "row",
            range(1, len(numbers) + 1),
            pl.Int32,
        ),
        pl.Series("order_number", numbers, pl.String),
    ]
    for name, column in KINDS[kind].items():
        columns += _carried(name, column, given[name], rows)
    frame = pl.DataFrame(columns)
    # The search for a single byte is many times as fast, and most bodies contain no backslash.
    if b"\\" in body and b"\\u0000" in body:
        # PostgreSQL cannot store NUL.
        frame = frame.with_columns(pl.col(pl.String).str.replace_all("\0", "\ufffd", literal=True))
    if "product_line" in frame.columns:
        frame = frame.with_columns(_internal(frame["product_line"]))
    rows.rejected = sorted(rows.rejected, key=lambda one: int(one["row"]))[: limits.REJECTED_LISTED]
    rows.frame = _merged(frame, kind)
    rows.duplicates = rows.count - rows.frame.height
    return rows


# Rows are split into columns in blocks that fit the processor's cache, because each field reads all
# rows of a block.
_BLOCK = 1_000


@dataclass
class _Given:
    """The values of one field, and the set of their types."""

    values: list[object] = field(default_factory=list)
    kinds: set[type] = field(default_factory=set)


def _columns(given: Sequence[object], names: Sequence[str]) -> dict[str, _Given]:
    columns = {name: _Given() for name in names}
    fields = [(attrgetter(name), column) for name, column in columns.items()]
    for start in range(0, len(given), _BLOCK):
        block = given[start : start + _BLOCK]
        for of, column in fields:
            values = list(map(of, block))
            column.kinds.update(map(type, values))
            column.values += values
    return columns


# The marker of a value that is valid JSON but cannot be decoded, such as a whole number with
# thousands of digits.
_BAD = object()
_ROWS = {
    kind: msgspec.defstruct(
        kind,
        [("order_number", str), *((name, Any, UNSET) for name in fields)],
        gc=False,
        namespace={},
    )
    for kind, fields in KINDS.items()
}
# Numbers with a point or an exponent are decoded as bytes, which are exact and no texts.
_DECODERS = {
    kind: msgspec.json.Decoder(list[row], float_hook=str.encode)  # type: ignore[valid-type]
    for kind, row in _ROWS.items()
}
_VALUE = msgspec.json.Decoder(Any, float_hook=str.encode)
_LOOSELY = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def _decoded(body: bytes, kind: str) -> list[object]:
    try:
        return _DECODERS[kind].decode(body)
    except (msgspec.ValidationError, RecursionError):
        row = _ROWS[kind]
        return [
            row(**{name: _value(raw) for name, raw in one.items() if name in row.__struct_fields__})
            for one in _LOOSELY.decode(body)
        ]


def _value(raw: msgspec.Raw) -> object:
    try:
        return _VALUE.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _BAD


def _carried(name: str, column: Column, given: _Given, rows: Rows) -> list[pl.Series]:
    """Return the typed column of a field and, unless all rows contain the field, its `has_` column;
    an empty list if no row contains the field.
    """
    values = given.values
    kinds = given.kinds
    if kinds == {UnsetType}:
        return []
    typed, bad = column.read(values, kinds)
    rows.rejected_count += len(bad)
    rows.rejected += [
        _says(at + 1, name, column, values[at]) for at in sorted(bad)[: limits.REJECTED_LISTED]
    ]
    if not bad and UnsetType not in kinds:
        return [typed.alias(name)]
    has = pl.Series(
        f"has_{name}",
        [value is not UNSET for value in values],
        pl.Boolean,
    )
    if bad:
        has = has.scatter(bad, False)
    return [typed.alias(name), has] if has.any() else []


def _says(row: int, name: str, column: Column, value: object) -> dict[str, object]:
    if isinstance(value, bytes):
        shown = value.decode()
    else:
        shown = "unreadable" if value is _BAD else repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
    return {
        "row": row,
        "column": name,
        "code": column.code,
        "message": f"{name} is {shown}, {column.says}",
    }


def _internal(labels: pl.Series) -> pl.Series:
    """Replace product lines by their internal names; unknown product lines are unchanged."""
    given = labels.unique().drop_nulls().to_list()
    names = {label: _internal_name(label) for label in given}
    return labels.replace(list(names), list(names.values())) if names else labels


def _internal_name(label: str) -> str:
    folded = label.strip().casefold()
    return NAME_BY_LABEL.get(folded, folded if folded in NAMES else label)


def _merged(frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return one row per key. The value of each field is that of the last row that contains it.
    Items without a SKU have no key and are not merged.
    """
    keys = ["order_number", "sku_id"] if kind == "items" else ["order_number"]
    if not set(keys) <= set(frame.columns):
        return frame
    again = frame.select(keys).is_duplicated()
    if kind == "items":
        again = again & frame["sku_id"].is_not_null()
    if not again.any():
        return frame
    fields = [name for name in frame.columns if name not in keys and not name.startswith("has_")]
    merged = (
        frame.filter(again)
        .group_by(keys, maintain_order=True)
        .agg(
            *(_last(name, f"has_{name}" in frame.columns) for name in fields),
            *(
                pl.col(name).any()
                for name in frame.columns
                if name.startswith("has_") and name != "has_sku_id"
            ),
            *([pl.col("has_sku_id").last()] if "has_sku_id" in frame.columns else []),
        )
    )
    return pl.concat([frame.filter(~again), merged.select(frame.columns)]).sort("row")


def _last(name: str, sometimes: bool) -> pl.Expr:
    return pl.col(name).filter(pl.col(f"has_{name}")).last() if sometimes else pl.col(name).last()

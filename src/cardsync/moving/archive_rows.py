"""Judges the tables of an archive before any of their rows is written. Pure.

Whoever made the archive may be hostile: only what an export writes is taken, each id is one that an
installation gives out, and each reference names a row of the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl
from sqlalchemy import ForeignKeyConstraint, Integer, Table

from cardsync import errors
from cardsync.moving.archive_tables import MEMBERS, PRODUCT, PRODUCTS, Part

# Greater numbers are not exact everywhere, and no sequence has come so far.
ID_MOST: Final = 2**53 - 1
# Listings that a shop or a member made have negative numbers.
_OF_LISTINGS: Final = frozenset({"marketplace_id", "listing_id", "sku_id"})
_ALSO_IDS: Final = frozenset({"id", "replaces", "received", "undone_by", "takes_back"})


class Judge:
    """Judges the tables of one archive, those that others refer to first. Raises CommandError."""

    def __init__(self, program: str) -> None:
        self._program = program
        # The keys of the tables that others refer to.
        self._keys = dict[str, pl.DataFrame]()

    def judge(
        self,
        table: Table,
        part: Part,
        path: Path,
        expected: pl.Schema,
        rows: int,
        referred: Sequence[str],
    ) -> None:
        """`expected` are the columns of `part`, `rows` is their number in the manifest, and
        `referred` are the columns by which other tables name a row of this one.
        """
        try:
            file = pl.scan_parquet(path)
            found = file.collect_schema()
            self._columns(table, expected, found)
            count = file.select(pl.len()).collect().item()
            if count != rows:
                raise _refused(f"{table.name} has {count:,} rows in place of {rows:,}")
            self._values(table, part, file, found)
            if referred:
                self._keys[table.name] = file.select(referred).collect()
        except (pl.exceptions.PolarsError, OSError) as e:
            raise _refused(f"{table.name} cannot be read: {_line(e)}") from None

    def _columns(self, table: Table, expected: pl.Schema, found: pl.Schema) -> None:
        name = table.name
        if gone := sorted(set(found) - set(expected)):
            raise errors.CommandError(
                f"the archive was made by cardsync {self._program}, whose {name} has"
                f" {gone[0]}: update the other installation, and export the seller again"
            )
        for column, kind in found.items():
            if kind != expected[column]:
                raise _refused(f"{name}.{column} is {kind} in place of {expected[column]}")
        for one in table.columns:
            needed = not one.nullable and one.server_default is None
            if one.name in expected and one.name not in found and needed:
                raise _refused(f"{name} lacks the column {one.name}")

    def _values(self, table: Table, part: Part, file: pl.LazyFrame, found: pl.Schema) -> None:
        name = table.name
        held = {one.name for one in part.columns if not one.value.startswith("NULL")}
        must = [one for one in found if one in held and not table.columns[one].nullable]
        ids = [one for one in found if _is_id(table, one)]
        wrong = file.select(
            *(pl.col(one).null_count().alias(f"null {one}") for one in must),
            *(_beyond(one, found[one]).any().alias(f"id {one}") for one in ids),
        ).collect()
        for said, value in wrong.row(0, named=True).items():
            kind, _, column = said.partition(" ")
            if value:
                what = "is empty" if kind == "null" else "has an id that no installation gives out"
                raise _refused(f"{name}.{column} {what}")
        key = [one.name for one in table.primary_key.columns if one.name in found]
        if key and file.select(pl.struct(key).is_duplicated().any()).collect().item():
            raise _refused(f"{name} has two rows with one {', '.join(key)}")
        for columns, target, names in _references(table):
            self._reference(name, file, columns, target, names)

    def _reference(
        self,
        name: str,
        file: pl.LazyFrame,
        columns: Sequence[str],
        target: str,
        names: Sequence[str],
    ) -> None:
        asked = file.select(columns).drop_nulls().unique().collect()
        known = self._keys.get(target)
        if known is not None:
            asked = asked.join(known, left_on=list(columns), right_on=list(names), how="anti")
        if asked.height:
            shown = ", ".join(map(str, asked.row(0)))
            raise _refused(f"{name}.{columns[-1]} is {shown}, and {target} has no such row")


def referred(tables: Iterable[Table]) -> dict[str, list[str]]:
    """Return the columns by which rows of each table are named by rows of others."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for _, target, names in _references(table):
            found.setdefault(target, {}).update(dict.fromkeys(names))
    return {target: list(names) for target, names in found.items()}


def _references(table: Table) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield the columns that name a row, its table, and the columns of that. All are of the seller,
    who is in no row.
    """
    for key in _strict(table.foreign_key_constraints):
        pairs = [
            (column, element.column.name)
            for column, element in zip(key.column_keys, key.elements, strict=True)
            if column != "seller_id"
        ]
        if pairs:
            columns, names = map(list, zip(*pairs, strict=True))
            yield columns, key.referred_table.name, names
    for column in table.columns:
        if column.name in PRODUCTS:
            yield [column.name], PRODUCT, ["id"]


def _strict(keys: Iterable[ForeignKeyConstraint]) -> list[ForeignKeyConstraint]:
    """Leave out the keys that may lead to nobody: what left where the archive was made."""
    strict = [key for key in keys if not (key.ondelete or "").startswith("SET NULL")]
    return sorted(strict, key=lambda key: tuple(key.column_keys))


def _is_id(table: Table, name: str) -> bool:
    named = name.endswith("_id") or name in MEMBERS or name in _ALSO_IDS
    return named and isinstance(table.columns[name].type, Integer)


def _beyond(name: str, kind: pl.DataType) -> pl.Expr:
    least = -(2**63) if name in _OF_LISTINGS else 1 if name == "id" else 0
    return ~pl.col(name).is_between(pl.lit(least, kind), pl.lit(ID_MOST, kind))


def _refused(what: str) -> errors.CommandError:
    return errors.CommandError(f"the archive is not as an export writes it: {what}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

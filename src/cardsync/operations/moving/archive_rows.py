"""Validates the tables of an archive before any of their rows is written. Pure.

The archive's author may be hostile: only values that an export writes are accepted, each ID must be
one that an installation assigns, and each reference must name a row of the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import polars as pl
from sqlalchemy import BigInteger, ForeignKeyConstraint, Integer, Numeric, SmallInteger, Table
from sqlalchemy.dialects.postgresql import JSONB

from cardsync.operations.moving.archive_tables import (
    COUNTED_ANEW,
    KEYS,
    MEMBERS,
    PRODUCT,
    PRODUCTS,
    Part,
)
from cardsync.platform import errors
from cardsync.stock.pictures.picture_addresses import HOST

# Larger IDs are not exact in every program, and no sequence has reached them.
ID_MOST: Final = 2**53 - 1
# The largest distance between an archive's newest ID and this installation's newest ID: a larger
# distance would use up the IDs of all shops.
IDS_AHEAD: Final = 10**10
# The most rows of tables that are read whole, and of all other tables.
_WHOLE_MOST: Final = 100_000
_ROWS_MOST: Final = 200_000_000
# The most months of price history: each month is a partition of a table that all shops share.
MONTHS_MOST: Final = 120
# Listings that a shop or a member created have negative numbers.
_OF_LISTINGS: Final = frozenset({"marketplace_id", "listing_id", "sku_id"})
# These columns may be -1: the rule of a sale is unknown.
_OR_UNKNOWN: Final = frozenset({"profit_sum.rule_id"})
_OF_ONE_ROW: Final = ("seller", "account")
_HISTORY: Final = "price_observation"
_EMAIL: Final = r"^[^@\s]+@[^@\s]+$"
_ALSO_IDS: Final = frozenset({"id", "replaces", "received", "undone_by", "takes_back"})


_KEY: Final = "^[a-z]+/u{seller}/[A-Za-z0-9][A-Za-z0-9._-]*$"
# `_KEY_IN_JSON` finds an object's key in a JSON text. `_NO_NUMBER` finds the ID of a member or a
# product that is not a plain number: an import replaces such IDs in the text, which must be in the
# database's own format.
_KEY_IN_JSON: Final = '"[a-z]+/u{seller}/[^"]*"'
_NO_NUMBER: Final = (
    rf'"({"|".join(sorted(MEMBERS | PRODUCTS))})": ([^0-9n]|[0-9]{{17}}|[0-9]+[^0-9,}}])'
)


class Judge:
    """Validates the tables of one archive, referenced tables first. Raises CommandError.

    `hash_is_ours` returns whether a password's hash costs no more to check than our own. No time in
    the archive may be after `now`.
    """

    def __init__(
        self,
        program: str,
        seller_id: int,
        now: datetime,
        roles: Sequence[str],
        hash_is_ours: Callable[[str], bool],
    ) -> None:
        self._program = program
        self._seller = seller_id
        self._now = now
        self._roles = roles
        self._hash_is_ours = hash_is_ours
        # The newest ID of each table that has IDs.
        self.newest = dict[str, int]()
        # The keys of the referenced tables.
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
        """Validate a table. `expected` are the columns of `part`, `rows` is the number of rows in
        the manifest, and `referred` are the columns by which other tables reference this table.
        """
        try:
            file = pl.scan_parquet(path)
            found = file.collect_schema()
            self._columns(table, expected, found)
            count = file.select(pl.len()).collect().item()
            if count != rows:
                raise _refused(f"{table.name} has {count:,} rows instead of {rows:,}")
            if count > (_WHOLE_MOST if table.name in COUNTED_ANEW else _ROWS_MOST):
                raise _refused(f"{table.name} has {count:,} rows")
            if table.name in _OF_ONE_ROW and count != 1:
                raise _refused(f"{table.name} has {count:,} rows instead of one")
            self._values(table, part, file, found)
            self._rules(table, part, file, found)
            if "id" in found and found["id"] == pl.Int64:
                self.newest[table.name] = file.select(pl.col("id").max()).collect().item() or 0
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
            *(_beyond(name, one, found[one]).any().alias(f"id {one}") for one in ids),
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

    def _rules(self, table: Table, part: Part, file: pl.LazyFrame, found: pl.Schema) -> None:
        name = table.name
        rules = [(f"{one} {what}", wrong) for one, what, wrong in _of_types(table, found)]
        if part.of_seller and part.which != "true":
            rules.append(
                ("rows are not those of an export", ~pl.sql_expr(part.which) & (pl.len() > 0))
            )
        key = _KEY.format(seller=self._seller)
        rules += [
            (f"{one} is not an object of the shop", ~pl.col(one).str.contains(key))
            for one in found
            if one in KEYS
        ]
        for one in json_columns(table, found):
            rules += [
                (f"{one} names what is not the shop's", self._of_others(pl.col(one))),
                (f"{one} has an id that is not a number", pl.col(one).str.contains(_NO_NUMBER)),
            ]
        rules += self._of_table(name)
        wrong = file.select(
            rule.any().alias(str(place)) for place, (_, rule) in enumerate(rules)
        ).collect()
        if rules:
            for (what, _), is_wrong in zip(rules, wrong.row(0), strict=True):
                if is_wrong:
                    raise _refused(f"{name}.{what}")
        if name == _HISTORY:
            self._months(file)
        if "password_hash" in found:
            hashes = file.select("password_hash").drop_nulls().collect()["password_hash"]
            if not all(map(self._hash_is_ours, hashes.to_list())):
                raise _refused(f"{name}.password_hash is none that is made here")

    def _of_others(self, json: pl.Expr) -> pl.Expr:
        own, all_keys = (_KEY_IN_JSON.format(seller=one) for one in (self._seller, "[0-9]+"))
        return json.str.count_matches(all_keys) > json.str.count_matches(own)

    def _of_table(self, name: str) -> list[tuple[str, pl.Expr]]:
        match name:
            case "seller":
                return [("id is not the manifest's", pl.col("id") != self._seller)]
            case "member":
                return [
                    ("role is none that there is", ~pl.col("role").is_in(list(self._roles))),
                    ("email is not an address", ~pl.col("email").str.contains(_EMAIL)),
                ]
            case "card_photo":
                host = pl.col("address").str.extract(HOST)
                return [
                    ("host is not that of its address", host.ne_missing(pl.col("host"))),
                    ("digest is none", ~pl.col("digest").str.contains("^[0-9a-f]{32}$")),
                ]
        return []

    def _months(self, file: pl.LazyFrame) -> None:
        months = file.select(
            pl.col("observed_at").dt.truncate("1mo").n_unique().alias("count"),
            pl.col("observed_at").min().alias("first"),
            pl.col("observed_at").max().alias("last"),
        ).collect()
        count, first, last = months.row(0)
        if first is None:
            return
        since = self._now - timedelta(days=31 * MONTHS_MOST)
        if count > MONTHS_MOST or first < since or last > self._now + timedelta(days=1):
            raise _refused(
                f"{_HISTORY} is from {first:%Y-%m-%d} to {last:%Y-%m-%d}, and {MONTHS_MOST} months"
                " until now can come in"
            )

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
    """Return the columns of each table that other tables reference."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for _, target, names in _references(table):
            found.setdefault(target, {}).update(dict.fromkeys(names))
    return {target: list(names) for target, names in found.items()}


def json_columns(table: Table, names: Iterable[str]) -> list[str]:
    return [one for one in names if isinstance(table.columns[one].type, JSONB)]


def _references(table: Table) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield the referencing columns, the referenced table, and its columns. `seller_id` is omitted,
    because all rows have the same seller and the archive does not repeat it.
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
    """Return the foreign keys, except foreign keys whose target may have been deleted before the
    archive was made.
    """
    strict = [key for key in keys if not (key.ondelete or "").startswith("SET NULL")]
    return sorted(strict, key=lambda key: tuple(key.column_keys))


def _of_types(table: Table, found: pl.Schema) -> Iterator[tuple[str, str, pl.Expr]]:
    """Yield checks for values that PostgreSQL's types refuse and Parquet's accept."""
    for name, kind in found.items():
        column = pl.col(name)
        match table.columns[name].type:
            case BigInteger():
                pass
            case SmallInteger():
                yield name, "is too large", ~column.is_between(-(2**15), 2**15 - 1)
            case Integer():
                yield name, "is too large", ~column.is_between(-(2**31), 2**31 - 1)
            case Numeric(precision=int(digits), scale=int(scale)) if isinstance(kind, pl.Decimal):
                most = 10 ** (digits - scale)
                yield name, "is too large", (column.cast(pl.Float64).abs() >= most)
        if kind == pl.String:
            yield name, "has a character of no text", column.str.contains("\0", literal=True)
        if isinstance(kind, pl.Datetime):
            beyond = (column.dt.year() < 1900) | (column.dt.year() > 9_999)
            yield name, "is not a moment of our time", beyond


def _is_id(table: Table, name: str) -> bool:
    named = name.endswith("_id") or name in MEMBERS or name in _ALSO_IDS
    return named and isinstance(table.columns[name].type, Integer)


def _beyond(table: str, name: str, kind: pl.DataType) -> pl.Expr:
    least = -(2**63) if name in _OF_LISTINGS else 1 if name == "id" else 0
    least = -1 if f"{table}.{name}" in _OR_UNKNOWN else least
    return ~pl.col(name).is_between(pl.lit(least, kind), pl.lit(ID_MOST, kind))


def _refused(what: str) -> errors.CommandError:
    return errors.CommandError(f"the archive is not as an export writes it: {what}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

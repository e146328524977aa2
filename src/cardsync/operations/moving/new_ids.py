"""Replaces the other installation's IDs in an archive's rows by this installation's IDs. Pure.

The IDs of a seller's own tables do not change. The seller, members, credentials and the catalog's
products have new IDs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import JSONB

from cardsync.operations.moving.archive_tables import CALLERS, COUNTED_ANEW, KEYS, MEMBERS, PRODUCTS
from cardsync.platform import errors
from cardsync.stock.cards.chosen_match import KIND

# The tables of the IDs in texts such as `member 3`; grants and links keep their IDs.
_NAMED: Final = {"member": "member", "key": "api_key", "token": "access_token"}
_CALLER: Final = re.compile(r"\b(member|key|token) (\d{1,18})\b")
_KEYS: Final = "|".join((*sorted(MEMBERS | PRODUCTS), "became", "was"))
_IN_JSON: Final = re.compile(
    r'"(?P<kind>member|key|token) (?P<id>\d{1,18})"'
    rf'|"(?P<key>{_KEYS})": (?P<value>\d{{1,18}})(?=[,}}])'
    r"|/u(?P<seller>\d{1,18})/"
)
# This pattern matches every JSON text with an ID to change; most texts have none.
_TO_CHANGE: Final = r'"(member|key|token) \d|_id": \d|_by": \d|"was": \d|/u\d'
_OF_A_MATCH: Final = ("became", "was")


@dataclass(frozen=True)
class NewIds:
    """`anew` maps each table's old IDs to new IDs. In texts, the ID of a person who left is not in
    `anew` and becomes the table's `spare`, an ID that is never assigned.
    """

    old_seller: int
    seller: int
    anew: Mapping[str, Mapping[int, int]]
    spare: Mapping[str, int]
    # The columns are `old`, `new` and, if the catalog had to be searched again, `match`.
    products: pl.DataFrame

    def mapped(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a table with the IDs of this installation."""
        changed = [
            series
            for name in rows.columns
            if (series := self._column(table, name, rows[name])) is not None
        ]
        made = rows.with_columns(changed)
        if table.name == "card":
            made = self._matched_again(rows, made)
        return made

    def _column(self, table: Table, name: str, values: pl.Series) -> pl.Series | None:
        if table.name == "seller" and name == "id":
            return pl.Series(name, [self.seller] * len(values), pl.Int64)
        if table.name in COUNTED_ANEW and name == "id":
            return _replaced(values, self.anew[table.name])
        if table.name == "api_key" and name == "replaces":
            return _replaced(values, self.anew["api_key"])
        if name in MEMBERS:
            return self._of_members(table, values)
        if name in PRODUCTS:
            return self._of_products(values)
        if name in KEYS:
            return values.str.replace(f"/u{self.old_seller}/", f"/u{self.seller}/", literal=True)
        if name in table.columns and isinstance(table.columns[name].type, JSONB):
            return _where(values, _TO_CHANGE, self._of_json)
        if name in CALLERS:
            return _where(values, _CALLER.pattern, self._of_callers)
        return None

    def _of_members(self, table: Table, values: pl.Series) -> pl.Series:
        """Return new IDs of members; member 0 is the shop. A member who left gets a unique negative
        ID, or null in a foreign key to members.
        """
        known = self.anew["member"]
        if any(key.referred_table.name == "member" for key in table.foreign_key_constraints):
            return _replaced(values, known)
        left = {old: -abs(old) for old in values.unique().drop_nulls() if old not in known}
        return _replaced(values, {**left, **known})

    def _of_products(self, values: pl.Series) -> pl.Series:
        asked = values.rename("old").to_frame()
        found = asked.join(self.products, on="old", how="left", maintain_order="left")["new"]
        if found.null_count() != values.null_count():
            raise errors.CommandError("the archive lacks a product that it names: export it again")
        return found.rename(values.name)

    def _of_callers(self, text: str) -> str:
        return _CALLER.sub(lambda it: f"{it[1]} {self._named(it[1], int(it[2]))}", text)

    def _of_json(self, text: str) -> str:
        of_match = f'"kind": "{KIND}"' in text

        def put(it: re.Match[str]) -> str:
            if it["kind"]:
                return f'"{it["kind"]} {self._named(it["kind"], int(it["id"]))}"'
            if it["seller"]:
                same = int(it["seller"]) == self.old_seller
                return f"/u{self.seller}/" if same else it[0]
            if it["key"] in _OF_A_MATCH and not of_match:
                return it[0]
            return f'"{it["key"]}": {self._id(it["key"], int(it["value"]))}'

        return _IN_JSON.sub(put, text)

    def _id(self, key: str, old: int) -> int:
        if key in MEMBERS:
            return self.anew["member"].get(old, -old)
        return self._product_ids.get(old, 0)

    @cached_property
    def _product_ids(self) -> dict[int, int]:
        return dict(self.products.select("old", "new").iter_rows())

    def _named(self, kind: str, old: int) -> int:
        table = _NAMED[kind]
        return self.anew[table].get(old, self.spare[table])

    def _matched_again(self, rows: pl.DataFrame, made: pl.DataFrame) -> pl.DataFrame:
        """Set the match of cards whose product the catalog lacked, as an import would."""
        again = self.products.select(product_id="old", again="match")
        found = rows.select("product_id").join(
            again, on="product_id", how="left", maintain_order="left"
        )["again"]
        return made.with_columns(match=pl.coalesce(found, made["match"]))


def _replaced(values: pl.Series, ids: Mapping[int, int]) -> pl.Series:
    if not ids:
        return values
    return values.replace_strict(list(ids), list(ids.values()), default=None, return_dtype=pl.Int64)


def _where(values: pl.Series, pattern: str, change: Callable[[str], str]) -> pl.Series:
    """Change only the few texts that match the pattern."""
    found = values.str.contains(pattern).fill_null(value=False)
    if not found.any():
        return values
    texts = values.to_list()
    for place in found.arg_true():
        texts[place] = change(texts[place])
    return pl.Series(values.name, texts, pl.String)

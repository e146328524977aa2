"""Declares the columns of people's files: the names by which each column is recognized, and which
columns a file must have. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from cardsync.platform.table_text import Table, column_name, read_table

Name = TypeVar("Name", bound=str)


class CsvColumns:
    """The columns of people's files. `names` has the names by which a column is recognized as
    `a|b`, the best name first, in the form of `column_name`.
    """

    def __init__(self, names: Mapping[Name, str], needed: Collection[str] = ()) -> None:
        self.needed = needed
        self._known = {
            name: (rank, field)
            for field, own in names.items()
            for rank, name in enumerate(own.split("|"))
        }

    def field_of(self, name: str) -> str | None:
        return self._known.get(column_name(name), (0, None))[1]

    def by_name(self, header: Sequence[str]) -> list[tuple[int, str]]:
        """Return the places and fields of the recognized columns, the best names first."""
        known = ((self._known.get(column_name(name)), at) for at, name in enumerate(header))
        found = sorted((one[0], at, one[1]) for one, at in known if one)
        return [(at, field) for _, at, field in found]

    def places(self, header: Sequence[str], *, best: bool = False) -> dict[str, int]:
        """Return each column's place in the header. If several names match a column, take the first
        in the header or, with `best`, the best name.
        """
        found = self.by_name(header)
        places: dict[str, int] = {}
        for at, field in found if best else sorted(found):
            places.setdefault(field, at)
        return places

    def missing(self, header: Sequence[str]) -> list[str]:
        places = self.places(header)
        return [field for field in self.needed if field not in places]

    def fit(self, header: Sequence[str]) -> bool:
        return not self.missing(header)

    def table(self, data: bytes) -> Table:
        """Read a file. Raises NotATable."""
        return read_table(data, self.fit)

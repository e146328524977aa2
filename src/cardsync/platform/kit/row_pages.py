"""Pages of rows. A page by key begins after a row, so that a late page costs as much as
the first; a page by number is for interfaces that count pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar, TypeVarTuple

from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute

from cardsync.platform import limits
from cardsync.platform.kit.typed_numbers import clamped

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
# Cards on a page of a list: the default and the maximum.
OF_CARDS: Final = (limits.CARDS_PER_PAGE, limits.CARDS_PER_PAGE_MOST)


class Page(NamedTuple, Generic[T]):
    """A page by key. `next` is the key of its last row, None on the last page."""

    rows: Sequence[T]
    next: int | None


class Numbers(NamedTuple):
    """The fields of an answer that counts pages, in their order."""

    total: int
    page: int
    per_page: int
    total_pages: int


class Numbered(NamedTuple, Generic[T]):
    rows: Sequence[T]
    numbers: Numbers


@dataclass(frozen=True)
class Paging:
    """The number of a page and its size."""

    page: int
    per_page: int

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page

    @property
    def values(self) -> dict[str, int]:
        """Return the values of a statement with `LIMIT :limit OFFSET :offset`."""
        return {"limit": self.per_page, "offset": self.offset}

    def of(self, total: int) -> Numbers:
        return Numbers(total, self.page, self.per_page, -(-total // self.per_page))


def read_paging(page: str | None, per_page: str | None, default: int, most: int) -> Paging:
    """Read the paging of a query; a text that is not a number counts as missing."""
    return Paging(clamped(page, 1, limits.PAGE_MOST), clamped(per_page, default, most))


def before(
    statement: Select[*Ts], key: InstrumentedAttribute[int], cursor: int | None, most: int
) -> Select[*Ts]:
    """Limit a statement to the newest rows before a cursor, one more than a page has."""
    if cursor is not None:
        statement = statement.where(key < cursor)
    return statement.order_by(key.desc()).limit(most + 1)


def cut(rows: Sequence[T], most: int, key: Callable[[T], int]) -> Page[T]:
    """Cut a page from rows; one row more than a page means that another page follows."""
    page = rows[:most]
    return Page(page, key(page[-1]) if len(rows) > most else None)

"""Recognizes the marketplace's files that people confuse, by their columns, and names the right
place for each. Pure.

The server uses this module by a symbolic link, so that it gives the same messages as the sync app.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from .table_text import cells_of, form_of


def column(name: str) -> str:
    """Return one name for `Order #`, `order_number` and `Order Number`, and one for `PostalCode`
    and `postal_code`.
    """
    return re.sub(r"[^a-z0-9]", "", name.casefold().replace("#", "number"))


class FileKind(NamedTuple):
    """A kind of file: its name, the columns that identify it, and its place."""

    name: str
    needed: frozenset[str]
    place: str

    def told(self) -> str:
        return f"this is {self.name}: {self.place}"


def _kind(name: str, place: str, *columns: str) -> FileKind:
    return FileKind(name, frozenset(map(column, columns)), place)


PRICING_COLUMNS: Final = (
    "TCGplayer Id", "Product Name", "Condition", "Total Quantity", "TCG Marketplace Price",
)  # fmt: skip
COLLECTIONS: Final = "put it under Collections"
_AGENT: Final = "put it into the sync app's inbox"
APP_EXPORT: Final = _kind(
    "the TCGplayer app's collection export", COLLECTIONS,
    "Product ID", "Product Name", "Condition", "Printing", "Add to Quantity",
)  # fmt: skip
PRICING: Final = _kind("TCGplayer's pricing export", "put it under Inventory", *PRICING_COLUMNS)
ORDER_LIST: Final = _kind(
    "TCGplayer's order list", _AGENT, "Order #", "Order Date", "Status", "Total Amt"
)
PULL_SHEET: Final = _kind(
    "a pull sheet", _AGENT, "Product Line", "Product Name", "Condition", "Set", "Quantity",
    "Main Photo URL",
)  # fmt: skip
SHIPPING: Final = _kind(
    "TCGplayer's shipping export", _AGENT, "Order #", "Shipping Method", "PostalCode"
)
# Recognition follows this order: the app's export also has the columns of a pricing export.
KINDS: Final = (APP_EXPORT, PRICING, SHIPPING, ORDER_LIST, PULL_SHEET)


def kind_of(header: Iterable[str]) -> FileKind | None:
    names = set(map(column, header))
    return next((kind for kind in KINDS if kind.needed <= names), None)


KindOf = Callable[[Sequence[str]], FileKind | None]


def kind_in(lines: Sequence[str], of: KindOf = kind_of) -> FileKind | None:
    """Return the kind of a file with these first lines, whatever its delimiter."""
    form = form_of(lines, lambda cells: of(cells) is not None)
    return None if form is None else of(cells_of(lines[form.before], form.delimiter))

"""The order of a page: sort and direction in, ORDER BY out. Rows without the value come last both ways; ties are parted by id. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cardsync.orders.filters import OrderFilter, Sort


class PageOrder(NamedTuple):
    """`by` is the order of an index, read forwards or backwards; `whole` the same with nulls last.

    They differ where the index is read against its nulls: then `nulls_apart` is the column whose nulls must be read apart.
    `columns` are those of `orders` that the order needs, beside the id.
    """

    by: str
    whole: str
    nulls_apart: str | None
    columns: str


class _Key(NamedTuple):
    """A column of an index, and whether it stands there with its largest value first."""

    column: str
    falling: bool
    nullable: bool


_DATE = _Key("orders.order_date", True, True)
_KEYS: dict[Sort, tuple[_Key, ...]] = {
    "date": (_DATE,),
    "total": (_Key("orders.total_amt", True, True),),
    "buyer": (_Key("orders.buyer_key", False, True),),
    "number": (_Key("orders.order_number", False, False),),
    # The newest of each status first, as its index has them.
    "status": (_Key("orders.status_group", False, False), _DATE),
}


def page_order(wanted: OrderFilter) -> PageOrder:
    first, *others = _KEYS[wanted.sort]
    backwards = (wanted.direction == "desc") != first.falling
    keys = [first, *others]
    unique = wanted.sort == "number"
    id_falls = keys[-1].falling != backwards
    tail = [] if unique else [f"orders.id {'DESC' if id_falls else 'ASC'}"]
    return PageOrder(
        by=", ".join([*(_term(key, backwards) for key in keys), *tail]),
        whole=", ".join([_whole(first, backwards), *(_term(key, backwards) for key in others), *tail]),
        nulls_apart=first.column if first.nullable and backwards else None,
        columns=", ".join(key.column for key in keys if key.column != "orders.status_group") or "orders.order_number",
    )


def _term(key: _Key, backwards: bool) -> str:
    direction = "DESC" if key.falling != backwards else "ASC"
    if not key.nullable:
        return f"{key.column} {direction}"
    return f"{key.column} {direction} NULLS {'FIRST' if backwards else 'LAST'}"


def _whole(key: _Key, backwards: bool) -> str:
    return _term(key, backwards).replace("NULLS FIRST", "NULLS LAST")

"""Writes the ORDER BY of a page of orders. Pure.

Rows with a null in the sorted column are last in both directions; equal rows are sorted by id.
"""

from __future__ import annotations

from typing import NamedTuple

from cardsync.sales.orders.models import BUYER_KEY
from cardsync.sales.orders.order_filter import OrderFilter, Sort


class PageOrder(NamedTuple):
    """ORDER BY terms. `by` is the order of an index, read forwards or backwards; `whole` is the
    same order with nulls last. Without an index, both are equal.

    If an index of a nullable column is read backwards, nulls are first, so `by` and `whole` differ.
    Then rows with a null in the column `nulls_apart` must be read separately, after all others.
    `keys` selects the columns that the order needs, under the names that `named` uses to sort the
    result again.
    """

    by: str
    whole: str
    nulls_apart: str | None
    indexed: bool
    keys: str
    named: str


class _Key(NamedTuple):
    """A value to sort by. `falling` is whether its index has the largest value first."""

    value: str
    falling: bool
    nullable: bool
    indexed: bool = True


_DATE = _Key("orders.order_date", True, True)
_KEYS: dict[Sort, tuple[_Key, ...]] = {
    "date": (_DATE,),
    # Total and buyer have no index, because an index would slow down every write of an order.
    "total": (_Key("orders.total_amt", True, True, indexed=False),),
    "buyer": (_Key(f"nullif({BUYER_KEY}, '')", False, True, indexed=False),),
    "number": (_Key("orders.order_number", False, False),),
    # Within a status, the newest order is first, as in the index.
    "status": (_Key("orders.status_group", False, False), _DATE),
}


def page_order(wanted: OrderFilter) -> PageOrder:
    first, *others = keys = _KEYS[wanted.sort]
    backwards = (wanted.direction == "desc") != first.falling
    unique = wanted.sort == "number"
    id_falls = keys[-1].falling != backwards
    tail = [] if unique else [f"orders.id {'DESC' if id_falls else 'ASC'}"]
    by = ", ".join([*(_term(key, backwards) for key in keys), *tail])
    whole = ", ".join(
        [
            _whole(first, backwards),
            *(_term(key, backwards) for key in others),
            *tail,
        ]
    )
    named = [key._replace(value=f"orders.key{n}") for n, key in enumerate(keys)]
    return PageOrder(
        by=by if first.indexed else whole,
        whole=whole,
        nulls_apart=first.value if first.indexed and first.nullable and backwards else None,
        indexed=first.indexed,
        keys=", ".join(f"{key.value} AS key{n}" for n, key in enumerate(keys)),
        named=", ".join(
            [
                _whole(named[0], backwards),
                *(_term(key, backwards) for key in named[1:]),
                *tail,
            ]
        ),
    )


def _term(key: _Key, backwards: bool) -> str:
    direction = "DESC" if key.falling != backwards else "ASC"
    if not key.nullable:
        return f"{key.value} {direction}"
    return f"{key.value} {direction} NULLS {'FIRST' if backwards else 'LAST'}"


def _whole(key: _Key, backwards: bool) -> str:
    return _term(key, backwards).replace("NULLS FIRST", "NULLS LAST")

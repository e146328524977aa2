"""Writes the ORDER BY of a page of orders. Pure.

Rows without the value are last in both directions; the id decides between equal rows.
"""

from __future__ import annotations

from typing import NamedTuple

from cardsync.sales.orders.models import BUYER_KEY
from cardsync.sales.orders.order_filter import OrderFilter, Sort


class PageOrder(NamedTuple):
    """`by` is the order of an index, read forwards or backwards; `whole` is the same with nulls
    last. Without an index both orders are the same.

    They differ where the index is read against its nulls: then `nulls_apart` is the column whose
    nulls must be read apart. `keys` are the columns of `orders` that the order needs, each with its
    name in `named`, the order of a result that has them.
    """

    by: str
    whole: str
    nulls_apart: str | None
    indexed: bool
    keys: str
    named: str


class _Key(NamedTuple):
    """A key is a value of an order; it says whether its index has the largest value first."""

    value: str
    falling: bool
    nullable: bool
    indexed: bool = True


_DATE = _Key("orders.order_date", True, True)
_KEYS: dict[Sort, tuple[_Key, ...]] = {
    "date": (_DATE,),
    # These two are sorted on request: an index for each would cost time for every order that is
    # written.
    "total": (_Key("orders.total_amt", True, True, indexed=False),),
    "buyer": (_Key(f"nullif({BUYER_KEY}, '')", False, True, indexed=False),),
    "number": (_Key("orders.order_number", False, False),),
    # The newest order of each status comes first, as in its index.
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

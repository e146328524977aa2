"""Reads the stored cards of a seller as integers, with prices in ten-thousandths, for an import to
compare with its rows.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy import select

from cardsync.access.models import Account
from cardsync.imports import diff
from cardsync.platform.database.copy import read_integers
from cardsync.platform.work.jobs import Work


class _Packed(NamedTuple):
    """The values packed into one integer: a position in a list, the first letter of a text, and two
    bits.
    """

    place: pl.Expr
    letter: pl.Expr
    bits: tuple[pl.Expr, pl.Expr]


def _packed(*, place: str, letter: str, bits: tuple[str, str]) -> str:
    """Return an SQL expression that packs four values into one integer. Without packing, reading
    120,000 cards takes 1.1 to 1.7 times as long; bench/fences.py measures it.
    """
    one, other = bits
    return (
        f"coalesce({place}, 0) * 512 + ascii({letter}) * 4 + {one}::integer * 2 + {other}::integer"
    )


def _unpacked(column: str) -> _Packed:
    """Return expressions for the four values. A missing position is 0, and the letter is a
    character code.
    """
    value = pl.col(column)
    return _Packed(value // 512, value // 4 % 128, (value // 2 % 2 == 1, value % 2 == 1))


_PLACE_OF_LINE: Final = (
    "array_position((SELECT product_lines FROM account a WHERE a.seller_id = {seller_id}),"
    " product_line)"
)
_STORED_SQL: Final = {
    **{
        name: name
        for name in (
            "id",
            "marketplace_id",
            "listing_id",
            "product_id",
            "identity_hash",
            "values_hash",
        )
    },
    "kind": _packed(place=_PLACE_OF_LINE, letter="match", bits=("gone", "my_store_priced")),
    **{name: f"coalesce(({name} * 10000)::bigint, -1)" for name in ("price", "target_price")},
}
_MATCHES: Final = {ord(name[0]): name for name in ("matched", "provisional", "ambiguous")}


async def read_stored(work: Work, seller_id: int) -> pl.DataFrame:
    """Return the columns `diff.STORED` of all the seller's cards except contributions. A product
    line that the account no longer has is null.
    """
    columns = {name: sql.format(seller_id=int(seller_id)) for name, sql in _STORED_SQL.items()}
    source = f"card WHERE seller_id = {int(seller_id)} AND contribution IS NULL"
    async with work.database.tenant(seller_id, snapshot=True) as session:
        lines = await session.scalar(
            select(Account.product_lines).where(Account.seller_id == seller_id)
        )
        read = await read_integers(session, columns, source, "id")
    return await asyncio.to_thread(_stored, read, lines or [])


def _stored(read: pl.DataFrame, lines: list[str]) -> pl.DataFrame:
    kind = _unpacked("kind")
    named = dict(enumerate(lines, 1))
    return read.with_columns(
        *(pl.when(pl.col(name) >= 0).then(name).alias(name) for name in ("price", "target_price")),
        match=kind.letter.replace_strict(_MATCHES, return_dtype=pl.String),
        product_line=kind.place.replace_strict(named, default=None, return_dtype=pl.String),
        gone=kind.bits[0],
        my_store_priced=kind.bits[1],
    ).select(*diff.STORED)

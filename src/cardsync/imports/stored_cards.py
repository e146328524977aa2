"""Reads the stored cards of a seller as an import compares its rows with them: in integers, prices
in ten-thousandths.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import polars as pl
from sqlalchemy import select

from cardsync.access.models import Account
from cardsync.imports import diff
from cardsync.platform.database.packed_integers import integer_columns, packed, unpacked
from cardsync.platform.work.jobs import Work

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
    "kind": packed(place=_PLACE_OF_LINE, letter="match", bits=("gone", "my_store_priced")),
    **{name: f"coalesce(({name} * 10000)::bigint, -1)" for name in ("price", "target_price")},
}
_MATCHES: Final = {ord(name[0]): name for name in ("matched", "provisional", "ambiguous")}


async def read_stored(work: Work, seller_id: int) -> pl.DataFrame:
    """Return `diff.STORED` of every card of the seller that files speak of; a product line that the
    account has no more is null.
    """
    columns = {name: sql.format(seller_id=int(seller_id)) for name, sql in _STORED_SQL.items()}
    source = f"card WHERE seller_id = {int(seller_id)} AND contribution IS NULL"
    async with work.database.tenant(seller_id, snapshot=True) as session:
        lines = await session.scalar(
            select(Account.product_lines).where(Account.seller_id == seller_id)
        )
        read = await integer_columns(session, columns, source, "id")
    return await asyncio.to_thread(_stored, read, lines or [])


def _stored(read: dict[str, Any], lines: list[str]) -> pl.DataFrame:
    kind = unpacked("kind")
    named = dict(enumerate(lines, 1))
    return (
        pl.DataFrame(read, schema=dict.fromkeys(read, pl.Int64))
        .with_columns(
            *(
                pl.when(pl.col(name) >= 0).then(name).alias(name)
                for name in ("price", "target_price")
            ),
            match=kind.letter.replace_strict(_MATCHES, return_dtype=pl.String),
            product_line=kind.place.replace_strict(named, default=None, return_dtype=pl.String),
            gone=kind.bits[0],
            my_store_priced=kind.bits[1],
        )
        .select(*diff.STORED)
    )

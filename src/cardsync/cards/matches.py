"""The match of a card: its id comes in; how its product was found, and which parts of the card and
of the product agree, go out.

A provisional product is made of a seller's own line, so it is no evidence and is not shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.caller import Caller
from cardsync.cards.names_in_search import Rows
from cardsync.cards.visible import VISIBLE
from cardsync.catalog.products import ROW_COLUMNS, printings
from cardsync.database.snapshot_reads import Reading

# The parts of an identity: what they are called, the text on a card and in the catalog, the key.
PARTS: Final = (
    ("Set", "set_name", "set_name", "set_key"),
    ("Name", "product_name", "product_name", "name_key"),
    ("Number", "number", "number", "number_key"),
    ("Finish", "printing", "finish", "finish_key"),
    ("Language", "language", "language", "language_key"),
)
_OF_CARD = (*ROW_COLUMNS, "title")
_OF_PRODUCT = tuple(dict.fromkeys(name for _, _, *both in PARTS for name in both))
_MATCH = f"""
    SELECT {", ".join(f"c.{name}" for name in _OF_CARD)}, c.match, c.contribution, p.id,
           {", ".join(f"p.{name}" for name in _OF_PRODUCT)}, s.settled_by, s.settled_at
      FROM card c LEFT JOIN product p ON p.id = c.product_id AND NOT p.provisional
           LEFT JOIN settled_match s ON s.seller_id = :seller AND s.card_id = c.id
     WHERE c.seller_id = :seller AND c.id = :card AND {VISIBLE}
"""


class Part(NamedTuple):
    """Whether a part agrees is not known where the catalog does not tell it."""

    name: str
    card: str
    product: str | None
    agrees: bool | None


class Match(NamedTuple):
    """`found` says how: settled, matched, ambiguous, provisional or contributed."""

    found: str
    product_id: int | None
    parts: list[Part]
    settled_by: str | None
    settled_at: datetime | None


async def read_match(reading: Reading, caller: Caller, card_id: int) -> Match:
    """Raises NotFound."""
    return await _read(reading.rows, caller, card_id)


async def match_in(session: AsyncSession, caller: Caller, card_id: int) -> Match:
    """Read the match within the transaction that changes it. Raises NotFound."""

    async def rows(statement: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return (await session.execute(text(statement), dict(values))).all()

    return await _read(rows, caller, card_id)


async def _read(rows: Rows, caller: Caller, card_id: int) -> Match:
    values = {"seller": caller.seller_id, "member": caller.member_id, "card": card_id}
    found = await rows(_MATCH, values)
    if not found:
        raise errors.NotFound(f"there is no card {card_id}")
    row = list(found[0])
    card = dict(zip(_OF_CARD, row, strict=False))
    match, contribution, product_id, *more = row[len(_OF_CARD) :]
    product = dict(zip(_OF_PRODUCT, more, strict=False))
    settled_by, settled_at = more[len(_OF_PRODUCT) :]
    keys = await asyncio.to_thread(_keys, card)
    how = "settled" if settled_by else "contributed" if contribution else match
    parts = [
        Part(name, card[on_card], *_compared(product, keys, in_catalog, key, product_id))
        for name, on_card, in_catalog, key in PARTS
    ]
    return Match(how, product_id, parts, settled_by, settled_at)


def _keys(card: Mapping[str, Any]) -> dict[str, Any]:
    kinds = dict.fromkeys(_OF_CARD, pl.String)
    rows = pl.DataFrame([card], schema=kinds).with_row_index("row")
    return printings(rows).keyed.row(0, named=True)


def _compared(
    product: Mapping[str, Any],
    keys: Mapping[str, Any],
    name: str,
    key: str,
    product_id: int | None,
) -> tuple[str | None, bool | None]:
    if product_id is None:
        return None, None
    told = product[key]
    return product[name], None if told is None else told == keys[key]


class PartBody(msgspec.Struct):
    """`agrees` is null where the catalog does not tell the part."""

    name: str
    card: str
    product: str | None
    agrees: bool | None


class MatchBody(msgspec.Struct):
    """`found` is settled (by a member), matched (by the catalog), ambiguous, provisional (the
    catalog lacks the card) or contributed.
    """

    found: str
    product_id: int | None
    parts: list[PartBody]
    settled_by: str | None
    settled_at: str | None


def match_body(match: Match) -> MatchBody:
    return MatchBody(
        match.found,
        match.product_id,
        [PartBody(*part) for part in match.parts],
        match.settled_by,
        clock.rfc3339(match.settled_at) if match.settled_at else None,
    )

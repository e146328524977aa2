"""Reads the match of a card: how its product was found, how certain the match is and why, which
parts of the card and the product agree, and which other products the card could be.

A provisional product is made from the seller's own row, so it is no evidence and is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.certainty import Certainty, weigh
from cardsync.catalog.judge_products import ANY_LANGUAGE
from cardsync.catalog.one_row import keys_of_row
from cardsync.catalog.products import ROW_COLUMNS
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Rows, rows_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.stock.cards.visible import VISIBLE

# The compared parts of a card: each part's name, its column in `card`, its column in `product`, and
# the column of its compared form.
PARTS: Final = (
    ("Set", "set_name", "set_name", "set_key"),
    ("Name", "product_name", "product_name", "name_key"),
    ("Number", "number", "number", "number_key"),
    ("Finish", "printing", "finish", "finish_key"),
    ("Language", "language", "language", "language_key"),
)
_OF_CARD = (*ROW_COLUMNS, "title")
_WEIGHED: Final = ("number_total", "back_key", "variant_key")
_OF_PRODUCT = tuple(dict.fromkeys([*(name for _, _, *both in PARTS for name in both), *_WEIGHED]))
_MATCH = f"""
    SELECT {", ".join(f"c.{name}" for name in _OF_CARD)}, c.match, c.contribution, p.id,
           {", ".join(f"p.{name}" for name in _OF_PRODUCT)}, s.settled_by, s.settled_at
      FROM card c LEFT JOIN product p ON p.id = c.product_id AND NOT p.provisional
           LEFT JOIN settled_match s ON s.seller_id = :seller AND s.card_id = c.id
     WHERE c.seller_id = :seller AND c.id = :card AND {VISIBLE}
"""
# Products with the listing's name; products with the same set or number are first.
_CANDIDATES = """
    SELECT id, product_name, set_name, number, finish, language FROM product
     WHERE game = :game AND name_key = :name_key AND NOT provisional
     ORDER BY set_key IS NOT DISTINCT FROM :set_key DESC, number_key = :number_key DESC, set_name,
              number_key, finish_key, id
     LIMIT 10
"""


class PartBody(msgspec.Struct):
    """One part of the comparison of a card and its product. `agrees` is null if the catalog lacks
    the part, or if the product covers copies in the card's language, too.
    """

    name: str
    """The part, such as the set or the number"""
    card: str
    """The card's text for the part"""
    product: str | None
    """The catalog's text for the part"""
    agrees: bool | None
    """Whether both texts mean the same; null if the catalog lacks it or any language matches"""


class CandidateBody(msgspec.Struct):
    product_id: int
    product_name: str
    set_name: str
    number: str | None
    finish: str | None
    language: str


class MatchBody(msgspec.Struct):
    """The match of a card. `found` is settled (by a member), matched (by the catalog), ambiguous,
    provisional (the catalog lacks the card) or contributed. `certainty` is certain, probable,
    possible (several products fit equally, so none is chosen) or null, with the `reasons`. A card
    without a product has `candidates`: up to 10 products with its name, the most similar first.
    """

    found: str
    """How the product was found: settled, matched, ambiguous, provisional or contributed"""
    certainty: Certainty | None
    reasons: list[str]
    product_id: int | None
    parts: list[PartBody]
    """The comparison of the card and its product: set, name, number and so on"""
    candidates: list[CandidateBody]
    settled_by: str | None
    settled_at: datetime | None


async def read_match(reading: Reading, caller: Caller, card_id: int) -> MatchBody:
    """Return the match of a card. Raises NotFound."""
    return await _read(reading.rows, caller, card_id)


async def match_in(session: AsyncSession, caller: Caller, card_id: int) -> MatchBody:
    """Read the match within the transaction that changes it. Raises NotFound."""
    return await _read(rows_of(session), caller, card_id)


async def _read(rows: Rows, caller: Caller, card_id: int) -> MatchBody:
    values = {"seller": caller.seller_id, "member": caller.member_id, "card": card_id}
    found = await rows(_MATCH, values)
    if not found:
        raise errors.NotFound(f"there is no card {card_id}")
    row = list(found[0])
    card = dict(zip(_OF_CARD, row, strict=False))
    match, contribution, product_id, *more = row[len(_OF_CARD) :]
    product = dict(zip(_OF_PRODUCT, more, strict=False))
    settled_by, settled_at = more[len(_OF_PRODUCT) :]
    keys = keys_of_row(card)
    how = "settled" if settled_by else "contributed" if contribution else match
    parts = [
        PartBody(name, card[on_card], *_compared(product, keys, in_catalog, key, product_id))
        for name, on_card, in_catalog, key in PARTS
    ]
    evidence = weigh(how, keys, None if product_id is None else product)
    candidates = []
    if product_id is None and keys["name_key"]:
        names = ("game", "name_key", "set_key", "number_key")
        near = await rows(_CANDIDATES, {name: keys[name] for name in names})
        candidates = [CandidateBody(*one) for one in near]
    return MatchBody(
        how,
        evidence.certainty,
        evidence.reasons,
        product_id,
        parts,
        candidates,
        settled_by,
        settled_at,
    )


def _compared(
    product: Mapping[str, Any],
    keys: Mapping[str, object],
    name: str,
    key: str,
    product_id: int | None,
) -> tuple[str | None, bool | None]:
    if product_id is None:
        return None, None
    theirs = product[key]
    same = theirs == keys[key]
    spoken = key == "language_key" and theirs in ANY_LANGUAGE
    return product[name], None if theirs is None or (spoken and not same) else same

"""Reads the picture of a product or a card, or draws a stand-in."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.pictures import objects
from cardsync.stock.pictures.encode_process import SIZES
from cardsync.stock.pictures.picture_addresses import OF_MARKETPLACE, OF_PRODUCT
from cardsync.stock.pictures.stand_in import Face, stand_in

_PRODUCT: Final = f"""
    SELECT p.game, coalesce(nullif(p.set_code, ''), p.set_name) AS set_name, p.number, p.rarity,
           p.provisional, NULL AS named, {OF_PRODUCT} AS address, NULL AS own
      FROM product p LEFT JOIN product q ON q.id = p.adopted_by
     WHERE p.id = :product
"""
# The picture of the card's `Photo URL` precedes the picture of its product. `own` is the seller's
# own photo, `named` is the marketplace's picture.
_CARD: Final = f"""
    SELECT c.product_line AS game, coalesce(nullif(p.set_code, ''), c.set_name) AS set_name,
           c.number, c.rarity, false AS provisional, {OF_MARKETPLACE} AS named,
           {OF_PRODUCT} AS address, own.digest AS own
      FROM card c
      LEFT JOIN product p ON p.id = c.product_id LEFT JOIN product q ON q.id = p.adopted_by
      LEFT JOIN card_photo own ON own.seller_id = :seller AND own.address = c.photo_url
     WHERE c.seller_id = :seller AND which AND {VISIBLE}
     ORDER BY c.id LIMIT 1
"""
# Digests are read by a separate statement, because a join would read all pictures if the database
# is distributed.
_DIGESTS: Final = """
    SELECT address, digest FROM picture WHERE address = ANY(CAST(:addresses AS text[]))
"""
_OF_SKU: Final = "(c.marketplace_id = :sku OR (c.custom AND c.listing_id = :sku))"

_OF_ITEM: Final = _OF_SKU.replace(
    ":sku",
    "(SELECT i.sku_id FROM order_item i WHERE i.seller_id = :seller AND i.id = :item)",
)


def _card(which: str) -> str:
    return _CARD.replace("which", which)


class PictureAnswer(NamedTuple):
    """A picture or a stand-in. `kept` is false for a stand-in, which a picture may replace
    later.
    """

    content: bytes
    media_type: str
    tag: str
    kept: bool


async def of_product(
    database: Database, caller: Caller, store: Store, product_id: int, size: str
) -> PictureAnswer:
    """Return the shared picture of a product; an unknown product gets an empty stand-in."""
    return await _shown(database, caller, store, size, _PRODUCT, product=product_id)


async def of_card(
    database: Database, caller: Caller, store: Store, card_id: int, size: str
) -> PictureAnswer:
    """Return the picture of one of the seller's own cards."""
    return await _shown(database, caller, store, size, _card("c.id = :card"), card=card_id)


async def of_sku(
    database: Database, caller: Caller, store: Store, sku: int, size: str
) -> PictureAnswer:
    """Return the picture of the seller's own card with the SKU of an order item."""
    return await _shown(database, caller, store, size, _card(_OF_SKU), sku=sku)


async def of_item(
    database: Database, caller: Caller, store: Store, item_id: int, size: str
) -> PictureAnswer:
    """Return the picture of the seller's card in an order item."""
    return await _shown(database, caller, store, size, _card(_OF_ITEM), item=item_id)


async def _shown(
    database: Database, caller: Caller, store: Store, size: str, statement: str, **ids: int
) -> PictureAnswer:
    """Return a picture or a stand-in. Raises NotFound for an unknown size."""
    if size not in SIZES:
        raise errors.NotFound(f"there is no size {size[:20]}; there are {', '.join(SIZES)}")
    values: dict[str, object] = {"seller": caller.seller_id, "member": caller.member_id, **ids}
    async with database.tenant(caller.seller_id) as session:
        row = (await session.execute(text(statement), values)).one_or_none()
        if row is None:
            return _drawn(Face(""))
        shared = await _digest(session, row.named, row.address)
    for digest, seller_id in ((row.own, caller.seller_id), (shared, None)):
        if digest and (content := await objects.read(store, digest, size, seller_id)):
            return PictureAnswer(content, "image/webp", f'"{digest}-{size}"', True)
    # A provisional product is made from one seller's row, which other sellers must not see.
    hidden = Face(row.game or "")
    face = Face(row.game or "", row.set_name or "", row.number or "", row.rarity or "")
    return _drawn(hidden if row.provisional else face)


async def _digest(session: AsyncSession, named: str | None, address: str | None) -> str | None:
    """Return the digest of the picture at the address `named`, else at `address`; None if neither
    is stored.
    """
    found = await session.execute(text(_DIGESTS), {"addresses": [named, address]})
    digests: dict[str | None, str | None] = {row.address: row.digest for row in found}
    return digests.get(named) or digests.get(address)


def _drawn(face: Face) -> PictureAnswer:
    content = stand_in(face).encode()
    tag = hashlib.sha256(content).hexdigest()[:16]
    return PictureAnswer(content, "image/svg+xml", f'"{tag}"', False)

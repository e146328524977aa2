"""Settles a match: the seller chooses the product of a card, and later imports keep that product
for the SKU. The card's lists, places and history stay, because they belong to the card.

The choice has its own row in `settled_match`, because an import that runs at the same time may
write its own match to the card. The import's last transaction restores the chosen product.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run
from cardsync.stock.cards.models import Card

KIND: Final = "card.match_settled"
_CARD = """
    SELECT c.product_id, c.match, c.product_name FROM card c
     WHERE c.seller_id = :seller AND c.id = :card AND c.contribution IS NULL FOR UPDATE
"""
_PRODUCT = """
    SELECT id, game, product_name, set_name, number FROM product
     WHERE id = :product AND NOT provisional
"""
_BIND = """
    UPDATE card SET product_id = :product, match = :match, updated_at = :now
     WHERE seller_id = :seller AND id = :card
"""
_CHOICE = """
    SELECT product_id, was_product_id, was_match FROM settled_match
     WHERE seller_id = :seller AND card_id = :card
"""
_CHOOSE = """
    INSERT INTO settled_match
           (seller_id, card_id, product_id, was_product_id, was_match, settled_by, settled_at)
    VALUES (:seller, :card, :product, :was_product, :was_match, :actor, :now)
    ON CONFLICT (seller_id, card_id)
       DO UPDATE SET product_id = excluded.product_id, settled_by = excluded.settled_by,
                     settled_at = excluded.settled_at
"""
_FORGET = "DELETE FROM settled_match WHERE seller_id = :seller AND card_id = :card"
_CHOSEN = "SELECT card_id FROM settled_match WHERE seller_id = :seller"
_KEEP = """
    UPDATE card c SET product_id = s.product_id, match = 'matched'
      FROM settled_match s
     WHERE s.seller_id = :seller AND c.seller_id = :seller AND c.id = s.card_id
       AND c.id = ANY (CAST(:cards AS bigint[]))
       AND (c.product_id <> s.product_id OR c.match <> 'matched')
"""


class _Bound(NamedTuple):
    product_id: int
    match: str
    product_name: str


async def settle_match(
    session: AsyncSession,
    caller: Caller,
    card_id: int,
    product_id: int,
    now: datetime,
) -> None:
    """Bind the card's SKU to the product. Raises NotFound, InvalidPayload."""
    caller.must_be_owner()
    named = {"seller": caller.seller_id, "card": card_id}
    was = await _bound(session, named)
    product = await _product(session, caller, product_id)
    earlier = (await session.execute(text(_CHOICE), named)).first()
    if earlier is not None and earlier.product_id == was.product_id == product_id:
        return
    values = named | {
        "product": product_id,
        "match": "matched",
        "was_product": was.product_id,
        "was_match": was.match,
        "actor": caller.actor,
        "now": now,
    }
    await run(session, _BIND, values)
    await run(session, _CHOOSE, values)
    note(
        session,
        caller,
        KIND,
        f"card {card_id} is {product.product_name}"
        + (f" ({product.number})" if product.number else "")
        + f" of {product.set_name}",
        now,
        before={"product_id": was.product_id, "match": was.match},
        after={"product_id": product_id, "match": "matched"},
        undo={
            "kind": KIND,
            "card": card_id,
            "became": product_id,
            "was": was.product_id,
            "match": was.match,
            "chosen": earlier is not None,
        },
    )


async def _product(session: AsyncSession, caller: Caller, product_id: int) -> Any:
    product = (await session.execute(text(_PRODUCT), {"product": product_id})).first()
    if product is None:
        raise errors.InvalidPayload(f"product_id: the catalog has no product {product_id}")
    if product.game not in caller.account.product_lines:
        raise errors.InvalidPayload(
            f"product_id: {product.game} is none of this account's product lines,"
            f" which product {product_id} is of"
        )
    return product


async def _bound(session: AsyncSession, named: Mapping[str, object]) -> _Bound:
    row = (await session.execute(text(_CARD), named)).first()
    if row is None:
        raise errors.NotFound(f"there is no card {named['card']}")
    return _Bound(*row)


async def _bound_before(undoing: Undoing) -> Swap:
    card, was = undoing["card"], {"product_id": undoing["was"], "match": undoing["match"]}
    return Swap({card: {"product_id": undoing["became"]}}, {card: was})


async def _chosen_before(undoing: Undoing) -> None:
    was = {"product": undoing["was"], "was_product": undoing["was"], "was_match": undoing["match"]}
    await undoing.run(_CHOOSE if undoing["chosen"] else _FORGET, **was)


UNDO: Final = UndoRows(
    RowImages(Card, "product_id", unseen=("match",)),
    "card {card} is now matched to product {standing[product_id]}",
    lock=None,
    read=_bound_before,
    then=_chosen_before,
)


async def keep_settled(session: AsyncSession, seller_id: int) -> None:
    """Restore the chosen products of cards that an import has bound to other products. A shop that
    chose none pays one index read, and no shop a read of all its cards.
    """
    cards = list(await session.scalars(text(_CHOSEN), {"seller": seller_id}))
    if cards:
        await run(session, _KEEP, {"seller": seller_id, "cards": cards})

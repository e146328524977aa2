"""Lists, places and sales put into a seller's tables, and what a search finds over HTTP."""

from __future__ import annotations

from typing import Any

from builders import Seller
from cardsync.platform.shelf_place import Box
from cardsync.stock.lists.seller_lists import slug_of
from cardsync.stock.search.known_names import name_key
from cardsync.stock.shelving.box_numbers import made_box


async def a_list(seller: Seller, name: str, *card_ids: int, slug: str | None = None) -> int:
    """A list with these cards on it; returns its id."""
    [made] = await seller.service.sql(
        seller.id,
        "INSERT INTO card_list (seller_id, name, name_key, slug, position)"
        " VALUES (:seller, :name, :key, :slug, 1) RETURNING id",
        seller=seller.id,
        name=name,
        key=name_key(name),
        slug=slug or slug_of(name),
    )
    for card_id in card_ids:
        await seller.service.sql(
            seller.id,
            "INSERT INTO card_list_entry (seller_id, list_id, card_id)"
            " VALUES (:seller, :list, :card)",
            seller=seller.id,
            list=made["id"],
            card=card_id,
        )
    return int(made["id"])


async def a_place(seller: Seller, card_id: int, box: Box, slot: int, quantity: int = 1) -> None:
    async with seller.service.database.tenant(seller.id) as session:
        number = (await made_box(session, seller.id, box)).number
    await seller.service.sql(
        seller.id,
        "INSERT INTO card_location (seller_id, card_id, box, slot, quantity)"
        " VALUES (:seller, :card, :box, :slot, :quantity)",
        seller=seller.id,
        card=card_id,
        box=number,
        slot=slot,
        quantity=quantity,
    )


async def search(seller: Seller, text: str | None = None, **parameters: Any) -> dict[str, Any]:
    """The page that GET /api/cards answers."""
    given = parameters if text is None else {"search": text, **parameters}
    answer = await seller.get("/api/cards", params=given)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def found(seller: Seller, text: str, **parameters: Any) -> list[int]:
    """The marketplace ids of what a search finds, in their order."""
    page = await search(seller, text, per_page=200, **parameters)
    assert page["query_errors"] == [], page
    return sorted(card["marketplace_id"] for card in page["cards"])


async def card_ids(seller: Seller) -> dict[int, int]:
    """Row ids by marketplace id."""
    return {card["marketplace_id"]: card["id"] for card in await seller.cards()}


async def explained(seller: Seller, marketplace_id: int = 1) -> dict[str, Any]:
    """The explanation of a card's price."""
    answer = await seller.get(f"/api/v1/pricing/explain/{marketplace_id}")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def on_shelf(who: Any, box: Box = 1) -> dict[tuple[int, str], int]:
    """How many copies of which card are in which slot of a box."""
    cards = (await who.get(f"/api/shelves/{box}")).json()["cards"]
    return {(card["card_id"], card["slot"]): card["quantity"] for card in cards}

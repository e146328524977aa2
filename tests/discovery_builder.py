"""Requests of discovery, and the cards that shops of its tests list."""

from __future__ import annotations

from typing import Any

from builders import a_row
from cardsync.shop.accounts.sellers import change_seller

PATH = "/api/discovery/availability"


async def change(service: Any, seller: Any, **values: Any) -> None:
    async with service.database.tenant(seller.id) as session:
        await change_seller(session, seller.id, values)


async def find(seller: Any, *cards: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
    answer = await seller.post(PATH, json={"cards": list(cards), **body})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["scope"] == "network_discovery"
    assert [one["query"] for one in told["results"]] == list(cards)
    return told["results"]


def a_card(id: int, name: str, set_name: str, number: str, **cells: Any) -> dict[str, str]:
    usual = {"line": "Pokemon", "set": set_name, "name": name, "number": number, "rarity": "Rare"}
    return a_row(id, **(usual | {"Condition": "Near Mint Holofoil"} | cells))

"""Quick-add as a seller's browser and agent ask for it over HTTP; the agent's answers, which come
with its task's result, are given to the operations that take them.
"""

from __future__ import annotations

from typing import Any

from browsers import Browser
from builders import Seller, read_csv
from cardsync.platform import clock
from cardsync.stock.quick_add import settle

JAGUAR = {
    "name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152", "game": "magic",
    "condition": "NM", "quantity": 2, "price": "1.25",
}  # fmt: skip


async def drafted(who: Any, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await who.post("/api/quick_add", json={"entries": list(entries)})
    assert answer.status_code == 201, answer.text
    made: list[dict[str, Any]] = answer.json()["entries"]
    return made


async def published(who: Any, *entries: dict[str, Any]) -> list[int]:
    """The ids of entries that are drafted and published at once."""
    ids = [entry["id"] for entry in await drafted(who, *entries)]
    answer = await who.post("/api/quick_add/publish", json={"ids": ids})
    assert answer.status_code == 200, answer.text
    return ids


async def entry_of(who: Any, entry_id: int) -> dict[str, Any]:
    page = (await who.get("/api/quick_add", params={"per_page": 200})).json()
    [entry] = [entry for entry in page["entries"] if entry["id"] == entry_id]
    return dict(entry)


async def file_served(
    seller: Seller,
    agent: str | None = None,
    has: int | None = None,
) -> tuple[int | None, list[int], bytes]:
    """The number of the file of listings in the next export, its entries and its bytes."""
    said = {"X-Agent-Id": agent, "X-Quick-Add-Has": None if has is None else str(has)}
    answer = await seller.export(**{name: value for name, value in said.items() if value})
    assert answer.status_code == 200, answer.text
    number = answer.headers.get("X-Quick-Add-File")
    ids = [int(id) for id in answer.headers.get("X-Quick-Add-Ids", "").split(",") if id]
    return int(number) if number else None, ids, answer.content


async def served(seller: Seller) -> dict[int, dict[str, str]]:
    """The rows of quick-add in the next export, by entry."""
    answer = await seller.export()
    assert answer.status_code == 200
    assert "ETag" not in answer.headers or "X-Quick-Add-Ids" not in answer.headers
    ids = [int(id) for id in answer.headers.get("X-Quick-Add-Ids", "").split(",") if id]
    rows = read_csv(answer.content) if ids else []
    assert len(rows) == len(ids)
    return dict(zip(ids, rows, strict=True))


async def waiting_tasks(seller: Seller) -> list[dict[str, Any]]:
    return await seller.service.sql(
        seller.id,
        "SELECT id, payload FROM agent_task"
        " WHERE kind = 'quick_add_listing' AND status = 'pending'",
    )


async def acknowledged(seller: Seller, *ids: int) -> list[int]:
    async with seller.service.database.tenant(seller.id) as session:
        return await settle.acknowledge(session, seller.id, ids, clock.now())


async def rejected(seller: Seller, reasons: dict[int, str]) -> list[int]:
    async with seller.service.database.tenant(seller.id) as session:
        return await settle.reject(session, seller.id, reasons, clock.now())


async def not_sent(seller: Seller, *ids: int) -> list[int]:
    async with seller.service.database.tenant(seller.id) as session:
        return await settle.not_sent(session, seller.id, ids, "the folder was away", clock.now())


async def settled(browser: Browser, entry_id: int, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await browser.post(f"/api/quick_add/{entry_id}/settle", json=body)
    return answer.status_code, answer.json()

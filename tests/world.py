"""A shop as many tests look at it: what it is told, its cards' prices, and refusals; and how its
state machines are played.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from click.testing import Result
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from builders import Seller, SellerBuilder, read_csv


async def played(machine: Any, a_seller: SellerBuilder, how: settings) -> None:
    """Plays a state machine, whose rules are not async, beside this loop."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(
        run_state_machine_as_test, lambda: machine(loop, a_seller), settings=how
    )


async def status(seller: Seller) -> dict[str, Any]:
    """Return what the sync app hears."""
    return (await seller.get("/api/v1/status")).json()


async def phase(seller: Seller) -> str:
    return (await status(seller))["phase"]


async def state_of(seller: Seller) -> Any:
    found = "SELECT * FROM sync_state WHERE seller_id = :id"
    return (await seller.service.sql(seller.id, found, id=seller.id))[0]


async def tasks(seller: Seller, status: str = "pending") -> Any:
    found = "SELECT * FROM agent_task WHERE seller_id = :id AND status = :status"
    return await seller.service.sql(seller.id, found, id=seller.id, status=status)


async def targets(seller: Seller) -> dict[int, str | None]:
    """The target price of each card."""
    cards = await seller.cards()
    return {
        card["marketplace_id"]: card["target_price"] and str(card["target_price"]) for card in cards
    }


async def exported(seller: Seller) -> dict[int, str]:
    """The price of each card in the file for the marketplace."""
    answer = await seller.export()
    assert answer.status_code == 200
    rows = read_csv(answer.content)
    return {int(row["TCGplayer Id"]): row["TCG Marketplace Price"] for row in rows}


async def made(seller: Seller, path: str = "/api/pricing/rules", **fields: Any) -> dict[str, Any]:
    """Makes what its rule, sale or preset of prices is, published."""
    answer = await seller.post(path, json={"name": "A rule", "state": "published"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def sent(seller: Seller, path: str, status: int = 201, **body: Any) -> dict[str, Any]:
    """The answer of pricing."""
    answer = await seller.post(f"/api/pricing/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def printed(result: Result) -> str:
    """Run a command that succeeds, and return its output."""
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def refused(result: Result) -> str:
    """The one line of a command that is refused."""
    assert result.exit_code == 1, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    return lines[0]

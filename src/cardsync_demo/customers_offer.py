"""Makes the demo's customer an offer for the uploaded collection."""

from __future__ import annotations

from typing import Final

import httpx
from rich.console import Console

from cardsync.platform.value_types import JsonObject

CUSTOMER: Final = {"name": "Karl", "contact": "karl@example.invalid"}
DAYS: Final = 7


def show(console: Console, http: httpx.Client, collection_id: int) -> None:
    """Make an offer at the prices of the buy rules, and print it. If the rules value no card of the
    collection, print nothing.
    """
    customer = http.post("/api/buying/customers", json=CUSTOMER).json()
    body = {"collection_id": collection_id, "customer_id": customer["id"]}
    drafted = http.post("/api/buying/offers", json=body)
    if drafted.is_error:
        return
    offer: JsonObject = drafted.json()
    seen = {"revision": offer["revision"], "days": DAYS}
    made = http.post(f"/api/buying/offers/{offer['id']}/offer", json=seen)
    if made.is_success:
        console.print(
            f"[green]✓[/] offer {offer['id']}: ${offer['totals']['cash']} in cash or"
            f" ${offer['totals']['credit']} in credit, for {DAYS} days"
        )

"""Sets up the demo's network: two more shops that joined, each with a part of the demo's stock at
its own prices. Prints how a basket is split over all three shops.
"""

from __future__ import annotations

import csv
import io
import time
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import NamedTuple

import httpx
from rich.console import Console

from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject, NamedRow
from cardsync.shop.accounts import sellers
from cardsync_demo import demo_catalog
from cardsync_demo.order_files import MOST_WAIT, finished

PRICE = "TCG Marketplace Price"
_CENT = Decimal("0.01")
_WANTED = 6


class Shop(NamedTuple):
    """A shop of the network. Its stock is the demo's rows except every third one, beginning with
    row `part`.
    """

    name: str
    factor: Decimal
    part: int
    postage_steps: str


OWN = Shop("Demo Cards", Decimal(1), 0, "0:1.27,20:4.50")
OTHERS = (
    Shop("Binder & Box", Decimal("0.94"), 1, "0:0.99,30:3.20"),
    Shop("Second Sleeve", Decimal("1.03"), 2, "0:1.49,15:0"),
)


def stock_of(shop: Shop) -> bytes:
    """Return the export of a shop: two thirds of the demo's rows, at the shop's own prices."""
    with demo_catalog.INVENTORY.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        output = io.StringIO()
        writer = csv.DictWriter(output, reader.fieldnames or [], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        for at, row in enumerate(reader):
            price = _price(row)
            if price is not None and at % 3 != shop.part:
                writer.writerow(row | {PRICE: str((price * shop.factor).quantize(_CENT))})
    return output.getvalue().encode()


def _price(row: NamedRow) -> Decimal | None:
    try:
        return Decimal(row[PRICE] or "")
    except (InvalidOperation, KeyError, TypeError):
        return None


def basket() -> list[JsonObject]:
    """Return the most expensive cards of the demo's stock in the form that a buyer sends."""
    with demo_catalog.INVENTORY.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Product Line"] == "Pokemon"]
    held = [(price, row) for row in rows if _held(row) and (price := _price(row)) is not None]
    held.sort(key=lambda one: -one[0])
    named = {row["Product Name"]: row["Set Name"] for _, row in held}
    return [
        {"name": name, "set": of, "any_printing": True}
        for name, of in list(named.items())[:_WANTED]
    ]


def _held(row: NamedRow) -> bool:
    return str(row["Total Quantity"]).isdigit() and int(row["Total Quantity"]) > 0


async def join(settings: Settings, seller_id: int, lines: list[str]) -> list[str]:
    """Let the demo's seller and the two shops join the network; return the two shops' API keys."""
    assert settings.database_url is not None
    keys = []
    async with Database.open(
        settings.database_url, pool=2, hot_pool=1, seal=partial(seal, settings)
    ) as opened:
        await _consent(opened, seller_id, OWN)
        for number, shop in enumerate(OTHERS):
            async with opened.shared() as session:
                made = await sellers.create_seller(
                    session,
                    name=shop.name,
                    email=f"shop-{number}-{clock.now():%Y%m%d%H%M%S}@example.invalid",
                    plan="founder",
                    lines=lines,
                    sync_mode="full",
                )
            await _consent(opened, made.seller_id, shop)
            keys.append(made.api_key)
    return keys


async def _consent(database: Database, seller_id: int, shop: Shop) -> None:
    values = {
        "network_consent": True,
        "network_published": True,
        "store_name": shop.name,
        "postage_steps": shop.postage_steps,
    }
    async with database.tenant(seller_id) as session:
        await sellers.change_seller(session, seller_id, values)


def show(console: Console, server: str, api_key: str, keys: list[str]) -> None:
    """Upload the shops' stock, wait for their listings in the network, and print how a basket is
    split.
    """
    for shop, key in zip(OTHERS, keys, strict=True):
        with _client(server, key) as http:
            headers = {"Content-Type": "text/csv"}
            answer = http.post("/api/v1/sync", content=stock_of(shop), headers=headers)
            answer.raise_for_status()
            finished(http, answer.json()["upload_id"])
    ends = clock.monotonic() + MOST_WAIT
    for key in keys:
        with _client(server, key) as http:
            while not http.get("/api/network").json()["printings"] and clock.monotonic() < ends:
                time.sleep(0.2)
    with _client(server, api_key) as http:
        found = _split(http)
    copies = sum(len(parcel["items"]) for parcel in found["parcels"])
    console.rule(f"[bold]a basket of {copies} cards over the network", align="left")
    for parcel in found["parcels"]:
        items = len(parcel["items"])
        console.print(
            f"  {parcel['store_name']}: {items} card{'s' if items > 1 else ''},"
            f" postage {parcel['postage']:.2f}"
            f"{' (estimated)' if parcel.get('postage_estimated') else ''}",
            markup=False,
        )
    gap = (
        "nothing is cheaper"
        if not found["gap"]
        else f"the best is at most {found['gap']:.1%} cheaper"
    )
    console.print(f"  {found['total']:.2f} with postage; {gap}")


def _client(server: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=server, headers=headers, timeout=60)


def _split(http: httpx.Client) -> JsonObject:
    answer = http.post("/api/discovery/basket", json={"cards": basket()})
    answer.raise_for_status()
    found: dict[str, object] = answer.json()
    return found

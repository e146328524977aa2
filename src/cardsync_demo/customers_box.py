"""Uploads a customer's collection in the demo: a Collectr file of some of the shop's cards, with
one row that cannot be matched. The standard buy rules value the collection.
"""

from __future__ import annotations

import csv
import io
from time import sleep
from typing import Final

import httpx
from rich.console import Console
from sqlalchemy import text

from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject
from cardsync_demo import customers_offer
from cardsync_demo.order_files import MOST_WAIT

NAME: Final = "Karl's binder.csv"
_HEADER: Final = (
    "Portfolio Name,Category,Set,Product Name,Card Number,Rarity,Variance,Grade,Card Condition,"
    "Average Cost Paid,Quantity,Market Price,Price Override,Watchlist,Date Added,Notes"
)
_CARDS: Final = text("""
    SELECT c.product_line, c.set_name, c.product_name, c.number, c.rarity, c.printing
      FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND NOT c.custom AND c.match = 'matched'
       AND c.condition = 'NM' AND c.language = 'English'
     ORDER BY c.market DESC NULLS LAST, c.id LIMIT 200
""")
_CONDITIONS: Final = ("Near Mint", "Near Mint", "Lightly Played", "Moderately Played")


async def file_of(settings: Settings, seller_id: int) -> bytes:
    """Return a file with every seventh of the shop's expensive cards."""
    assert settings.database_url is not None
    async with (
        Database.open(settings.database_url, pool=1, hot_pool=1) as opened,
        opened.tenant(seller_id) as session,
    ):
        rows = list(await session.execute(_CARDS, {"seller": seller_id}))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_HEADER.split(","))
    for place, row in enumerate(rows[::7]):
        line, set_name, name, number, rarity, finish = row
        condition = _CONDITIONS[place % len(_CONDITIONS)]
        cells = ["Main", LABEL_BY_NAME[line], set_name, name, number, rarity, finish]
        writer.writerow([*cells, "Ungraded", condition, 0, 1 + place % 4, "", 0, "false", "", ""])
    for line, _, name, *_ in rows[:1]:
        cells = ["Main", LABEL_BY_NAME[line], "Unknown Set", name, "", "", "Normal"]
        writer.writerow([*cells, "Ungraded", "Near Mint", 0, 1, "", 0, "false", "", ""])
    return out.getvalue().encode()


def show(console: Console, server: str, api_key: str, file: bytes) -> None:
    """Upload the file to the shop, and print the collection's value."""
    console.rule("[bold]a customer's collection arrives", align="left")
    headers = {"Authorization": f"Bearer {api_key}"}
    with httpx.Client(base_url=server, headers=headers, timeout=60) as http:
        http.post("/api/buying/presets/standard").raise_for_status()
        sent = http.post("/api/buying/collections", params={"name": NAME}, content=file)
        sent.raise_for_status()
        found: JsonObject = sent.json()
        path = f"/api/buying/collections/{found['id']}"
        until = clock.monotonic() + MOST_WAIT
        while found["state"] == "queued" and clock.monotonic() < until:
            sleep(0.2)
            found = http.get(path).json()
        value = http.get(f"{path}/value").json()
        console.print(
            f"[green]✓[/] {found['format_label']}: {found['copies']} cards,"
            f" {found['waiting']} to choose; the standard rules pay ${value['cash']} in cash"
            f" or ${value['credit']} in credit for {value['bought']}"
        )
        customers_offer.show(console, http, found["id"])

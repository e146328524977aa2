"""Makes a small shop for the tests of pages in a browser, and for the screenshots: the demo's
cards, two days of prices, a list, and orders. Everything is sent over HTTP, as a shop's agent sends
it.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
from tests.system.processes import Seller, Server
from tests.system.processes import until as eventually

from builders import a_csv, a_row, an_order
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.shop.operators import appoint
from cardsync_demo.demo_catalog import INVENTORY

HOSTILE = "<b onclick='x'>A & \"B\"</b> \u202eright to left\u202c zero\u200bwidth " + "long" * 60
NOW = datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Shop:
    seller: Seller
    name: str
    email: str
    password: str
    upload_id: int
    session_id: int


def a_shop_with_pages(server: Server, *, hostile: bool = True) -> Shop:
    """A shop whose owner is an operator, too."""
    name = "Aunt Agatha's Extraordinary Card Emporium"
    seller = server.seller(name=name, capped=True)

    async def appoint_owner(database: Database) -> None:
        async with database.shared() as session:
            await appoint.add(session, seller.email, clock.now())

    server.in_database(appoint_owner, owner=True)
    rows = _stock(hostile)
    for days in (9, 6, 3, 0):
        exported_at = (NOW - timedelta(days=days, minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        upload_id = seller.upload(_as_of(rows, days), exported_at)
        report = seller.finished(upload_id)
        assert report["state"] == "done", report
    with seller.http() as http:
        _send(http, "/api/v1/orders", _orders(hostile))
        _send(http, "/api/v1/order_items", _items(rows))
        listed = http.post("/api/lists", json={"name": HOSTILE[:80] if hostile else "Con box"})
        assert listed.status_code in (200, 201), listed.text
        http.post("/api/lists", json={"name": "Show case"})
        opened = _a_pull(http)
        ended = {"status": "success", "steps": [{"name": "inventory", "status": "success"}]}
        http.post("/api/v1/sync/log", json=ended)
    return Shop(seller, name, seller.email, seller.password, upload_id, opened["id"])


def recommended(shop: Shop) -> None:
    """Let a rule ask the own prices of a game, so that the market price recommends some; of the
    others, what rises far waits for a look.
    """
    rule = {
        "name": "Pokemon as it is",
        "query": "game:pokemon",
        "price_source": "current",
        "state": "published",
        "priority": 1,
    }
    limits = {"review_up_bp": 1_500}
    with shop.seller.http() as http:
        assert http.patch("/api/pricing/settings", json=limits).status_code == 200
        assert http.post("/api/pricing/rules", json=rule).status_code == 201
        assert http.post("/api/pricing/reprice").status_code == 202
        eventually(lambda: http.get("/api/recommendations").json()["total"] > 2, "advice")
        eventually(lambda: http.get("/api/pricing/reviews").json()["total"] > 3, "reviews")


def lived_in(shop: Shop) -> None:
    """Give the shop what more pages show: sales of another month, a refund, a pin, a promotion, and
    a catalog that its buy rules know.
    """
    earlier = [_an_earlier_order(n) for n in range(12)]
    refund = {"order_number": _order_number(30), "type": "Full"}
    promotion = {
        "name": "Weekend",
        "adjust_bp": -1_000,
        "query": "price>=5",
        "starts_at": "2031-01-01T00:00:00Z",
        "ends_at": "2031-01-03T00:00:00Z",
    }
    shop.seller.server.sql("UPDATE product SET provisional = false")
    with shop.seller.http() as http:
        _send(http, "/api/v1/orders", earlier)
        _send(http, "/api/v1/order_refunds", [refund])
        [card] = http.get("/api/cards", params={"search": "dragon", "per_page": 1}).json()["cards"]
        pin = f"/api/pricing/pins/{card['marketplace_id']}"
        assert http.put(pin, json={"price": card["price"]}).status_code == 200
        assert http.post("/api/pricing/sales", json=promotion).status_code == 201
        assert http.post("/api/buying/presets/hungry").status_code == 200
        assert http.patch("/api/buying/buylist", json={"is_open": True}).status_code == 200
        eventually(lambda: http.get("/api/orders").json()["total"] == 52, "earlier orders")
        eventually(lambda: http.get("/api/returns").json()["total"] == 1, "the refund")


def _an_earlier_order(n: int) -> dict[str, Any]:
    day = (NOW - timedelta(days=40 + n)).strftime("%m/%d/%Y")
    name = f"Buyer {n % 31}"
    return an_order(f"E-{n}", buyer_name=name, order_date=day, total_amt=31.81 + n)


def _order_number(n: int) -> str:
    return f"D0D0CAFE-{n:06X}-{n * 977:05X}"


def _a_pull(http: httpx.Client) -> dict[str, Any]:
    """Open a pull once the orders are there with their items."""
    query = {"pull_session": "none", "per_page": 50}

    def arrived() -> bool:
        found = http.get("/api/orders", params=query).json()["orders"]
        return len(found) > 20 and all(order["items"] for order in found)

    eventually(arrived, "orders with their items")
    opened: dict[str, Any] = http.post("/api/pull_sessions", json={}).json()
    return opened


def _send(http: httpx.Client, path: str, rows: list[dict[str, Any]]) -> None:
    answer = http.post(path, json=rows)
    assert answer.status_code == 202, answer.text


def _stock(hostile: bool) -> list[dict[str, str]]:
    text = INVENTORY.read_text(encoding="utf-8-sig", errors="replace")
    rows = [
        row
        for row in csv.DictReader(io.StringIO(text))
        if None not in row and None not in row.values()
    ]
    named = [a_row(1, name=HOSTILE, set=HOSTILE, number=HOSTILE[:60])] if hostile else []
    return [row for row in rows if row["Product Line"] != "Sports Cards"] + named


def _as_of(rows: list[dict[str, str]], days: int) -> bytes:
    """The export of some days ago: its market prices wander."""
    chance = Random(days)
    return a_csv(*(_moved(row, 1 + chance.uniform(-0.02, 0.02) * days) for row in rows))


def _moved(row: dict[str, str], by: float) -> dict[str, str]:
    market = row["TCG Market Price"]
    moves = market.replace(".", "", 1).isdigit()
    return row | ({"TCG Market Price": f"{float(market) * by:.2f}"} if moves else {})


def _orders(hostile: bool) -> list[dict[str, Any]]:
    statuses = ["Ready to Ship", "Shipped - In Transit", "Completed - Paid", "Canceled"]
    return [
        an_order(
            _order_number(n),
            buyer_name=HOSTILE[:80] if hostile and n == 1 else f"Buyer {n % 31}",
            order_date=(NOW - timedelta(days=n // 2)).strftime("%m/%d/%Y"),
            status=statuses[min(n // 6, 2)] if n != 17 else statuses[3],
            product_amt=10.5 + n,
            total_amt=round(11.81 + n, 2),
        )
        for n in range(40)
    ]


def _items(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {
            "order_number": _order_number(n),
            "product_name": row["Product Name"],
            "product_line": row["Product Line"],
            "set_name": row["Set Name"],
            "condition": row["Condition"],
            "number": row["Number"],
            "sku_id": row["TCGplayer Id"],
            "quantity": 1 + n % 2,
        }
        for n in range(40)
        for row in Random(n).sample(rows, 1 + n % 3)
    ]

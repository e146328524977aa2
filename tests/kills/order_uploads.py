"""Uploads of orders, items, shipping and refunds that depend on each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.room import Work, held
from tests.system.processes import Server, until

ORDERS = 600
SNAPSHOT = {
    "orders": """
        SELECT order_number, buyer_name, order_date, status, total_amt::text, refund_amt::text,
            shipping_method, shipping_type, items_total,
               items_quantity, product_lines FROM orders WHERE seller_id = %(seller)s
               ORDER BY order_number
    """,
    "items": """
        SELECT o.order_number, i.sku_id, i.product_name, i.quantity, i.unit_price::text
        FROM order_item i
          JOIN orders o ON o.seller_id = i.seller_id AND o.id = i.order_id
          WHERE i.seller_id = %(seller)s
         ORDER BY o.order_number, i.sku_id, i.product_name
    """,
    "uploads": """
        SELECT kind, state, error_code, report->>'applied' AS applied, report->>'skipped' AS skipped
          FROM upload WHERE seller_id = %(seller)s ORDER BY id
    """,
}
HOLD = "SELECT 1 FROM orders WHERE seller_id = %(seller)s AND order_number = %(number)s FOR UPDATE"
LATE = f"A-{ORDERS - 2:05}"


def history() -> list[tuple[str, list[dict[str, Any]]]]:
    """Return uploads that change each other's orders, replace lines, and refund unknown orders."""
    numbers = [f"A-{number:05}" for number in range(ORDERS)]
    paid = {
        "buyer_name": "Some Buyer",
        "order_date": "07/03/2026",
        "status": "Paid",
        "total_amt": "12.50",
    }
    items = [
        {"order_number": n, "sku_id": sku, "quantity": 1, "product_line": "Magic"}
        for n in numbers
        for sku in (1, 2)
    ]
    loose = [
        {"order_number": n, "product_name": f"loose {at}", "quantity": 2}
        for n in numbers[::3]
        for at in range(2)
    ]
    express = [{"order_number": n, "shipping_method": "Expedited"} for n in numbers[::2]]
    refunds = [{"order_number": n, "total_amt": "3.00"} for n in [*numbers[::5], "B-1", "B-2"]]
    return [
        ("order_items", items[:100]),
        ("orders", [{"order_number": n, **paid} for n in numbers]),
        ("order_items", items + loose),
        ("orders/shipping", express),
        ("order_refunds", refunds),
        ("order_items", loose),
        ("orders", [{"order_number": n, "status": "Shipped"} for n in numbers[::4]]),
    ]


UPLOADS = [(path, json.dumps(rows).encode()) for path, rows in history()]


class OrderUploads(Work):
    rounds = 100
    moments = (
        "while rows are being written",
        "before anything is applied",
    )

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.uploads: list[int] = []

    def send(self, begin: int, end: int) -> None:
        for path, body in UPLOADS[begin:end]:
            with self.seller.http() as http:
                answer = http.post(
                    f"/api/v1/{path}", content=body, headers={"Content-Type": "application/json"}
                )
            assert answer.status_code == 202, answer.text
            self.uploads.append(int(answer.json()["upload_id"]))

    def start(self) -> None:
        self.send(0, len(UPLOADS))

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment == "before anything is applied":
            # Each 202 is answered while there is no worker at all.
            for number in range(len(UPLOADS)):
                self.kill()
                self.send(number, number + 1)
            yield
            return
        self.send(0, 2)
        self.seller.finished(self.uploads[-1])
        with held(self.server, HOLD, seller=self.seller.id, number=LATE):
            self.send(2, len(UPLOADS))
            # The transaction dies with its worker and leaves nothing of itself.
            until(self.waits, "the worker to meet the locked row")
            assert not self.seller.sql("SELECT 1 FROM order_item WHERE seller_id = %(seller)s")
            yield

    def end(self) -> None:
        states = {self.seller.finished(upload)["state"] for upload in self.uploads}
        assert states == {"done"}, self.server.said()[-2000:]

    def taken(self) -> dict[str, Any]:
        return {name: self.seller.sql(query) for name, query in SNAPSHOT.items()}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert len(taken["orders"]) == ORDERS + 2
        assert len(taken["items"]) == 2 * ORDERS + 2 * ORDERS // 3

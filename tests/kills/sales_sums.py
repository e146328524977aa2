"""A refresh of the kept sums of sales and customers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.room import Work, held
from tests.system.processes import Server, until

ORDERS = 40
DUE = "SELECT 1 FROM work_due WHERE seller_id = %(seller)s AND stream = 'sales_sums'"
STALE = "SELECT 1 FROM sales_stale WHERE seller_id = %(seller)s"
CUSTOMERS = "SELECT 1 FROM customer_sum WHERE seller_id = %(seller)s FOR UPDATE"
KEPT = {
    "days": """
        SELECT ordered, day, orders, gross::text FROM sales_sum
         WHERE seller_id = %(seller)s ORDER BY ordered, day
    """,
    "customers": """
        SELECT name, order_count, lifetime_total::text FROM customer_sum
         WHERE seller_id = %(seller)s ORDER BY name
    """,
    "numbers": """
        SELECT customers, repeat_customers FROM customer_count WHERE seller_id = %(seller)s
    """,
}


class SalesSums(Work):
    """Orders of two days and four customers; the next upload doubles what they cost."""

    moments = ("while it writes",)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.send("10.00")
        self.end()

    def send(self, total: str) -> None:
        rows = [
            {
                "order_number": f"A-{number:03}",
                "buyer_name": f"Buyer {number % 4}",
                "order_date": f"07/0{number % 2 + 1}/2026",
                "status": "Paid",
                "total_amt": total,
            }
            for number in range(ORDERS)
        ]
        headers = {"Content-Type": "application/json"}
        with self.seller.http() as http:
            answer = http.post("/api/v1/orders", content=json.dumps(rows), headers=headers)
        assert answer.status_code == 202, answer.text
        self.upload = int(answer.json()["upload_id"])

    def start(self) -> None:
        self.send("20.00")

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        with held(self.server, CUSTOMERS, seller=self.seller.id):
            self.start()
            until(self.waits, "the refresh to wait")
            assert self.totals() == {"200.00"}
            yield
            assert self.seller.sql(DUE)
            assert {row["lifetime_total"] for row in self.seller.sql(KEPT["customers"])} == {
                "100.00"
            }

    def totals(self) -> set[str]:
        """What each customer spent, as a reader is told."""
        rows = self.seller.get("/api/customers").json()["customers"]
        return {row["lifetime_total"] for row in rows}

    def end(self) -> None:
        self.seller.finished(self.upload)

        def over() -> bool:
            return not self.seller.sql(DUE) and not self.seller.sql(STALE)

        until(over, "the sums to be kept", 90)

    def taken(self) -> dict[str, Any]:
        return {name: self.seller.sql(query) for name, query in KEPT.items()}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert {row["lifetime_total"] for row in taken["customers"]} == {"200.00"}
        assert [row["gross"] for row in taken["days"]] == ["400.00", "400.00"]
        assert taken["numbers"] == [{"customers": 4, "repeat_customers": 4}]

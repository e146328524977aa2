"""A paid offer on its way into stock: its drafts, its lots and its state come together or not at
all, and once. The web process is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from tests.kills.room import Work, held
from tests.system.processes import Server, until

from builders import a_csv, a_row

CARDS = 5
LOTS = "LOCK TABLE lot IN EXCLUSIVE MODE"
DRAFTS = "SELECT quantity, cost, source FROM quick_add WHERE seller_id = %(seller)s ORDER BY id"
KEPT = "SELECT quantity, cost FROM lot WHERE seller_id = %(seller)s ORDER BY id"
STATE = "SELECT state FROM buying_offer WHERE seller_id = %(seller)s"
PRODUCTS = "SELECT DISTINCT product_id FROM card WHERE seller_id = %(seller)s ORDER BY product_id"


class IntoStock(Work):
    """An offer of five cards that the inventory has, paid in cash."""

    moments = ("between its drafts and its lots",)
    killed = "web"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.seller.upload(a_csv(*(a_row(n) for n in range(1, CARDS + 1))))
        until(lambda: len(self.seller.sql(PRODUCTS)) == CARDS, "the cards")
        price = {"condition": "NM", "copies": 2, "cash_each": "1.25"}
        lines = [row | price for row in self.seller.sql(PRODUCTS)]
        self.offer = self.sent("", lines=lines)
        for step, body in (
            ("offer", {}),
            ("accept", {"way": "cash"}),
            ("receive", {}),
            ("pay", {}),
        ):
            self.offer = self.sent(f"/{self.offer['id']}/{step}", **self.seen, **body)
        self._asking: threading.Thread | None = None

    @property
    def seen(self) -> dict[str, Any]:
        return {"revision": self.offer["revision"]}

    def sent(self, path: str, **body: Any) -> dict[str, Any]:
        with self.seller.http() as http:
            answer = http.post(f"/api/buying/offers{path}", json=body)
        assert answer.status_code in (200, 201), answer.text
        told: dict[str, Any] = answer.json()
        return told

    def stock(self) -> httpx.Response:
        with self.seller.http() as http:
            return http.post(f"/api/buying/offers/{self.offer['id']}/stock", json=self.seen)

    def start(self) -> None:
        def ask() -> None:
            with suppress(httpx.TransportError):
                self.stock()

        self._asking = threading.Thread(target=ask, daemon=True)
        self._asking.start()

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        with held(self.server, LOTS):
            self.start()
            until(self.waits, "the lots to wait")
            yield
        assert self._asking is not None
        self._asking.join(60)
        assert self.seller.sql(DRAFTS) == []
        assert self.seller.sql(STATE) == [{"state": "paid"}]

    def end(self) -> None:
        if self._asking is not None:
            self._asking.join(60)
        until(self.answers, "the web process to be back")
        # A client without an answer asks again: the first request was done, or this one is.
        done = self.seller.sql(STATE) == [{"state": "in_stock"}]
        answer = self.stock()
        assert answer.status_code == (409 if done else 200), answer.text
        assert self.stock().status_code == 409

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self.seller.get("/api/buying/offers").status_code == 200
        return False

    def taken(self) -> dict[str, Any]:
        drafts = [
            row | {"cost": str(row["cost"]), "source": row["source"].split(" ")[0]}
            for row in self.seller.sql(DRAFTS)
        ]
        lots = [row | {"cost": str(row["cost"])} for row in self.seller.sql(KEPT)]
        return {"drafts": drafts, "lots": lots, "state": self.seller.sql(STATE)}

    def is_right(self, taken: dict[str, Any]) -> None:
        draft = {"quantity": 2, "cost": "1.2500", "source": "offer"}
        lot = {"quantity": 2, "cost": "1.25"}
        assert taken == {
            "drafts": [draft] * CARDS,
            "lots": [lot] * CARDS,
            "state": [{"state": "in_stock"}],
        }

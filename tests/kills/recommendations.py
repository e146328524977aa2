"""A generation of recommendations, and the acceptance of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from tests.kills.room import Work, held
from tests.system.processes import Server, until

from builders import a_csv, a_row

CARDS = 40
FOUND = """
    SELECT c.marketplace_id, r.kind, r.state, r.proposed_price FROM proposal r
      JOIN card c ON c.seller_id = r.seller_id AND c.id = r.card_id
     WHERE r.seller_id = %(seller)s ORDER BY c.marketplace_id, r.id
"""
DUE = "SELECT 1 FROM work_due WHERE seller_id = %(seller)s AND stream = 'recommendations'"
ROWS = "SELECT 1 FROM proposal WHERE seller_id = %(seller)s FOR UPDATE"
CARD = "SELECT 1 FROM card WHERE seller_id = %(seller)s AND id = %(card)s FOR UPDATE"
CHANGES = """
    SELECT p.new_price FROM price_change p
      JOIN price_run r ON r.seller_id = p.seller_id AND r.id = p.run_id
     WHERE p.seller_id = %(seller)s AND r.trigger = 'recommendation'
"""


def inventory(market: str) -> bytes:
    return a_csv(*(a_row(n, market=market, price="10.00", low=market) for n in range(1, CARDS + 1)))


class Generation(Work):
    """Cards with one recommendation each: the rule asks their price, and the market is at 14; with
    the next upload it is at 15.
    """

    moments = ("while it writes",)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        rule = {"name": "Own", "state": "published", "priority": 1, "price_source": "current"}
        with self.seller.http() as http:
            assert http.post("/api/pricing/rules", json=rule).status_code == 201
        self.seller.upload(inventory("14.00"))
        self.generated("14.0000")

    def generated(self, price: str) -> None:
        """Wait until each card has one pending recommendation of this price, and none is due."""

        def over() -> bool:
            found = [
                (row["marketplace_id"], str(row["proposed_price"]))
                for row in self.seller.sql(FOUND)
                if row["state"] == "pending"
            ]
            return found == [(n, price) for n in range(1, CARDS + 1)] and not self.seller.sql(DUE)

        until(over, lambda: f"{CARDS} recommendations, of {self.seller.sql(FOUND)[:3]}", 90)

    def start(self) -> None:
        self.seller.upload(inventory("15.00"))

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        with held(self.server, ROWS, seller=self.seller.id):
            self.start()
            until(self.waits, "the generation to wait")
            yield
            assert {str(row["proposed_price"]) for row in self.seller.sql(FOUND)} == {"14.0000"}
            assert self.seller.sql(DUE)

    def end(self) -> None:
        self.generated("15.0000")

    def taken(self) -> dict[str, Any]:
        return {"found": self.seller.sql(FOUND)}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert len(taken["found"]) == CARDS


class Acceptance(Generation):
    """A price changes once or not at all; here the web process is killed."""

    killed = "web"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        [self.one, *_] = self.seller.get("/api/recommendations").json()["recommendations"]
        self._asking: threading.Thread | None = None

    def accept(self) -> httpx.Response:
        with self.seller.http() as http:
            body = {"revision": self.one["revision"]}
            return http.post(f"/api/recommendations/{self.one['id']}/accept", json=body)

    def start(self) -> None:
        def ask() -> None:
            with suppress(httpx.TransportError):
                self.accept()

        self._asking = threading.Thread(target=ask, daemon=True)
        self._asking.start()

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        with held(self.server, CARD, seller=self.seller.id, card=self.one["card"]["id"]):
            self.start()
            until(self.waits, "the acceptance to wait")
            yield
        assert self._asking is not None
        self._asking.join(60)
        assert self.seller.sql(CHANGES) == []

    def end(self) -> None:
        if self._asking is not None:
            self._asking.join(60)
        until(self.answers, "the web process to be back")
        # A client without an answer asks again: the first request was done, or this one is.
        before = len(self.seller.sql(CHANGES))
        answer = self.accept()
        assert answer.status_code == (409 if before else 200), answer.text
        assert self.accept().status_code == 409

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self.seller.get("/api/recommendations").status_code == 200
        return False

    def taken(self) -> dict[str, Any]:
        return {"changes": [str(row["new_price"]) for row in self.seller.sql(CHANGES)]}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken == {"changes": ["14.0000"]}

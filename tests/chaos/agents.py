"""Simulated agents that load a server, remember what they were promised, and hold it against what
is stored.

An inventory file of edition n asks n cents more than a dollar for every card, so the stored prices
name the edition. Each order number is sent once, and each key of a skipped wait is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
from tests.system.processes import Seller, Server, until

from builders import a_csv, a_row

CARDS, PAUSE = 40, 0.3
# Uploads of one moment would be ordered by chance.
BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
EDITIONS = """
    SELECT u.id, u.exported_at, (SELECT count(*) FROM price_run p
            WHERE p.seller_id = u.seller_id AND p.upload_id = u.id) AS runs FROM upload u
     WHERE u.seller_id = %(seller)s AND u.stream = 'inventory' ORDER BY u.id
"""
IMPORTED = """
    SELECT count(*) AS n FROM activity
     WHERE seller_id = %(seller)s AND action = 'inventory.imported'
"""
PRICES = "SELECT DISTINCT price FROM card WHERE seller_id = %(seller)s AND NOT gone"
HISTORY = """
    SELECT card_id, count(*) AS n, count(DISTINCT price) AS prices FROM price_observation
     WHERE seller_id = %(seller)s GROUP BY card_id
"""
ORDERS = """
    SELECT o.order_number, count(i.id) AS items FROM orders o
      LEFT JOIN order_item i ON i.seller_id = o.seller_id AND i.order_id = o.id
     WHERE o.seller_id = %(seller)s GROUP BY o.order_number
"""
OPEN = """
    SELECT id, stream, state FROM upload
     WHERE seller_id = %(seller)s AND state IN ('queued', 'processing')
"""
BAD = """
    SELECT id, stream, state, error_code, error_message FROM upload
     WHERE seller_id = %(seller)s AND state NOT IN ('done', 'queued', 'processing')
"""
LEDGER = """
    SELECT a.credit_balance AS balance, coalesce(sum(t.amount), 0) AS sum,
           coalesce(array_agg(t.idempotency_key) FILTER (WHERE t.kind = 'skip_wait'), '{}') AS keys
      FROM account a LEFT JOIN credit_transaction t USING (seller_id)
     WHERE a.seller_id = %(seller)s GROUP BY 1
"""
NEXT_WAIT = """
    UPDATE sync_state SET requested_kind = NULL, requested_at = NULL,
        last_pricing_at = clock_timestamp()
     WHERE seller_id = %(seller)s RETURNING seller_id
"""


@dataclass
class Promised:
    """The answers of one seller's agents: what was accepted, and what may have been."""

    editions: list[int] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    charged: list[str] = field(default_factory=list)
    tried: int = 0
    crashed: list[str] = field(default_factory=list)


class Shop:
    """A seller whose agents send files, orders and requests until they are told to stop."""

    def __init__(self, server: Server, seller: Seller) -> None:
        self.server, self.seller = server, seller
        self.promised = Promised()
        self._number = 0

    def tasks(self) -> list[Callable[[httpx.Client], None]]:
        return [self._inventory, self._orders, self._poll]

    def _inventory(self, http: httpx.Client) -> None:
        self._number += 1
        edition = self._number
        exported = (BEGAN + timedelta(seconds=edition)).strftime("%Y-%m-%dT%H:%M:%SZ")
        answer = http.post(
            "/api/v1/sync",
            content=a_file(edition),
            headers={"Content-Type": "text/csv", "X-Exported-At": exported},
        )
        self._note(answer)
        if answer.status_code == 202:
            self.promised.editions.append(edition)

    def _orders(self, http: httpx.Client) -> None:
        self.promised.tried += 1
        number = f"A-{self.promised.tried:06}"
        row = {"order_number": number, "status": "Paid", "total_amt": "2.50"}
        if self._note(http.post("/api/v1/orders", json=[row])).status_code != 202:
            return
        items = [{"order_number": number, "sku_id": sku, "quantity": 1} for sku in (1, 2)]
        if self._note(http.post("/api/v1/order_items", json=items)).status_code == 202:
            self.promised.orders.append(number)

    def _poll(self, http: httpx.Client) -> None:
        self._note(http.post("/api/v1/heartbeat", json={}))
        self._note(http.get("/api/v1/sync/pending"))
        self._note(http.get("/api/v1/export/price-updates"))

    def _note(self, answer: httpx.Response) -> httpx.Response:
        """A fault is answered 503; anything else is our own mistake."""
        if answer.status_code >= 400 and answer.status_code not in (429, 503):
            told = f"{answer.request.url.path}: {answer.text[:200]}"
            self.promised.crashed.append(f"{told}\n{self._said_of(answer)}")
        return answer

    def _said_of(self, answer: httpx.Response) -> str:
        """Return the lines of the server's log that name the request."""
        id = answer.headers.get("X-Request-ID", "no id")
        return "\n".join(line for line in self.server.said().splitlines() if id in line)

    def ended(self, seconds: float) -> None:
        """Wait until all that was accepted is worked off, as long as there is some progress."""
        left = self._left()
        while left:
            before = left
            until(
                lambda before=before: self._left() != before,  # type: ignore[misc]
                lambda: f"the work of {self.seller.id}: {before[:3]}\n{self.server.said()[-3000:]}",  # noqa: B023
                seconds,
            )
            left = self._left()

    def _left(self) -> list[dict[str, Any]]:
        with suppress(psycopg.Error):
            return self.seller.sql(OPEN)
        return [{"database": "away"}]

    def is_whole(self) -> None:
        """Nothing lost, nothing doubled."""
        crashed, self.promised.crashed = self.promised.crashed, []
        assert not crashed, "\n".join(crashed[:5])
        assert not self.seller.sql(BAD), self.seller.sql(BAD)[:3]
        rows = self.seller.sql(EDITIONS)
        applied = [round((row["exported_at"] - BEGAN).total_seconds()) for row in rows]
        assert set(self.promised.editions) <= set(applied), "a file that was accepted is lost"
        assert len(applied) == len(set(applied)), "a file is there twice"
        assert all(row["runs"] == 1 for row in rows), "a file was not priced once"
        assert self.seller.sql(IMPORTED) == [{"n": len(applied)}], "an import is told twice"
        if applied:
            prices = [row["price"] for row in self.seller.sql(PRICES)]
            assert [round(price * 100) - 100 for price in prices] == [max(applied)], prices
        self._history_is_whole(applied)
        orders = {row["order_number"]: row["items"] for row in self.seller.sql(ORDERS)}
        lost = set(self.promised.orders) - orders.keys()
        assert not lost, f"orders that were accepted are lost: {sorted(lost)[:3]}"
        wrong = [number for number in self.promised.orders if orders[number] != 2]
        assert not wrong, f"orders without their items, or with them twice: {wrong[:3]}"

    def _history_is_whole(self, applied: list[int]) -> None:
        """An old file that comes late changes no price, so it makes no history."""
        told = [at for place, at in enumerate(applied) if at > max(applied[:place], default=0)]
        for row in self.seller.sql(HISTORY):
            assert row["n"] == row["prices"], "an observation is there twice"
            assert row["n"] == len(told) - 1, (row, len(told))


class PayingShop(Shop):
    """Its agents skip the wait again and again."""

    def tasks(self) -> list[Callable[[httpx.Client], None]]:
        return [self._pay, self._poll]

    def _pay(self, http: httpx.Client) -> None:
        self.promised.tried += 1
        key = f"key-{self.promised.tried}"
        with suppress(psycopg.Error):
            self.seller.sql(NEXT_WAIT)
        for _ in range(2):
            answer = http.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key})
            self._note(answer)
            if answer.status_code == 200 and answer.json()["status"] in ("charged", "replayed"):
                self.promised.charged.append(key)

    def is_whole(self) -> None:
        super().is_whole()
        [ledger] = self.seller.sql(LEDGER)
        assert ledger["balance"] == ledger["sum"]
        assert len(ledger["keys"]) == len(set(ledger["keys"])), "a key was charged twice"
        assert set(self.promised.charged) <= set(ledger["keys"]), "a charge is lost"


class Crowd:
    """The agents of all shops, each in a thread of its own."""

    def __init__(self, shops: list[Shop]) -> None:
        self.shops = shops

    def __enter__(self) -> Crowd:
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(shop, task), daemon=True)
            for shop in self.shops
            for task in shop.tasks()
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a request that never ends"

    def _run(self, shop: Shop, task: Callable[[httpx.Client], None]) -> None:
        with shop.seller.http() as http:
            while not self._over.wait(PAUSE):
                with suppress(httpx.TransportError):
                    task(http)


def a_file(edition: int) -> bytes:
    price = f"{1 + edition / 100:.4f}"
    rows = (a_row(n, name=f"Card {n}", price=price, market="1.00") for n in range(1, CARDS + 1))
    return a_csv(*rows)


def answers(shop: Shop) -> bool:
    """The server is ready, and takes what an agent sends."""
    with suppress(httpx.TransportError), shop.seller.http() as http:
        asked = (http.get("/readyz"), http.post("/api/v1/heartbeat", json={}))
        return all(answer.status_code == 200 for answer in asked)
    time.sleep(0.05)
    return False

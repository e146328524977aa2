"""Orders that are pulled and shipped, request by request: a pull is started, a phone marks its cards,
one of which is missing and decided about, the pull is ended early, its end undone, and the orders
marked as shipped. The web process is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpx
from tests.kills.room import Work, held
from tests.system.processes import Server, until

ORDERS: Final = 4
NUMBERS: Final = [f"PULL-{number}" for number in range(ORDERS)]
STARTED = "while a pull starts"
MARKED = "while a phone marks cards"
DECIDED = "while a missing card is decided about"
ENDED = "while a pull ends early"
UNDONE = "while its end is undone"
SHIPPED = "while many are marked shipped"
_ORDERS = "SELECT 1 FROM orders WHERE seller_id = %(seller)s FOR UPDATE"
_IN_PULL = "SELECT 1 FROM pull_session_order WHERE seller_id = %(seller)s FOR UPDATE"
_PULL = "SELECT 1 FROM pull_session WHERE seller_id = %(seller)s FOR UPDATE"
# Rows that the request needs once it has written something.
HOLDS: Final = {
    SHIPPED: _ORDERS, STARTED: _ORDERS, MARKED: _IN_PULL, DECIDED: _IN_PULL, ENDED: _PULL,
    UNDONE: _PULL,
}  # fmt: skip
RESULT: Final = {
    "orders": """
        SELECT o.order_number, o.shipped_marked_at IS NOT NULL AS shipped,
               p.pulled_at IS NOT NULL AS pulled, p.missing_at IS NOT NULL AS missing,
               i.missing_outcome
          FROM orders o
          JOIN pull_session_order p ON p.seller_id = o.seller_id AND p.order_id = o.id
          JOIN pull_session_item i ON i.seller_id = o.seller_id AND i.order_id = o.id
         WHERE o.seller_id = %(seller)s ORDER BY o.order_number
    """,
    "pulls": "SELECT state FROM pull_session WHERE seller_id = %(seller)s",
    "marks": """
        SELECT o.order_number, m.kind, m.quantity, m.person FROM pull_mark m
          JOIN orders o ON o.seller_id = m.seller_id AND o.id = m.order_id
         WHERE m.seller_id = %(seller)s AND NOT m.undone
         ORDER BY o.order_number, m.kind
    """,
    "done": """
        SELECT action, count(*) AS times FROM activity
         WHERE seller_id = %(seller)s AND (action LIKE 'pull%%' OR action LIKE 'order.%%')
         GROUP BY action ORDER BY action
    """,
}


class Pulls(Work):
    """Four orders of one card each: the first is pulled by a phone and the second at the desk, the
    card of the third is missing and then found, the last waits. Each request is asked until it is
    answered.
    """

    killed = "web"
    moments = (SHIPPED, STARTED, MARKED, DECIDED, ENDED, UNDONE)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        orders = [
            {"order_number": number, "buyer_name": "Some Buyer", "status": "Ready to Ship",
             "order_date": "07/03/2026", "total_amt": "5.00"}
            for number in NUMBERS
        ]  # fmt: skip
        items = [
            {"order_number": number, "sku_id": at + 1, "quantity": 1, "product_line": "Magic"}
            for at, number in enumerate(NUMBERS)
        ]
        with self.seller.http() as http:
            for path, rows in (("orders", orders), ("order_items", items)):
                assert http.post(f"/api/v1/{path}", json=rows).status_code == 202

        def arrived() -> bool:
            found = self.seller.get("/api/orders").json()["orders"]
            return len(found) == ORDERS and all(order["items"] for order in found)

        until(arrived, "the orders with their items")
        found = self.seller.get("/api/orders?sort=number&direction=asc").json()["orders"]
        self.ids = [order["id"] for order in found]
        self.items = [order["items"][0]["id"] for order in found]
        self.gate, self.reached, self.go = "", threading.Event(), threading.Event()
        self._story: threading.Thread | None = None
        self._fault: list[BaseException] = []

    def asked(
        self, path: str, body: Any = None, moment: str = "", owner: httpx.Client | None = None
    ) -> httpx.Response:
        """Ask until there is an answer, as a client does whose connection broke."""
        if moment and moment == self.gate:
            self.gate = ""
            self.reached.set()
            assert self.go.wait(90)

        def answered() -> httpx.Response | None:
            with suppress(httpx.TransportError), self.seller.http() as keyed:
                http = owner or keyed
                answer = http.post(path, json=body) if body is not None else http.post(path)
                return answer if answer.status_code < 500 else None
            return None

        return until(answered, f"an answer of {path}", 90)

    def session(self) -> int:
        [row] = self.seller.sql("SELECT id FROM pull_session WHERE seller_id = %(seller)s")
        return int(row["id"])

    def link(self) -> str:
        """The path of a link for phones, which only a member makes."""
        member = {"email": self.seller.email, "password": self.seller.password}
        with httpx.Client(base_url=self.server.url, timeout=90) as http:
            signed_in = self.asked("/api/session", member, owner=http)
            http.headers["X-CSRF-Token"] = signed_in.json()["csrf_token"]
            all_games = {"session_id": self.session(), "all_games": True}
            made = self.asked("/api/pull_links", all_games, owner=http)
        assert made.status_code == 201, made.text
        url = str(made.json()["links"][0]["url"])
        return url[url.index("/p/") :]

    def story(self) -> None:
        started = self.asked("/api/pull_sessions", {"order_ids": self.ids}, STARTED)
        assert started.status_code in (201, 409), started.text
        pull = f"/api/pull_sessions/{self.session()}"
        phone = self.link()
        marks = {
            "device": "phone-one",
            "person": "Bea",
            "marks": [
                {"id": f"mark-{kind}", "kind": kind, "item_id": item, "sequence": at}
                for at, (kind, item) in enumerate(
                    [("pulled", self.items[0]), ("missing", self.items[2])]
                )
            ],
        }
        for moment in (MARKED, ""):  # a phone that is not sure sends them again
            assert self.asked(f"{phone}/marks", marks, moment).status_code == 200
        assert self.asked(f"{pull}/orders/{self.ids[1]}/pulled").status_code == 200
        way = f"/api/orders/{self.ids[2]}/missing/{self.items[2]}"
        assert self.asked(way, {"outcome": "found"}, DECIDED).status_code == 200
        assert self.asked(f"{pull}/complete", None, ENDED).status_code == 200
        [ended] = self.seller.sql(
            "SELECT id FROM activity WHERE seller_id = %(seller)s"
            " AND action = 'pull_session.completed'"
        )
        undone = self.asked(f"/api/v1/agent/activity/{ended['id']}/undo", None, UNDONE)
        assert undone.status_code in (200, 409), undone.text
        assert self.asked(f"{pull}/complete").status_code == 200
        shipped = self.asked("/api/orders/mark_shipped", {"order_ids": self.ids[:3]}, SHIPPED)
        assert shipped.status_code == 200, shipped.text

    def start(self) -> None:
        def told() -> None:
            try:
                self.story()
            except BaseException as fault:
                self._fault.append(fault)

        self._story = threading.Thread(target=told, daemon=True)
        self._story.start()

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        self.gate = moment
        self.start()
        assert self.reached.wait(90), self._fault
        with held(self.server, HOLDS[moment], seller=self.seller.id):
            self.go.set()
            until(self.waits, f"the request to wait {moment}")
            yield

    def end(self) -> None:
        assert self._story is not None
        self._story.join(240)
        if self._fault:
            raise self._fault[0]
        assert not self._story.is_alive()

    def taken(self) -> dict[str, Any]:
        return {name: self.seller.sql(query) for name, query in RESULT.items()}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert [tuple(row.values()) for row in taken["orders"]] == [
            (NUMBERS[0], True, True, False, None),
            (NUMBERS[1], True, True, False, None),
            (NUMBERS[2], True, True, False, "found"),
            (NUMBERS[3], False, False, False, None),
        ]
        assert taken["pulls"] == [{"state": "completed"}]
        assert [tuple(row.values()) for row in taken["marks"]] == [
            (NUMBERS[0], "pulled", 1, "Bea"),
            (NUMBERS[1], "pulled", 1, "Desk"),
            (NUMBERS[2], "missing", 1, "Bea"),
            (NUMBERS[2], "pulled", 1, "Desk"),
        ]
        done = {row["action"]: row["times"] for row in taken["done"]}
        assert done == {
            "order.many_marked_shipped": 1,
            "order.missing_settled": 1,
            "pull_link.made": 1,
            "pull_queue.marked": 1,
            "pull_session.completed": 2,
            "pull_session.missing": 1,
            "pull_session.opened": 1,
            "pull_session.pulled": 2,
        }

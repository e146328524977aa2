"""The owner's decision on each kind of what waits, by the one route; here the web process is killed."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import httpx
from tests.kills.room import Work, held
from tests.system.processes import Server, until

from builders import a_csv, a_row

# Everything that a decision of any kind writes, without ids and moments.
WRITTEN = {
    "feed": "SELECT action, outcome FROM activity WHERE seller_id = %(seller)s ORDER BY id",
    "cards": """
        SELECT marketplace_id, target_price, gone FROM card
         WHERE seller_id = %(seller)s ORDER BY marketplace_id
    """,
    "rules": "SELECT settings -> 'adjust_bp' AS adjust_bp FROM pricing_rule WHERE seller_id = %(seller)s ORDER BY id",
    "changes": """
        SELECT c.marketplace_id, p.old_price, p.new_price FROM price_change p
          JOIN card c ON c.seller_id = p.seller_id AND c.id = p.card_id
         WHERE p.seller_id = %(seller)s ORDER BY p.run_id, c.marketplace_id
    """,
    "runs": "SELECT trigger, state FROM price_run WHERE seller_id = %(seller)s ORDER BY id",
    "uploads": "SELECT state, confirmed FROM upload WHERE seller_id = %(seller)s ORDER BY id",
    "plans": "SELECT status, revision FROM agent_plan WHERE seller_id = %(seller)s ORDER BY id",
    "decided": """
        SELECT family, state FROM proposal
         WHERE seller_id = %(seller)s AND state <> 'pending' ORDER BY id
    """,
    "tasks": "SELECT kind, status FROM agent_task WHERE seller_id = %(seller)s ORDER BY id",
    "moves": "SELECT today_moved FROM automated_move WHERE seller_id = %(seller)s ORDER BY card_id",
}
OPEN = """
    SELECT 1 FROM price_run WHERE seller_id = %(seller)s AND state = 'running'
     UNION ALL
    SELECT 1 FROM upload WHERE seller_id = %(seller)s AND state IN ('queued', 'running')
"""
LOCKS, WRITES, NOTES = "while it locks the shop", "while it writes", "while it notes it"
SHOP = "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s FOR UPDATE"
FEED = "LOCK TABLE activity IN SHARE MODE"


class Decision(Work):
    """A member approves what waits, and asks again after the kill: it is done once, and whole."""

    moments = (WRITES, LOCKS, NOTES)
    killed = "web"
    rounds = 6
    kind: ClassVar[str]
    # The rows that the decision writes.
    rows: ClassVar[str]

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.member = self.signed_in()
        self.make()
        self.waiting: dict[str, Any] = until(self.found, f"a waiting {self.kind}", 90)
        self._asking: threading.Thread | None = None

    @abstractmethod
    def make(self) -> None:
        """Make a shop in which one thing of the kind will wait."""

    def signed_in(self) -> httpx.Client:
        http = self.seller.http()
        del http.headers["Authorization"]
        body = {"email": self.seller.email, "password": self.seller.password}
        http.headers["X-CSRF-Token"] = http.post("/api/session", json=body).json()["csrf_token"]
        return http

    def send(self, method: str, path: str, **body: Any) -> Any:
        answer = self.member.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def found(self) -> dict[str, Any] | None:
        answer = self.seller.get(f"/api/waiting?kind={self.kind}").json()
        return answer["waiting"][0] if answer["waiting"] else None

    def decide(self) -> httpx.Response:
        body = {"answer": "approve", "revision": self.waiting["revision"]}
        return self.member.post(f"/api/waiting/{self.kind}/{self.waiting['id']}", json=body)

    def start(self) -> None:
        def ask() -> None:
            with suppress(httpx.TransportError):
                self.decide()

        self._asking = threading.Thread(target=ask, daemon=True)
        self._asking.start()

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        query = {LOCKS: SHOP, NOTES: FEED, WRITES: f"{self.rows} FOR UPDATE"}[moment]
        before = self.written()
        with held(self.server, query, seller=self.seller.id):
            self.start()
            until(self.waits, "the decision to wait")
            yield
        assert self._asking is not None
        self._asking.join(60)
        assert self.written() == before

    def end(self) -> None:
        if self._asking is not None:
            self._asking.join(60)
        until(self.answers, "the web process to be back")
        # A client without an answer asks again: the first request was done, or this one is.
        waits = self.found() is not None
        answer = self.decide()
        said = f"{answer.text}; the server says:\n{self.server.said()[-3000:]}"
        assert answer.status_code == (200 if waits else 409), said
        assert self.decide().status_code == 409
        until(lambda: not self.seller.sql(OPEN), lambda: f"the end of {self.seller.sql(OPEN)}")

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self.seller.get("/api/waiting").status_code == 200
        return False

    def written(self) -> dict[str, Any]:
        return {name: self.seller.sql(query) for name, query in WRITTEN.items()}

    def taken(self) -> dict[str, Any]:
        return self.written()


class OfUpload(Decision):
    """Forty cards, of which the next file has one."""

    kind = "upload"
    rows = "SELECT 1 FROM upload WHERE seller_id = %(seller)s"

    def make(self) -> None:
        first = self.seller.upload(a_csv(*(a_row(n) for n in range(1, 41))))
        assert self.seller.finished(first)["state"] == "done"
        self.seller.upload(a_csv(a_row(1, quantity=3)))

    def is_right(self, taken: dict[str, Any]) -> None:
        assert [card["gone"] for card in taken["cards"]] == [False] + [True] * 39
        assert taken["uploads"][-1] == {"state": "done", "confirmed": True}
        assert [one["action"] for one in taken["feed"]].count("upload.confirmed") == 1


class OfRun(Decision):
    """Sixty cards, whose rule asks far more than they cost."""

    kind = "run"
    rows = "SELECT 1 FROM price_run WHERE seller_id = %(seller)s AND state = 'awaiting_review'"

    def make(self) -> None:
        file = a_csv(*(a_row(n, market="1.00", price="1.00") for n in range(1, 61)))
        assert self.seller.finished(self.seller.upload(file))["state"] == "done"
        rule = {"name": "Mine", "state": "published", "adjust_bp": 9000, "query": "price>0"}
        self.send("POST", "/api/pricing/rules", **rule, price_source="market", confirm=True)
        self.send("POST", "/api/pricing/reprice")

    def is_right(self, taken: dict[str, Any]) -> None:
        assert {str(card["target_price"]) for card in taken["cards"]} == {"1.9000"}
        assert len(taken["changes"]) == 60
        assert taken["runs"][-1]["state"] == "completed"


class OfPlan(Decision):
    """A key's plan, which lowers the rule of all cards."""

    kind = "plan"
    rows = "SELECT 1 FROM pricing_rule WHERE seller_id = %(seller)s"

    def make(self) -> None:
        file = a_csv(*(a_row(n, market="10.00", price="10.00") for n in range(1, 11)))
        assert self.seller.finished(self.seller.upload(file))["state"] == "done"
        asks = {"pricing.change_set": "always_ask"}
        self.send("PATCH", "/api/v1/agent/plans/permissions", key=asks)
        [rule] = self.seller.get("/api/pricing/rules").json()["rules"]
        change = {"op": "update", "rule_id": rule["id"], "set": {"adjust_bp": -250}}
        action = {"type": "pricing.change_set", "changes": [change]}
        with self.seller.http() as http:
            answer = http.post("/api/v1/agent/plans", json={"actions": [action]})
        assert answer.json()["status"] == "pending_review", answer.text

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken["rules"] == [{"adjust_bp": -250}]
        assert taken["plans"] == [{"status": "applied", "revision": 1}]
        actions = [one["action"] for one in taken["feed"]]
        assert actions.count("plan.applied") == 1


class OfPrice(Decision):
    """A price that rises by more than the seller's limit."""

    kind = "price"
    rows = "SELECT 1 FROM card WHERE seller_id = %(seller)s"

    def make(self) -> None:
        self.send("PATCH", "/api/pricing/settings", review_up_bp=1_000)
        rule = {"name": "Mine", "state": "published", "price_source": "market", "cap": None}
        self.send("POST", "/api/pricing/rules", **rule)
        file = a_csv(a_row(1, quantity=3, price="10.00", market="14.00"))
        assert self.seller.finished(self.seller.upload(file))["state"] == "done"

    def is_right(self, taken: dict[str, Any]) -> None:
        assert [str(card["target_price"]) for card in taken["cards"]] == ["14.0000"]
        assert [one["state"] for one in taken["decided"]] == ["accepted"]
        assert [str(one["new_price"]) for one in taken["changes"]] == ["14.0000"]


class OfSuggestion(OfPrice):
    """A card whose rule asks its price, and whose market is higher."""

    kind = "suggestion"

    def make(self) -> None:
        rule = {"name": "Mine", "state": "published", "price_source": "current"}
        self.send("POST", "/api/pricing/rules", **rule)
        file = a_csv(a_row(1, quantity=3, price="10.00", market="14.00"))
        assert self.seller.finished(self.seller.upload(file))["state"] == "done"


DECISIONS: tuple[type[Decision], ...] = (OfUpload, OfRun, OfPlan, OfPrice, OfSuggestion)

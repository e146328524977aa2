"""A rollback that is prepared, and one whose cards move back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.kills.room import SLAB, Work, held
from tests.system.inventories import FIRST, NOW, SECOND
from tests.system.processes import Server, until

from builders import a_csv, a_row, read_csv

ROWS = 100
SLABS = ROWS // SLAB
ROLLBACK = "SELECT * FROM price_rollback WHERE seller_id = %(seller)s"
KEPT = (
    "SELECT count(*) AS cards, min(price) AS lowest, max(price) AS highest"
    " FROM price_rollback_card WHERE seller_id = %(seller)s"
)
TASKS = "SELECT status FROM agent_task WHERE seller_id = %(seller)s AND kind = 'apply_rollback'"
CARDS = "SELECT DISTINCT price, target_price FROM card WHERE seller_id = %(seller)s"
MOVED = "SELECT moved FROM repricing_event WHERE seller_id = %(seller)s AND settled_at IS NOT NULL"
HISTORY = """
    SELECT price, count(*) AS cards FROM price_observation WHERE seller_id = %(seller)s
    GROUP BY price ORDER BY price
"""
STATE = """
    SELECT lease_token, rollback_until, export_fingerprint IS NULL AS unknown FROM sync_state
     WHERE seller_id = %(seller)s
"""
FIRST_OF_SLAB = (
    "SELECT id FROM card WHERE seller_id = %(seller)s ORDER BY id OFFSET %(rows)s LIMIT 1"
)
CARD = "SELECT 1 FROM card WHERE seller_id = %(seller)s AND id = %(card)s FOR UPDATE"
LOCKED_TASKS = "LOCK TABLE agent_task IN SHARE MODE"
TASK = "SELECT 1 FROM agent_task WHERE seller_id = %(seller)s FOR UPDATE"
IN_TRANSACTION = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
"""
KEEP = (
    "INSERT INTO price_rollback_card (seller_id, rollback_id, card_id, price)"
    " VALUES (%(seller)s, %(rollback)s, %(card)s, 9)"
)
NOTHING_TOLD = "when all is written and nothing is told"
EACH_SLAB = tuple(f"behind {slab} slabs" for slab in range(SLABS))


class Preparation(Work):
    """Cards that went from 1.20 to 1.39, and the rollback of that run."""

    moments = (NOTHING_TOLD, *EACH_SLAB)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        for exported_at, price in ((FIRST, "1.20"), (SECOND, "1.39")):
            file = a_csv(*(a_row(n, market="1.40", price=price) for n in range(1, ROWS + 1)))
            report = self.seller.finished(self.seller.upload(file, exported_at))
            assert report["state"] == "done"
        self.run_id = self.seller.get("/api/pricing/runs").json()["runs"][-1]["id"]

    def start(self) -> None:
        self.ask()

    def ask(self) -> int:
        with self.seller.http() as http:
            answer = http.post("/api/pricing/rollbacks", json={"run_id": self.run_id})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment == NOTHING_TOLD:
            with ExitStack() as stack:
                with self.worker_rests():
                    self.ask()
                    # The whole table: the task does not exist yet.
                    stack.enter_context(held(self.server, LOCKED_TASKS))
                self.prepared_behind(SLABS - 1)
                assert self.seller.sql(TASKS) == []
                yield
            return
        slab = int(moment.split()[1])
        with ExitStack() as stack:
            with self.worker_rests():
                keeps = {"rollback": self.ask(), "card": self.card_of(slab)}
                stack.enter_context(held(self.server, KEEP, seller=self.seller.id, **keeps))
            self.prepared_behind(slab - 1)
            yield

    @contextmanager
    def worker_rests(self) -> Iterator[None]:
        """Suspend the workers while they hold nothing that the block would wait for."""
        workers = self.server.children("worker")

        def rest() -> bool:
            for process in workers:
                process.suspend()
            if self.server.sql(IN_TRANSACTION) == []:
                return True
            for process in workers:
                process.resume()
            return False

        until(rest, "workers without a transaction")
        try:
            yield
        finally:
            for process in workers:
                process.resume()

    def prepared_behind(self, slab: int) -> None:
        """Wait until that slab is committed and the preparation waits for a row."""
        card = self.card_of(slab) if slab >= 0 else 0
        until(lambda: self.rollback()["prepared_to"] >= card and self.waits(), f"{slab + 1} slabs")

    def card_of(self, slab: int) -> int:
        return int(self.seller.sql(FIRST_OF_SLAB, rows=slab * SLAB)[0]["id"])

    def rollback(self) -> dict[str, Any]:
        return self.seller.sql(ROLLBACK)[0]

    def reaches(self, state: str) -> None:
        until(
            lambda: (
                self.rollback()["state"] == state
                and self.seller.sql(STATE)[0]["lease_token"] is None
            ),
            lambda: f"{state}, not {self.rollback()}; it says:\n{self.server.said()[-3000:]}",
        )

    def served(self) -> bytes:
        return self.seller.get("/api/v1/export/price-updates").content

    def end(self) -> None:
        self.reaches("ready")

    def taken(self) -> dict[str, Any]:
        [kept] = self.seller.sql(KEPT)
        return {
            "told": [self.rollback()["cards"]],
            "kept": [kept["cards"], str(kept["lowest"]), str(kept["highest"])],
            "tasks": self.seller.sql(TASKS),
            "served": sorted({row["TCG Marketplace Price"] for row in read_csv(self.served())}),
        }

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken == {
            "told": [ROWS],
            "kept": [ROWS, "1.2000", "1.2000"],
            "tasks": [{"status": "pending"}],
            "served": ["1.2000"],
        }


class MoveBack(Preparation):
    """The agent has imported the file: more cards move than the request moves by itself."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.ask()
        self.reaches("ready")

    def start(self) -> None:
        body = {
            "imported_at": NOW.isoformat(),
            "row_count": ROWS,
            "file_sha256": hashlib.sha256(self.served()).hexdigest(),
        }
        with self.seller.http() as http:
            answer = http.post("/api/v1/repricing_events", json=body)
        assert answer.status_code == 201, answer.text

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        values: dict[str, Any] = {"seller": self.seller.id}
        if moment != NOTHING_TOLD:
            values["card"] = self.card_of(int(moment.split()[1]))
        with held(self.server, TASK if moment == NOTHING_TOLD else CARD, **values):
            self.start()
            until(self.waits, moment)
            assert self.rollback()["state"] == "served"
            yield

    def end(self) -> None:
        self.reaches("applied")

    def taken(self) -> dict[str, Any]:
        return {
            "cards": [(str(one["price"]), one["target_price"]) for one in self.seller.sql(CARDS)],
            "moved": self.seller.sql(MOVED),
            "history": [(str(one["price"]), one["cards"]) for one in self.seller.sql(HISTORY)],
            "tasks": self.seller.sql(TASKS),
            "state": self.seller.sql(STATE),
            "served": read_csv(self.served()),
        }

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken == {
            "cards": [("1.2000", None)],
            "moved": [{"moved": ROWS}],
            "history": [("1.2000", ROWS), ("1.3900", ROWS)],
            "tasks": [{"status": "completed"}],
            "state": [{"lease_token": None, "rollback_until": None, "unknown": False}],
            "served": [],
        }

"""A pricing of the stored cards, which follows an upload whose rules have queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from tests.kills.room import SLAB, Work, everything, held
from tests.system.inventories import FIRST, SECOND
from tests.system.processes import Server, until

from builders import a_csv, a_row

ROWS = 120
SLABS = ROWS // SLAB
FILE = a_csv(*(a_row(n, market="1.20", price="1.20") for n in range(1, ROWS + 1)))
RUNS = "SELECT * FROM price_run WHERE seller_id = %(seller)s AND upload_id IS NULL ORDER BY id"
TASKS = "SELECT kind, status FROM agent_task WHERE seller_id = %(seller)s ORDER BY id"
CHANGES = """
    SELECT c.marketplace_id, p.old_price, p.new_price FROM price_change p
    JOIN card c ON c.seller_id = p.seller_id AND c.id = p.card_id
     WHERE p.seller_id = %(seller)s AND p.run_id = %(run)s ORDER BY 1
"""
WRITTEN = (
    "SELECT 1 FROM sync_state"
    " WHERE seller_id = %(seller)s AND lease_holder = 'reprice' AND work_done = %(rows)s"
)
FREE = "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s AND lease_token IS NULL"
FIRSTS = (
    "SELECT 1 FROM card WHERE seller_id = %(seller)s AND marketplace_id = ANY(%(firsts)s)"
    " FOR UPDATE"
)
RUNNING = (
    "SELECT 1 FROM price_run WHERE seller_id = %(seller)s AND state = 'running' FOR NO KEY UPDATE"
)


class Reprice(Work):
    """Cards that ask for 1.32, and from the next upload on for 1.44."""

    moments = (
        "when all is written and nothing is told",
        *(f"behind {slab} slabs" for slab in range(SLABS)),
    )

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        with self.seller.http() as http:
            rule = {"name": "All", "state": "published", "query": "market>=1", "adjust_bp": 1000}
            made = http.post("/api/pricing/rules", json=rule)
            assert made.status_code == 201, made.text
            self.seller.upload(FILE, FIRST)
            self.ended(1)
            path = f"/api/pricing/rules/{made.json()['id']}"
            changed = http.patch(path, json={"adjust_bp": 2000})
            assert changed.status_code == 200, changed.text

    def start(self) -> None:
        self.seller.upload(FILE, SECOND)

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment.startswith("behind"):
            slab = int(moment.split()[1])
            with self.rows_held(slab):
                self.start()
                self.stopped_at(slab)
                yield
            return
        # The next life finds nothing to write, and reports everything.
        with ExitStack() as outer:
            with self.rows_held(0):
                self.start()
                self.stopped_at(0)
                outer.enter_context(held(self.server, RUNNING, seller=self.seller.id))
            until(
                lambda: self.seller.sql(WRITTEN, rows=ROWS) and self.waits(), "the end of the run"
            )
            yield

    def rows_held(self, slab: int) -> AbstractContextManager[None]:
        """Both writers stop behind so many slabs: an upload whose values are known already touches
        none of the cards itself.
        """
        firsts = [slab * SLAB + 1, (slab + 1) * SLAB + 1]
        return held(self.server, FIRSTS, seller=self.seller.id, firsts=firsts)

    def stopped_at(self, slab: int) -> None:
        until(
            lambda: self.seller.sql(WRITTEN, rows=slab * SLAB) and self.waits(min(2, SLABS - slab)),
            f"the worker to stop behind {slab} slabs",
        )

    def end(self) -> None:
        self.ended(2)

    def ended(self, count: int) -> None:
        def over() -> bool:
            states = [run["state"] for run in self.seller.sql(RUNS)]
            return states == ["completed"] * count and bool(self.seller.sql(FREE))

        until(
            over,
            lambda: (
                f"{count} runs, of {self.seller.sql(RUNS)}; the server says:\n"
                f"{self.server.said()[-3000:]}"
            ),
        )

    def taken(self) -> dict[str, Any]:
        runs = self.seller.sql(RUNS)
        last = runs[-1]["id"]
        receipt = self.seller.get("/api/v1/pricing/explain/1").json()["historical_breakdown"]
        replayed = self.server.run("pricing", "replay", str(last), "--json")
        assert replayed.code == 0, replayed.err
        told = json.loads(replayed.out)
        return everything(self.seller) | {
            "reprices": [(run["trigger"], run["state"], _of(run["summary"])) for run in runs],
            "of_the_last": self.seller.sql(CHANGES, run=last),
            "tasks": self.seller.sql(TASKS),
            "receipt": [receipt["final_price"], receipt["reflects_current_price"]],
            "replayed": [told["cards"], told["differ"]],
        }

    def is_right(self, taken: dict[str, Any]) -> None:
        moves = [(str(one["old_price"]), str(one["new_price"])) for one in taken["of_the_last"]]
        assert moves == [("1.2000", "1.4400")] * ROWS
        assert taken["tasks"] == [{"kind": "apply_price_updates", "status": "pending"}]
        assert taken["receipt"] == ["1.44", True]
        assert taken["replayed"] == [ROWS, 0]


def _of(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary without what differs between two shops: keys and ids."""
    own = ("receipts", "follows", "rules")
    return {name: value for name, value in summary.items() if name not in own}

"""A collection of several slabs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.room import SLAB, Work, held
from tests.system.processes import until

ROWS = 5 * SLAB
SNAPSHOT = {
    "collection": """
        SELECT state, format, rows, read, rejected_count FROM collection
         WHERE seller_id = %(seller)s
    """,
    "rows": """
        SELECT row, copies, name, certainty FROM collection_row WHERE seller_id = %(seller)s
         ORDER BY row
    """,
}
# A read of the rows goes on, and a write of the third slab waits.
HOLD = "LOCK TABLE collection_row IN SHARE MODE"
FILE = "".join(f"{number % 4 + 1} Card {number} (DFT) {number}\n" for number in range(ROWS))


class Collection(Work):
    moments = (
        "while rows are being stored",
        "before anything is read",
    )

    def start(self) -> None:
        with self.seller.http() as http:
            answer = http.post("/api/buying/collections", content=FILE.encode())
        assert answer.status_code == 202, answer.text

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment == "before anything is read":
            self.kill()
            self.start()
            yield
            return
        with held(self.server, HOLD):
            self.start()
            until(self.waits, "the worker to meet the locked table")
            yield

    def end(self) -> None:
        done = "SELECT 1 FROM collection WHERE seller_id = %(seller)s AND state = 'done'"
        until(lambda: self.seller.sql(done), lambda: self.server.said()[-2000:])

    def taken(self) -> dict[str, Any]:
        return {name: self.seller.sql(query) for name, query in SNAPSHOT.items()}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert len(taken["rows"]) == ROWS

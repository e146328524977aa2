"""An inventory that is imported, and one that is cancelled on the way."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.room import Work, everything, held
from tests.system.inventories import FIRST, SECOND, inventory
from tests.system.processes import UPLOADED, Server, until

from builders import read_csv

ROWS = 500
FILES = inventory(ROWS), inventory(ROWS, 2)
NAMED = [int(row["TCGplayer Id"]) for row in read_csv(FILES[1])]
OPEN = "SELECT 1 FROM upload WHERE seller_id = %(seller)s AND state IN ('queued', 'processing')"
LAST_ABSENT = """
    SELECT id FROM card WHERE seller_id = %(seller)s AND NOT marketplace_id = ANY(%(named)s)
    ORDER BY id DESC LIMIT 1 FOR UPDATE
"""
TOMBSTONES = (
    "SELECT id FROM card WHERE seller_id = %(seller)s AND gone"
    " AND NOT marketplace_id = ANY(%(named)s)"
)
ATTEMPTS = "SELECT sum(attempts) AS n FROM upload WHERE seller_id = %(seller)s"
LIVES = 3


class Import(Work):
    """Two files, one behind the other; the second moves prices and lacks cards."""

    moments = (
        "among the rows that are gone",
        "between two slabs",
        "between two slabs of each file",
        "again and again",
    )

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.uploads: list[int] = []

    def send(self, number: int) -> int:
        upload = self.seller.upload(FILES[number], (FIRST, SECOND)[number])
        self.uploads.append(upload)
        return upload

    def start(self) -> None:
        for number in range(2):
            self.send(number)

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment == "among the rows that are gone":
            with self.held_at_tombstones():
                yield
            return
        self.send(0)
        if moment == "between two slabs of each file":
            until(self.between_slabs, "a committed slab")
            self.kill()
        self.send(1)
        for life in range(1, LIVES if moment == "again and again" else 1):
            # Each life gets a little further; every slab that was committed stays.
            until(lambda life=life: self.attempts() >= life, "the next life")  # type: ignore[misc]
            until(self.between_slabs, "a committed slab")
            self.kill()
        until(self.between_slabs, "a committed slab")
        yield

    @contextmanager
    def held_at_tombstones(self) -> Iterator[None]:
        """Tombstones come last, with the end of the upload, or not at all."""
        self.seller.finished(self.send(0))
        with held(self.server, LAST_ABSENT, seller=self.seller.id, named=NAMED):
            self.send(1)
            until(self.waits, "the import to meet the locked row")
            assert not self.seller.sql(TOMBSTONES, named=NAMED)
            yield

    def between_slabs(self) -> bool:
        """Or behind all of them, where the import was faster than the look at it."""
        progress = self.seller.get("/api/v1/status").json()["phase_progress"]
        between = bool(progress and 0 < progress["done"] < progress["total"])
        return between or not self.seller.sql(OPEN)

    def attempts(self) -> int:
        return int(self.seller.sql(ATTEMPTS)[0]["n"])

    def end(self) -> None:
        states = [self.seller.finished(upload)["state"] for upload in self.uploads]
        assert states == ["done", "done"], self.server.said()[-2000:]

    def taken(self) -> dict[str, Any]:
        return everything(self.seller)

    def is_right(self, taken: dict[str, Any]) -> None:
        reports = [upload["report"] for upload in taken["uploads"]]
        assert all(report["changed"] > 50 for report in reports)
        assert reports[1]["gone"] > 50
        assert len(taken["observations"]) > 125


LEFT = """
    SELECT 1 FROM sync_state WHERE seller_id = %(seller)s
       AND (cancel_requested_at IS NOT NULL OR lease_token IS NOT NULL OR lock_kind IS NOT NULL
           OR uploads_open > 0)
"""


class Cancel(Import):
    """The second file is cancelled around the kill: it ends cancelled or done, as the answer said,
    nothing hangs, and the same file is whole afterwards.
    """

    moments = (
        "cancelled in its last transaction",
        "in its last transaction, then cancelled",
        "cancelled before its first slab",
        "cancelled between two slabs",
        "between two slabs, then cancelled",
    )

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.seller.finished(self.send(0))
        self.answered: int | None = None

    def start(self) -> None:
        """Cancel it at once, later, or once it is killed."""
        self.send(1)
        time.sleep(random.choice((0, random.uniform(0, 0.5))))
        if random.random() < 0.5:
            self.cancel()
            time.sleep(random.choice((0, 0.02, 0.2)))

    def cancel(self) -> None:
        with self.seller.http() as http:
            self.answered = http.post("/api/v1/sync/cancel").status_code

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment.endswith("last transaction") or moment.startswith("in its last"):
            with held(self.server, LAST_ABSENT, seller=self.seller.id, named=NAMED):
                self.send(1)
                until(self.waits, "the import to meet the locked row")
                if moment.startswith("in its last"):
                    self.kill()
                self.cancel()
                assert self.answered == 202
                yield
            return
        self.send(1)
        if "slabs" in moment:
            until(self.between_slabs, "a committed slab")
        if moment.startswith("cancelled"):
            self.cancel()
        if "before" in moment:
            assert self.answered in (200, 202)
        yield

    def end(self) -> None:
        if self.answered is None:
            self.cancel()
        report = self.seller.finished(self.uploads[-1])
        assert report["state"] in UPLOADED
        too_late = self.answered == 409
        assert report["state"] == ("done" if too_late else "cancelled"), self.answered
        until(lambda: not self.seller.sql(LEFT), "lock, lease and cancellation to be gone")
        if too_late:
            return
        assert self.seller.sql(TOMBSTONES, named=NAMED) == []
        runs = self.seller.sql(
            "SELECT state FROM price_run WHERE seller_id = %(seller)s ORDER BY id"
        )
        assert {run["state"] for run in runs[1:]} <= {"cancelled"}
        assert self.seller.finished(self.send(1))["state"] == "done"

    def taken(self) -> dict[str, Any]:
        """Leave out the runs and reports, which a cancelled upload adds to."""
        taken = everything(self.seller)
        return {name: taken[name] for name in ("cards", "observations", "lines", "export")}

    def is_right(self, taken: dict[str, Any]) -> None:
        """Held against an import that nobody cancelled."""
        plain = Import(self.server)
        plain.start()
        plain.end()
        wanted = plain.taken()
        assert taken == {name: wanted[name] for name in taken}

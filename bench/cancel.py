"""`python bench/cancel.py [--rows 300000] [--rounds 5]`: a cancel in the middle of an import:
seconds and slabs until lease and lock are gone.

The real web and worker processes; each round is a new seller's first import, cancelled at another
share of its rows. A slab's time is taken from the run itself: its pace so far, times the writers
that each have a slab under way.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import ground
from cardsync.stock.cards.write import WRITERS
from ground import Client, Ground, Report, spread

STATE = (
    "SELECT work_done, lock_kind, lease_token, cancel_requested_at FROM sync_state"
    " WHERE seller_id = %s"
)


def state_when(made: Ground, seller: int, ready: Any) -> tuple[Any, ...]:
    """The first state of the seller that `ready` accepts."""
    with made.admin() as connection:
        deadline = monotonic() + 300
        while monotonic() < deadline:
            row = connection.execute(STATE, [seller]).fetchone()
            if row is not None and ready(row):
                return row
            sleep(0.001)
    raise RuntimeError("the import did not come that far")


def cancelled(made: Ground, data: bytes, rows: int, share: float) -> tuple[float, float, int]:
    """Seconds from the cancel until lease and lock are gone, the same in slabs by this run's
    pace, and slabs committed after it.
    """
    seller = made.new_seller()
    slabs = -(-rows // made.settings.slab_rows)
    slab = -(-rows // (-(-slabs // WRITERS) * WRITERS))
    client = Client(made.settings.bind, seller.api_key)
    status, _, body = client.request("POST", "/api/v1/sync", data, Content_Type="application/gzip")
    assert status == 202, body
    first = state_when(made, seller.seller_id, lambda row: row[0] > 0)[0]
    began = perf_counter()
    seen = state_when(
        made, seller.seller_id, lambda row: row[0] >= max(rows * share, first + slab)
    )[0]
    one = (perf_counter() - began) / ((seen - first) / slab) * WRITERS
    asked = perf_counter()
    status, _, body = client.request("POST", "/api/v1/sync/cancel")
    assert status == 202, body
    recorded = state_when(made, seller.seller_id, lambda row: row[3] is not None or row[1] is None)[
        0
    ]
    done = state_when(made, seller.seller_id, lambda row: row[1] is None and row[2] is None)[0]
    took = perf_counter() - asked
    assert done < rows, "the import was over before the cancel came"
    with made.admin() as connection:
        counted = connection.execute(
            "SELECT count(*) FROM card WHERE seller_id = %s", [seller.seller_id]
        ).fetchone()
        assert counted is not None
        assert counted[0] == done, "more was written than was counted"
        connection.execute(f"DELETE FROM price_change WHERE seller_id = {seller.seller_id}")
        connection.execute(f"DELETE FROM card WHERE seller_id = {seller.seller_id}")
    return took, took / one, -(-(done - recorded) // slab)


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Cancel")
    with ground.ground(data, rows) as made, ground.service(made, workers=1):
        file = made.inventory.read_bytes()
        results = []
        for turn in range(rounds):
            results.append(cancelled(made, file, rows, (turn + 1) / (rounds + 1) * 0.8))
            made.settle()
            report.note(
                f"round {turn + 1}: {results[-1][0]:.3f} s, {results[-1][1]:.1f} slabs' time,"
                f" {results[-1][2]} slabs committed after it"
            )
    times, slabs, later = zip(*results, strict=True)
    report.note(f"until lease and lock are gone: {spread(list(times))}")
    report.figure("slabs committed after a cancel", max(later), "slabs")
    report.figure(
        "cancel to no lease and no lock, in slabs' time", statistics.median(slabs), "slabs"
    )
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

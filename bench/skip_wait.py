"""`python bench/skip_wait.py [--rounds 300]`: 64 callers in 4 processes skip one seller's wait at
once, round after round, with one key, with 8, with a key each; how often more than one of them
was charged, and whether the ledger adds up. The full count: `make soak`.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import ground
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.shop.credits import ledger
from ground import Ground, Report

PROCESSES, CALLERS = 4, 64
PROGRAM = ground.HERE.parent / "tests" / "system" / "skip_wait_callers.py"
NEXT_ROUND = (
    "UPDATE sync_state SET requested_kind = NULL, last_pricing_at = clock_timestamp()"
    " WHERE seller_id = %s"
)
LEDGER = """
    SELECT count(*) FILTER (WHERE t.amount < 0), sum(t.amount) = a.credit_balance
      FROM account a JOIN credit_transaction t USING (seller_id) WHERE a.seller_id = %s
      GROUP BY a.credit_balance
"""


def play(made: Ground, rounds: int) -> tuple[int, int, float]:
    """(rounds that were not charged exactly once, rounds after which the ledger did not add up,
    seconds of the calls).
    """
    seller = made.new_seller()

    async def give(database: Database) -> None:
        async with database.tenant(seller.seller_id) as session:
            await ledger.grant(
                session, seller.seller_id, 2 * CALLERS * rounds, "a measurement", clock.now()
            )

    made.in_database(give)
    share = CALLERS // PROCESSES
    command = [sys.executable, str(PROGRAM), made.url, seller.api_key, str(share)]
    processes = [
        subprocess.Popen(
            [*command, str(first)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for first in range(0, CALLERS, share)
    ]
    wrong = unequal = charges = 0
    took = 0.0
    with made.admin() as connection:
        for turn, keys in zip(range(rounds + 1), itertools.cycle((1, CALLERS, 8)), strict=False):
            connection.execute(NEXT_ROUND, [seller.seller_id])
            started = perf_counter()
            for process in processes:
                print(f"round-{turn}", keys, file=process.stdin, flush=True)
            for process in processes:
                assert process.stdout
                json.loads(process.stdout.readline())
            took += perf_counter() - started if turn else 0
            row = connection.execute(LEDGER, [seller.seller_id]).fetchone()
            assert row
            wrong, unequal, charges = (
                wrong + (row[0] != charges + 1),
                unequal + (not row[1]),
                row[0],
            )
    for process in processes:
        process.communicate(timeout=30)
    return wrong, unequal, took


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Skipping the wait")
    with ground.ground(data, rows, catalogs=False) as made:
        wrong, unequal, took = play(made, rounds)
    report.note(
        f"{rounds} rounds of {CALLERS} callers in {PROCESSES} processes:"
        f" {rounds * CALLERS / took:,.0f} calls a second"
    )
    report.figure(f"of {rounds} rounds not charged exactly once", wrong, "")
    report.figure("after which sum and balance differ", unequal, "")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=300)

"""Four processes that claim from the same sellers at once, and the claims of one that was killed
before: no task is in two hands, and what the dead one had is offered again.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from tests.system.processes import a_folder

import schedule
from cardsync.operations.processes import embedded
from cardsync.platform.database.migrate import keep_seal, migrate
from cardsync.platform.database.session import Database
from cardsync.shop.accounts import sellers

PROGRAM = Path(__file__).with_name("task_claimers.py")
PROCESSES, SELLERS = 4, 5
FEW, MANY = 200, schedule.count("CARDSYNC_SOAK_TASKS", 10_000, 1_000)
QUEUE = """
    INSERT INTO agent_task (seller_id, kind, priority, created_at)
    SELECT s.seller_id, 'refresh_orders', n %% 3, now() - interval '1 hour'
      FROM sync_state s CROSS JOIN generate_series(1, %(each)s) n
"""
DUE = "UPDATE sync_state SET tasks_due_at = now() - interval '1 hour'"
# The row of a process that was killed after its claim, an hour later.
KILLED = """
    UPDATE agent_task SET status = 'claimed', token_hash = '\\x00', claimed_at = now() - interval '1 hour',
           claim_expires_at = now() - interval '50 minutes'
     WHERE id IN (SELECT id FROM agent_task ORDER BY id LIMIT 20)
"""
LEFT = "SELECT status, attempt, count(*) FROM agent_task GROUP BY 1, 2 ORDER BY 2"


SEAL = b"a test"


async def make(url: str) -> None:
    async with Database.open(url, pool=1, hot_pool=1, seal=lambda: SEAL) as database:
        for n in range(SELLERS):
            async with database.shared() as session:
                await sellers.create_seller(
                    session,
                    name=f"Seller {n}",
                    email=f"claims-{n}@example.invalid",
                    plan="founder",
                    lines=[],
                    sync_mode="full",
                )


@pytest.mark.day
@pytest.mark.parametrize("tasks", [FEW, pytest.param(MANY, marks=pytest.mark.night)])
@pytest.mark.night
def test_no_task_is_handed_out_twice(tasks: int) -> None:
    with a_folder() as folder, embedded.running(folder / "data") as database:
        migrate(database.admin_url())
        keep_seal(database.admin_url(), SEAL)
        asyncio.run(make(database.url()))
        with psycopg.connect(database.admin_url(), autocommit=True) as connection:
            connection.execute(QUEUE, {"each": tasks // SELLERS})
            connection.execute(KILLED)
            connection.execute(DUE)
            keys = connection.execute("SELECT seller_id, id FROM api_key ORDER BY 1").fetchall()
            lines = "".join(f"{seller} {key}\n" for seller, key in keys)
            processes = [
                subprocess.Popen(
                    [sys.executable, PROGRAM, "product", database.url(), str(first)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for first in range(PROCESSES)
            ]
            for process in processes:
                assert process.stdin
                process.stdin.write(lines)
                process.stdin.close()
            taken = Counter[int]()
            for process in processes:
                assert process.stdout
                taken.update(json.loads(process.stdout.read())[0])
                assert process.wait(60) == 0
            left = connection.execute(LEFT).fetchall()
            assert left == [("completed", 0, tasks - 20), ("completed", 1, 20)]
            assert (len(taken), taken.total()) == (tasks, tasks)

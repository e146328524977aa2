"""`python bench/tasks.py [--agents 1000] [--tasks 100000]`: agents of so many sellers in four
processes claim tasks and complete them until none is left, the product's way and by a bare loop
with SKIP LOCKED; how fast, and how often a task was handed out twice.

Every process goes through all sellers, so that several claim from one seller at the same time. The
bare loop works off the fifth part, for a rate. The product's way includes what every request does
before it: the caller is read from the database.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import ground
from agents import new_agents
from ground import Ground, Report

PROCESSES = 4
PROGRAM = ground.HERE.parent / "tests" / "system" / "task_claimers.py"
KINDS = ["refresh_orders", "backfill_orders", "apply_price_updates", "quick_add_listing"]
QUEUE = """
    INSERT INTO agent_task (seller_id, kind, priority, created_at)
    SELECT s.seller_id, (CAST(%(kinds)s AS text[]))[1 + n %% 4], n %% 4, now() - interval '1 hour'
      FROM sync_state s CROSS JOIN generate_series(1, %(each)s) n
"""
DUE = "UPDATE sync_state SET tasks_due_at = now() - interval '1 hour', price_tasks_due_at = now() - interval '1 hour'"


def queue(made: Ground, each: int) -> None:
    with made.admin() as connection:
        connection.execute("TRUNCATE agent_task")
        connection.execute(QUEUE, {"kinds": KINDS, "each": each})
        connection.execute(DUE)
        connection.execute("VACUUM ANALYZE agent_task")
        connection.execute("VACUUM ANALYZE sync_state")
    made.settle()


def race(made: Ground, how: str) -> tuple[list[int], float]:
    """(all tasks that were claimed, tasks a second)."""
    with made.admin() as connection:
        rows = connection.execute("SELECT seller_id, id FROM api_key ORDER BY seller_id").fetchall()
    lines = "".join(f"{seller} {key}\n" for seller, key in rows)
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), how, made.url, str(len(rows) * number // PROCESSES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write(lines)
        process.stdin.close()
    taken, longest = list[int](), 0.0
    for process in processes:
        assert process.stdout
        ids, took = json.loads(process.stdout.read())
        assert process.wait() == 0
        taken, longest = taken + ids, max(longest, took)
    return taken, len(taken) / longest


def open_tasks(made: Ground) -> int:
    with made.admin() as connection:
        row = connection.execute(
            "SELECT count(*) FROM agent_task WHERE status <> 'completed'"
        ).fetchone()
    assert row
    return int(row[0])


def measure(data: Path, rows: int, agents: int, tasks: int) -> Report:
    report = Report(f"Tasks of {agents} agents in {PROCESSES} processes")
    with ground.ground(data, rows, catalogs=False) as made:
        new_agents(made, agents)
        each = tasks // agents
        queue(made, max(1, each // 5))
        _, floor = race(made, "bare")
        queue(made, each)
        taken, reached = race(made, "product")
        left = open_tasks(made)
    twice = sum(times - 1 for times in Counter(taken).values())
    report.note(f"claim + complete: {reached:,.0f} a second; the bare loop {floor:,.0f}")
    report.figure("claim + complete / a bare SKIP LOCKED loop", reached / floor)
    report.figure(f"of {len(taken):,} tasks handed out twice", twice, "")
    report.figure("of them not completed", left, "")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, agents=1_000, tasks=100_000)

"""Settings of PostgreSQL, most of them for one transaction: each function returns the statement
that sets one.

PostgreSQL's defaults suit most programs; each function describes the difference of ours, and the
cost of leaving the setting out. The figures are of two AMD cores at a load of 20, where
helper processes find no core to help on.
"""

from __future__ import annotations


def of_seller(seller_id: int) -> str:
    """Set the seller whom row-level security lets through.

    It holds a literal that we format ourselves, because this form also reaches distributed nodes.
    """
    return f"SET LOCAL app.seller_id = '{int(seller_id)}'"


def grouped_by_hash() -> str:
    """Let a few large groups be hashed: without it the planner would sort all rows, and on disk
    where they are many.

    400,000 cards cost 1.3 x the processor time of PostgreSQL without it, and 39 MB on disk;
    bench/fences.py measures it.
    """
    return "SELECT set_config('enable_sort', 'off', true)"


def grouped_by_sorting() -> str:
    """Let many small groups be sorted: a hash table of all customers takes long where there are
    hundreds of thousands.

    The customers of 100,000 orders cost 2.0 x without it; bench/fences.py measures it.
    """
    return "SET LOCAL enable_hashagg = off"


def joined_by_hash() -> str:
    """Let new rows be joined by hash: statistics may know nothing of them, and a nested loop would
    read all rows for each of them.

    The cards of 50,000 orders that came since the last ANALYZE are found in 0.4 s; without it they
    were not found in 40 s (ADR 45).
    """
    return "SET LOCAL enable_nestloop = off"


def joined_as_planned() -> str:
    """Take `joined_by_hash` back within the same transaction."""
    return "SET LOCAL enable_nestloop TO DEFAULT"


def planned_each_time() -> str:
    """Plan each statement for its own values, however often it runs: a plan that is kept after the
    fifth time knows nothing of rows that this transaction wrote, and reads all of them for each.

    The sums of a new seller's 50,000 orders cost 3.4 x the processor time of PostgreSQL without it,
    at a load of 17; bench/fences.py measures it.
    """
    return "SET LOCAL plan_cache_mode = force_custom_plan"


def committed_before_the_disk() -> str:
    """Let the commit return before the disk has it: for writes that may be lost with the
    database's last moment.

    100 commits cost 1.8 x without it; bench/fences.py measures it.
    """
    return "SET LOCAL synchronous_commit = off"


def of_readings() -> str:
    """Set the settings of a connection of readings for its whole life. Each prepared statement is
    planned once, whatever its values. Helper processes share a search: testing a card costs more
    than passing it on, but the planner expects many matches of a pattern. The cards that a search
    finds stay in memory while they are counted and ordered.

    A page of orders costs 0.9 ms more without the first (ADR 19), 60 searches 1.1 x without the
    others (ADR 45).
    """
    return (
        "SET plan_cache_mode = force_generic_plan; SET parallel_tuple_cost = 0.01;"
        " SET work_mem = '64MB'"
    )

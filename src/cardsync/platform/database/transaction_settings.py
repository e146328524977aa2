"""Settings of PostgreSQL for one transaction: each function returns the statement that sets one.

The planner and the commit do what suits most programs; each function says where ours is different,
and what it costs to leave the setting out. The figures are of two AMD cores at a load of 20, where
helper processes find no core to help on.
"""

from __future__ import annotations

from typing import Final

_MEMORY: Final = "set_config('work_mem', '64MB', true)"


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


def searched_by_all_processes() -> str:
    """Let helper processes share a search: testing a card costs more than passing it on, but the
    planner expects many matches of a pattern, and would leave the pass to one process.

    A search may find 300,000 cards; each of them, with the keys of its order, stays in memory while
    they are counted and ordered.

    On two busy cores 60 searches cost 0.94 x without it; bench/fences.py measures it.
    """
    return f"SELECT {_MEMORY}, set_config('parallel_tuple_cost', '0.01', true)"


def grouped_by_sorting() -> str:
    """Let many small groups be sorted, in parallel where the server has workers: a hash table of
    all customers takes long where there are hundreds of thousands.

    The customers of 100,000 orders cost 2.0 x without it; bench/fences.py measures it.
    """
    return (
        f"SELECT set_config('enable_hashagg', 'off', true), {_MEMORY},"
        " set_config('parallel_tuple_cost', '0.01', true)"
    )


def joined_by_hash() -> str:
    """Let new rows be joined by hash: statistics may know nothing of them, and a nested loop would
    read all rows for each of them.

    Feedback on 20,000 orders costs 1.2 x without it; bench/fences.py measures it.
    """
    return "SET LOCAL enable_nestloop = off"


def joined_as_planned() -> str:
    """Take `joined_by_hash` back within the same transaction."""
    return "SET LOCAL enable_nestloop TO DEFAULT"


def applied_in_sets() -> str:
    """Let uploads be applied in sets, joined by hash in memory and planned for their own values.

    50,000 new orders cost 1.15 x without it; bench/fences.py measures it.
    """
    return (
        f"SELECT set_config('enable_nestloop', 'off', true), {_MEMORY},"
        " set_config('plan_cache_mode', 'force_custom_plan', true)"
    )


def planned_each_time() -> str:
    """Plan each statement for its own values, however often it runs: a plan that is kept after the
    fifth time knows nothing of rows that this transaction wrote, and reads all of them for each.

    The sums of a new seller's 50,000 orders cost 3.4 x the processor time of PostgreSQL without it,
    at a load of 17; bench/fences.py measures it.
    """
    return "SET LOCAL plan_cache_mode = force_custom_plan"


def found_by_keys() -> str:
    """Let a stored plan find rows by their keys: it outlives the growth of its tables, which are
    small or empty when it is made.

    50 pages of orders cost 0.8 to 1.4 x without it; bench/fences.py measures it.
    """
    return "SET LOCAL enable_seqscan = off"


def committed_before_the_disk() -> str:
    """Let the commit return before the disk has it: for writes that may be lost with the
    database's last moment.

    100 commits cost 1.8 x without it; bench/fences.py measures it.
    """
    return "SET LOCAL synchronous_commit = off"


def planned_once() -> str:
    """Let a connection plan each prepared statement once, whatever its values. It holds as long as
    the connection.

    A page of orders costs 0.9 ms more without it (ADR 19); bench/read_orders.py measures it.
    """
    return "SET plan_cache_mode = force_generic_plan"

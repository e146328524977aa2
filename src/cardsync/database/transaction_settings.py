"""Settings of PostgreSQL for one transaction: each function returns the statement that sets one.

The planner and the commit do what suits most programs; each of these says where ours is different,
and what it costs to leave the setting out.
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
    """
    return "SELECT set_config('enable_sort', 'off', true)"


def grouped_by_all_processes() -> str:
    """Let helper processes share such a read: the planner takes passing rows between processes as
    dearer than reading and converting them.
    """
    return (
        f"{grouped_by_hash()}, set_config('parallel_tuple_cost', '0', true),"
        " set_config('parallel_setup_cost', '0', true)"
    )


def searched_by_all_processes() -> str:
    """Let helper processes share a search: testing a card costs more than passing it on, but the
    planner expects many matches of a pattern, and would leave the pass to one process.

    A search may find 300,000 cards; each of them, with the keys of its order, stays in memory while
    they are counted and ordered.
    """
    return f"SELECT {_MEMORY}, set_config('parallel_tuple_cost', '0.01', true)"


def grouped_by_sorting() -> str:
    """Let many small groups be sorted, in parallel where the server has workers: a hash table of
    all customers takes long where there are hundreds of thousands.
    """
    return (
        f"SELECT set_config('enable_hashagg', 'off', true), {_MEMORY},"
        " set_config('parallel_tuple_cost', '0.01', true)"
    )


def joined_by_hash() -> str:
    """Let new rows be joined by hash: statistics may know nothing of them, and a nested loop would
    read all rows for each of them.
    """
    return "SET LOCAL enable_nestloop = off"


def joined_as_planned() -> str:
    """Take `joined_by_hash` back within the same transaction."""
    return "SET LOCAL enable_nestloop TO DEFAULT"


def applied_in_sets() -> str:
    """Let uploads be applied in sets, joined by hash in memory and planned for their own values."""
    return (
        f"SELECT set_config('enable_nestloop', 'off', true), {_MEMORY},"
        " set_config('plan_cache_mode', 'force_custom_plan', true)"
    )


def found_by_keys() -> str:
    """Let a stored plan find rows by their keys: it outlives the growth of its tables, which are
    small or empty when it is made.
    """
    return "SET LOCAL enable_seqscan = off"


def committed_before_the_disk() -> str:
    """Let the commit return before the disk has it: for writes that may be lost with the
    database's last moment.
    """
    return "SET LOCAL synchronous_commit = off"


def planned_once() -> str:
    """Let a connection plan each prepared statement once, whatever its values. It holds as long as
    the connection.
    """
    return "SET plan_cache_mode = force_generic_plan"

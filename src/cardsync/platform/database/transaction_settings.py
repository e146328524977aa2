"""PostgreSQL settings, most of them for one transaction: each function returns the statement that
sets a setting.

PostgreSQL's defaults suit most programs. Each function describes why this service differs, and the
cost without the setting. The figures were measured on two AMD cores at a load of 20, where parallel
workers find no free core.
"""

from __future__ import annotations


def of_seller(seller_id: int) -> str:
    """Set the seller whose rows row-level security shows.

    The value is a literal that this function formats, because this form also reaches distributed
    nodes.
    """
    return f"SET LOCAL app.seller_id = '{int(seller_id)}'"


def grouped_by_hash() -> str:
    """Group a few large groups by hash: otherwise the planner sorts all rows, on disk if they are
    many.

    Without this setting, grouping 400,000 cards takes PostgreSQL 1.3 times the processor time, and
    39 MB on disk; bench/fences.py measures both.
    """
    return "SELECT set_config('enable_sort', 'off', true)"


def grouped_by_sorting() -> str:
    """Group many small groups by sorting: a hash table of hundreds of thousands of customers is
    slow.

    Without this setting, grouping 100,000 orders by customer takes 2.0 times as long;
    bench/fences.py measures it.
    """
    return "SET LOCAL enable_hashagg = off"


def joined_by_hash() -> str:
    """Join new rows by hash: while the statistics do not include the new rows, the planner may
    choose a nested loop, which reads all rows for each new row.

    The cards of 50,000 orders that arrived since the last ANALYZE are found in 0.4 s; without this
    setting the query ran for over 40 s (ADR 45).
    """
    return "SET LOCAL enable_nestloop = off"


def joined_as_planned() -> str:
    """Undo `joined_by_hash` within the same transaction."""
    return "SET LOCAL enable_nestloop TO DEFAULT"


def planned_each_time() -> str:
    """Plan each statement for its own values, however often it runs. The generic plan, which
    PostgreSQL makes at the fifth run, does not consider rows that this transaction wrote, and would
    read all of them in each run.

    Without this setting, computing the sums of a new seller's 50,000 orders takes PostgreSQL 3.4
    times the processor time (at a load of 17); bench/fences.py measures it.
    """
    return "SET LOCAL plan_cache_mode = force_custom_plan"


def many_rows_pass() -> str:
    """Count what parallel workers pass on, unlike `of_readings`: this statement has many rows.

    Without this setting, the history of a sample of 300,000 cards takes PostgreSQL 2.2 times the
    processor time (ADR 19).
    """
    return "SET LOCAL parallel_tuple_cost TO DEFAULT"


def sent_to_nodes() -> str:
    """Send each statement to its node over a connection, also to rows on the node that plans it.

    Without this setting, such a node runs some statements itself and sends others. A transaction
    that does both fails, from about the twelfth unfinished turn of a refresh on (Citus 13.2).
    """
    return "SET LOCAL citus.enable_local_execution = off"


def committed_before_the_disk() -> str:
    """Let a commit return before it is on the disk, for writes that a crash of the database may
    lose.

    Without this setting 100 commits take 1.8 times as long; bench/fences.py measures it.
    """
    return "SET LOCAL synchronous_commit = off"


def of_readings() -> str:
    """Set the settings of a connection for readings until it is closed. `plan_cache_mode` plans
    each prepared statement once, whatever its values. `parallel_tuple_cost` makes parallel workers
    share a search: testing a card costs more than passing it on, but the planner expects a pattern
    to match many cards. `work_mem` is large enough for the found cards while they are counted and
    sorted.

    Without `plan_cache_mode` a page of orders takes 0.9 ms more (ADR 19), without the other two 60
    searches take 1.1 times as long (ADR 45).
    """
    return (
        "SET plan_cache_mode = force_generic_plan; SET parallel_tuple_cost = 0.01;"
        " SET work_mem = '64MB'"
    )

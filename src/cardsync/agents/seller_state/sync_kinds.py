"""The kinds of a sync, and the rules that the lock and the request share. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, get_args

Kind = Literal["full", "pricing", "orders", "refunds", "feedback", "sales", "account"]
SyncMode = Literal["full", "read_only"]
Phase = Literal[
    "idle", "requested", "collecting", "queued", "importing", "repricing", "awaiting_review",
    "push_queued", "pushing", "cancelling",
]  # fmt: skip
Reason = Literal["manual_request", "scheduled", "no_sync_needed", "in_progress", "auto_sync_paused"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# A sync of these kinds ends with the server's import and pricing; a sync of another kind ends with
# the agent's log.
INVENTORY_KINDS = ("full", "pricing")
# The kinds that fetch orders. Only these kinds can end a first sync.
ORDER_KINDS = ("full", "orders", "refunds", "feedback")


def read_kind(value: object) -> str:
    """Parse a kind; any value that is not a kind means `full`."""
    return value if isinstance(value, str) and value in KINDS else "full"


def merge_kinds(waiting: str | None, new: str) -> str:
    """Merge two requests that wait for a cycle: `full` has precedence, else the newer kind."""
    return "full" if "full" in (waiting, new) else new


def is_stale(
    refreshed_at: datetime | None,
    *,
    lease_is_live: bool,
    uploads_open: int,
    now: datetime,
    stale_after: timedelta,
) -> bool:
    """Return whether a lock is stale: it was not refreshed for long, no worker writes, and no
    accepted upload is unfinished.
    """
    if lease_is_live or uploads_open:
        return False
    return refreshed_at is None or now - refreshed_at > stale_after

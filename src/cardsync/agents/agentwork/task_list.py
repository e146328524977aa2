"""Lists a seller's tasks for pages and support, newest first.

A task whose claim expired is shown as pending or failed, even before a request takes it back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.agents.agentwork.models import AgentTask, Status
from cardsync.agents.agentwork.schemas import Tasks, task_body
from cardsync.agents.agentwork.task_kinds import ATTEMPTS, Kind
from cardsync.platform.database.read_sources import Source, numbered
from cardsync.platform.kit.row_pages import Paging

_OF_STATUS: Final = f"""
    AND CASE WHEN (status = 'claimed' AND claim_expires_at <= :now) IS NOT TRUE THEN status
             WHEN attempt + 1 >= {ATTEMPTS} THEN 'failed' ELSE 'pending' END = :status
"""


async def page_of_tasks(
    source: Source,
    caller: Caller,
    status: Status | None,
    kind: Kind | None,
    paging: Paging,
    now: datetime,
) -> Tasks:
    """Return a page of tasks. Raises OwnerRequired."""
    caller.must_be_owner()
    where = "" if status is None else _OF_STATUS
    where += "" if kind is None else " AND kind = :kind"
    values = {"status": status, "kind": kind, "now": now}
    found = await numbered(source, AgentTask, caller.seller_id, paging, where, **values)
    return Tasks([task_body(task, now) for task in found.rows], *found.numbers)

"""The task that removes an account whose time has come. It names the tables, because all of them
are known here.
"""

from __future__ import annotations

import procrastinate

from cardsync.accounts import deletion
from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables
from cardsync.work.jobs import jobs, work_of


@jobs.task(name="accounts.remove", queue="housekeeping", pass_context=True)
async def remove_account(context: procrastinate.JobContext, seller_id: int) -> None:
    await deletion.remove(work_of(context), seller_id, tenant_tables(), GLOBAL_BY_SELLER)

"""The progress of an upload: its row goes in; the report comes out, with the queue or the price run
behind it.

Rules with queries price an upload once its rows are written; until that run has ended the upload
counts as processing.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.inventory.shown import InventoryReport, QueueBody, UploadReport, report_of
from cardsync.pricing.runs import reprice
from cardsync.work.streams import queue_of
from cardsync.work.uploads import Upload


async def report_on(
    session: AsyncSession,
    upload: Upload,
    now: datetime,
) -> InventoryReport | UploadReport:
    report = report_of(upload)
    if report.state == "queued":
        queue = await queue_of(session, upload, now)
        return msgspec.structs.replace(report, queue=QueueBody(*queue))
    if report.state != "done":
        return report
    run = await reprice.following(session, upload.seller_id, upload.id)
    if run is None:
        return report
    if run.state == "running":
        return msgspec.structs.replace(report, state="processing", finished_at=None)
    return msgspec.structs.replace(report, state=run.state, review=["large_moves"])

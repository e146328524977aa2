"""Reports the progress of uploads, with the position in the queue or the state of the pricing run
that follows.

Rules with queries price an upload in a pricing run after its rows are written. Until that run ends,
the upload is reported as processing; if the seller discards the run, as discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from cardsync.access.caller import Caller
from cardsync.agents.sync.cancel import is_cycle_cancelled
from cardsync.imports.schemas import (
    InventoryReport,
    ListedUpload,
    QueueBody,
    UploadReport,
    report_of,
)
from cardsync.platform.database.read_sources import Source, each_of, found
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.work.models import Upload
from cardsync.platform.work.streams import queue_of
from cardsync.prices.models import PriceRun
from cardsync.prices.runs import reprice

Report: TypeAlias = InventoryReport | UploadReport
_CATALOG: Final = "SELECT EXISTS (SELECT FROM catalog_import)"


async def report_on(
    source: Source,
    caller: Caller,
    upload: Upload,
    now: datetime,
) -> Report:
    report = report_of(upload)
    if upload.stream != "inventory" and not caller.sees_buyers:
        # If the columns of a row have shifted, any cell may contain a buyer's name or address.
        for row in report.rejected:
            row.message = f"{row.column} cannot be read"
    runs: dict[int, PriceRun] = {}
    if isinstance(report, InventoryReport):
        [[catalog_loaded]], is_cancelled, runs = await each_of(
            source,
            found(source, _CATALOG, {}),
            _is_cycle_cancelled(source, caller, upload),
            _runs_behind(source, [upload]),
        )
        report.catalog_loaded = catalog_loaded
        if is_cancelled:
            report.cycle_cancelled = True
    if report.state == "queued":
        queue = await queue_of(source, upload, now)
        return msgspec.structs.replace(report, queue=QueueBody(*queue))
    run = runs.get(upload.id)
    return report if run is None else _with_run(report, run)


async def _is_cycle_cancelled(source: Source, caller: Caller, upload: Upload) -> bool:
    # An agent asks again until its upload is done, so it is not read before.
    cycle_id = upload.sync_cycle_id if upload.state == "done" else None
    return cycle_id is not None and await is_cycle_cancelled(source, caller.seller_id, cycle_id)


async def listed_reports(source: Source, uploads: Sequence[Upload]) -> list[ListedUpload]:
    runs = await _runs_behind(source, uploads)
    reports = [report_of(upload) for upload in uploads]
    return [
        struct_of(
            ListedUpload,
            _with_run(report, runs[report.id]) if report.id in runs else report,
        )
        for report in reports
    ]


async def _runs_behind(source: Source, uploads: Sequence[Upload]) -> dict[int, PriceRun]:
    done = [upload for upload in uploads if upload.state == "done" and upload.stream == "inventory"]
    if not done:
        return {}
    return await reprice.following(source, done[0].seller_id, [upload.id for upload in done])


def _with_run(report: Report, run: PriceRun) -> Report:
    if run.state == "running":
        return msgspec.structs.replace(report, state="processing", finished_at=None)
    changes: dict[str, object] = {"state": run.state, "review": ["large_moves"]}
    if run.state == "discarded" and run.finished_at is not None:
        changes["finished_at"] = run.finished_at
    return msgspec.structs.replace(report, **changes)

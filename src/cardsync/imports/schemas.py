"""The JSON structs of uploads and their reports, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from cardsync.platform.work.models import State, Upload


class UploadSlot(msgspec.Struct):
    upload_url: str
    key: str
    """The key for POST /api/v1/sync after the PUT, as syncs/u<seller>/<uuid>.csv"""
    expires_at: str


class Accepted(msgspec.Struct):
    status: Literal["accepted"]
    """Always accepted"""
    upload_id: int


class Rejected(msgspec.Struct):
    """A rejected row of an upload. For inventory, `line` is the number of the file's line; for
    order data, `row` is the number in the array. Both start at 1.
    """

    column: str | None
    code: str
    message: str
    line: int | msgspec.UnsetType = msgspec.UNSET
    row: int | msgspec.UnsetType = msgspec.UNSET


class Failure(msgspec.Struct):
    code: str
    message: str


class QueueBody(msgspec.Struct):
    """`ahead` is the number of the account's earlier uploads plus the number of other accounts with
    waiting uploads; accounts take turns of one upload. `oldest_seconds` is the longest wait of all
    uploads.
    """

    ahead: int
    """The account's earlier uploads, plus the other accounts with waiting uploads"""
    oldest_seconds: int


class UploadReport(msgspec.Struct, kw_only=True):
    """The state and outcome of an accepted upload; while it is queued, also the length of the
    queue.
    """

    id: int
    stream: str
    state: State
    """The current state of the upload"""
    received_at: datetime
    finished_at: datetime | None
    rows: int
    applied: int
    skipped: int
    """Rows without effect, such as those of unknown orders"""
    duplicates: int
    rejected_count: int
    rejected: list[Rejected]
    error: Failure | None
    queue: QueueBody | msgspec.UnsetType = msgspec.UNSET


class InventoryReport(UploadReport, kw_only=True):
    """`blocked` counts the cards without a target by reason. `catalog_loaded`: without a catalog,
    no card is matched to a product, but all can be priced. `cycle_cancelled`: the seller cancelled
    the sync of the upload.
    """

    catalog_loaded: bool | msgspec.UnsetType = msgspec.UNSET
    """A catalog is loaded to match cards with"""
    matched: int
    provisional: int
    """Cards without a product in the catalog"""
    ambiguous: int
    """Cards that match several products"""
    new_printing: int
    """Cards with an unknown printing, which is stored as text"""
    priced: int
    changed: int
    """Cards whose price or quantity changed"""
    gone: int
    """Cards that are sold out or no longer in the file"""
    noted_count: int
    """The number of notes"""
    noted: list[Rejected]
    """Notes on applied rows or the whole file"""
    blocked: dict[str, int]
    review: list[str]
    cycle_cancelled: bool | msgspec.UnsetType = msgspec.UNSET
    """The seller cancelled the sync of the upload"""
    new: int
    """New cards"""


class ListedUpload(msgspec.Struct):
    """A short report; GET /uploads/{id} has the full report."""

    id: int
    stream: str
    state: State
    """The current state of the upload"""
    received_at: datetime
    finished_at: datetime | None
    rows: int
    """The number of rows in the upload"""
    applied: int
    rejected_count: int
    error: Failure | None


class UploadList(msgspec.Struct):
    uploads: list[ListedUpload]
    total: int
    page: int
    per_page: int
    total_pages: int


def report_of(upload: Upload) -> UploadReport:
    report = upload.report
    shared: dict[str, Any] = {
        "id": upload.id,
        "stream": upload.stream,
        "state": upload.state,
        "received_at": upload.received_at,
        "finished_at": upload.finished_at,
        "rejected": [Rejected(**row) for row in report.get("rejected", [])],
        "error": Failure(upload.error_code, upload.error_message or "")
        if upload.error_code
        else None,
        **{
            name: int(report.get(name, 0))
            for name in ("rows", "applied", "skipped", "duplicates", "rejected_count")
        },
    }
    if upload.stream != "inventory":
        return UploadReport(**shared)
    results: dict[str, Any] = {
        name: int(report.get(name, 0))
        for name in (
            "new",
            "matched",
            "provisional",
            "ambiguous",
            "new_printing",
            "priced",
            "changed",
            "gone",
        )
    }
    return InventoryReport(
        **shared,
        noted=[Rejected(**row) for row in report.get("noted", [])],
        noted_count=int(report.get("noted_count", 0)),
        blocked=report.get("blocked", {}),
        review=report.get("review", []),
        **results,
    )

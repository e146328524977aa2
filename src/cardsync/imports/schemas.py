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
    """The key that POST /api/v1/sync takes after the PUT, as syncs/u<seller>/<uuid>.csv"""
    expires_at: str


class Accepted(msgspec.Struct):
    status: Literal["accepted"]
    """Always accepted"""
    upload_id: int


class Rejected(msgspec.Struct):
    """A rejected part of an upload. For inventory, `line` is the line of the file; for order data,
    the row of the array. Both count from 1.
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
    """`ahead` counts the account's uploads before this one, and the other accounts that wait for a
    turn; each does one upload a turn. `oldest_seconds` is how long the longest of all that wait has
    waited.
    """

    ahead: int
    """The account's uploads before this one, and the other accounts that wait for a turn"""
    oldest_seconds: int


class UploadReport(msgspec.Struct, kw_only=True):
    """The state and outcome of an accepted upload; while it is queued, also the length of the
    queue.
    """

    id: int
    stream: str
    state: State
    """The state of the upload so far"""
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
    """`blocked` counts why cards got no price. Without a catalog (`catalog_loaded`) no card is
    matched to a product; prices need none. `cycle_cancelled`: the seller cancelled the sync that
    brought it.
    """

    catalog_loaded: bool | msgspec.UnsetType = msgspec.UNSET
    """There is a catalog to match cards with"""
    matched: int
    provisional: int
    """Cards that the catalog lacks"""
    ambiguous: int
    """Cards that several products fit"""
    new_printing: int
    """Cards with a printing that no table knows, kept as its text"""
    priced: int
    changed: int
    """Cards whose price or quantity changed"""
    gone: int
    """Cards that are sold out or no longer in the file"""
    noted_count: int
    """How much was odd"""
    noted: list[Rejected]
    """The oddities of rows that were applied"""
    blocked: dict[str, int]
    review: list[str]
    cycle_cancelled: bool | msgspec.UnsetType = msgspec.UNSET
    """The seller cancelled the sync that brought it"""
    new: int
    """Cards that were not known before"""


class ListedUpload(msgspec.Struct):
    """The report in short; GET /uploads/{id} has it in full."""

    id: int
    stream: str
    state: State
    """The state of the upload so far"""
    received_at: datetime
    finished_at: datetime | None
    rows: int
    """The rows of the upload"""
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

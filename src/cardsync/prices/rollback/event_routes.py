"""HTTP routes by which the agent reports a price file as imported or failed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, post

from cardsync.access.caller import Caller
from cardsync.agents.sync.cycle_logs import CycleId
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.described import Dollars, Like
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.value_types import Json
from cardsync.platform.work.jobs import Work
from cardsync.prices.rollback import repricing_events
from cardsync.prices.rollback.schemas import Recorded
from cardsync.web.request import FOR_AGENTS, WITH_JSON_BODY, problems

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$")]
CardId = Annotated[int, msgspec.Meta(ge=-(2**63) + 1, le=2**63 - 1)]
RowCount = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ImportedRow(msgspec.Struct):
    """Prices are numbers or decimal strings, in dollars."""

    marketplace_id: int
    old_price: Annotated[Json, Like(Dollars | None)] = None
    """The price before the import, in USD"""
    new_price: Annotated[Json, Like(Dollars | None)] = None


class RefusedPriceRow(msgspec.Struct):
    """A row of the file that the marketplace refused. It is named by the card's marketplace id or,
    in a quick-add file, by the row's entry in X-Quick-Add-Ids.
    """

    marketplace_id: CardId | None = None
    entry_id: CardId | None = None
    """The quick-add entry of the row; null if it has none"""
    message: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class ImportReport(msgspec.Struct, kw_only=True):
    """`file_sha256` is the SHA-256 of the downloaded file. `paused` are cards that the agent omits
    from later files, because the marketplace refused each of them three times.
    """

    imported_at: str
    row_count: RowCount
    sync_cycle_id: CycleId | None = None
    file_sha256: Sha256 | None = None
    rows: list[ImportedRow] | None = None
    """The rows of the file"""
    rejected: Annotated[list[RefusedPriceRow], msgspec.Meta(max_length=10_000)] | None = None
    """The rows that the marketplace refused"""
    paused: Annotated[list[CardId], msgspec.Meta(max_length=10_000)] | None = None
    """Cards that the agent omits from later files, because the marketplace refused each card three
    times
    """


class ImportFailure(msgspec.Struct):
    code: Annotated[str, msgspec.Meta(max_length=200)]
    message: Annotated[str, msgspec.Meta(max_length=10_000)]


class FailureReport(msgspec.Struct, kw_only=True):
    """The report of a file that was not imported. `imported_at` is absent if the import did not
    start.
    """

    step: Annotated[str, msgspec.Meta(max_length=200)]
    error: ImportFailure
    imported_at: str | None = None
    row_count: RowCount = 0
    sync_cycle_id: CycleId | None = None
    file_sha256: Sha256 | None = None


@post("/repricing_events", status_code=201, responses=problems(*FOR_AGENTS, *WITH_JSON_BODY))
async def record_import(
    caller: Caller,
    database: Database,
    settings: Settings,
    store: Store,
    data: ImportReport,
) -> Recorded:
    """Report an imported price file: the cards get the imported prices, and the agent's task is
    done. A price that was observed after the import stays, unless it was observed at most five
    minutes later and still equals `old_price`. A repeated report returns the same event.
    """
    now = clock.now()
    rows = [(row.marketplace_id, row.old_price, row.new_price) for row in data.rows or ()]
    refused = [(row.marketplace_id, row.entry_id, row.message) for row in data.rejected or ()]
    report = repricing_events.report_of_import(
        data.imported_at,
        data.row_count,
        data.sync_cycle_id,
        data.file_sha256,
        rows,
        refused,
        data.paused or [],
        now,
    )
    work = Work(settings, database, store)
    event_id = await repricing_events.record_import(work, caller, report, now)
    return Recorded("recorded", event_id)


@post(
    "/repricing_events/failure",
    status_code=201,
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY),
)
async def record_failure(caller: Caller, database: Database, data: FailureReport) -> Recorded:
    """Report a price file that could not be imported.

    A rollback that fails changes no price and can be requested again.
    """
    now = clock.now()
    report = repricing_events.report_of_failure(
        data.imported_at,
        data.row_count,
        data.sync_cycle_id,
        data.file_sha256,
        data.step,
        {"code": data.error.code, "message": data.error.message},
        now,
    )
    async with database.tenant(caller.seller_id) as session:
        event_id, _ = await repricing_events.record(session, caller, report, now)
    return Recorded("recorded", event_id)


router = Router(
    path="",
    route_handlers=[record_import, record_failure],
    tags=["pricing"],
)

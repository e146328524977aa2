"""HTTP routes of inventory uploads: presigned uploads, both forms of POST /sync, reports, corrected
rows, and reviews.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from litestar import MediaType, Response, Router, get, post, put
from litestar.background_tasks import BackgroundTask
from litestar.datastructures import State
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import HeaderParameter, QueryParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, A_TOKEN, BY_ANY, BY_ANYBODY, BY_EITHER
from cardsync.access.caller import Caller
from cardsync.access.patience import POLLED
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.imports import accept_inventory, correct_rows, presigned_puts, reviews
from cardsync.imports.errors import (
    AlreadyUsed,
    CsvProcessingFailed,
    InvalidObjectKey,
    InvalidProductLine,
    ObjectStorePipelineDisabled,
)
from cardsync.imports.limits import UPLOADS_PER_PAGE_MOST
from cardsync.imports.schemas import (
    Accepted,
    InventoryReport,
    UploadList,
    UploadReport,
    UploadSlot,
)
from cardsync.imports.upload_report import listed_reports, report_on
from cardsync.platform import clock, errors, limits, read_json
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.web import as_csv, retired
from cardsync.web.field_words import WORDS
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import (
    FOR_AGENTS,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    ApiRequest,
    WithSlashes,
    media_type,
    problems,
)


class UploadRequest(msgspec.Struct):
    product_line: str | None = None


@post(
    "/sync/upload-request",
    status_code=200,
    opt=UPLOADS,
    responses=problems(
        *FOR_AGENTS,
        *WITH_JSON_BODY,
        InvalidProductLine,
        ObjectStorePipelineDisabled,
    ),
)
async def request_upload(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    store: Store,
    settings: Settings,
    data: UploadRequest | None = None,
) -> UploadSlot:
    """Create a URL that accepts one PUT of the CSV, plain or gzip, for ten minutes. A POST /sync
    with the key then uses the product line of this request.
    """
    line = data.product_line if data else None
    slot = await accept_inventory.new_slot(session, caller, store, settings, line, clock.now())
    origin = settings.origin_for(request.headers.get("host")) if slot.url.startswith("/") else ""
    return UploadSlot(origin + slot.url, slot.key, clock.rfc3339(slot.expires_at))


@dataclass
class _InventoryBody(Operation):
    """Describes the forms of the body of POST /sync, which reads its body itself, so that the
    framework does not know them.
    """

    def __post_init__(self) -> None:
        said = {
            "key": "The key that POST /api/v1/sync/upload-request answered with",
            "product_line": "The line of rows that name none; only its absent cards are sold out",
            "sync_cycle_id": WORDS["sync_cycle_id"],
            "exported_at": "When the marketplace made the file; not in the future",
        }
        self.request_body = RequestBody(
            required=True,
            description="The CSV, gzip or plain; or the key of an object that was PUT before. At most 10 MB on the wire.",
            content={
                **_csv_forms(retired=True),
                "application/octet-stream": OpenAPIMediaType(
                    schema=Schema(
                        type=OpenAPIType.STRING, content_media_type="text/csv", deprecated=True
                    )
                ),
                "application/json": OpenAPIMediaType(
                    schema=Schema(
                        type=OpenAPIType.OBJECT,
                        required=["key"],
                        properties={
                            name: Schema(type=OpenAPIType.STRING, description=words)
                            for name, words in said.items()
                        },
                    )
                ),
            },
        )


def _csv_forms(*, retired: bool | None = None) -> dict[str, OpenAPIMediaType]:
    return {
        kind: OpenAPIMediaType(
            schema=Schema(type=OpenAPIType.STRING, content_media_type=kind, deprecated=retired)
        )
        for kind in ("application/gzip", "text/csv")
    }


@dataclass
class _ObjectBody(Operation):
    def __post_init__(self) -> None:
        self.request_body = RequestBody(
            required=True,
            description="The CSV: at most 20 MB where it begins with 1f 8b (gzip), else 50 MB. No Content-Type is needed.",
            content=_csv_forms(),
        )


@post(
    "/sync",
    status_code=202,
    opt=UPLOADS,
    operation_class=_InventoryBody,
    request_max_body_size=limits.BODY_WIRE_BYTES,
    responses=problems(
        *FOR_AGENTS,
        errors.BadRequest,
        errors.PayloadTooLarge,
        errors.DecompressedTooLarge,
        errors.InvalidCsv,
        errors.InvalidGzip,
        InvalidProductLine,
        CsvProcessingFailed,
        InvalidObjectKey,
        errors.InvalidPayload,
        ObjectStorePipelineDisabled,
    ),
)
async def upload_inventory(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    x_product_line: Annotated[
        str | None, HeaderParameter(name="X-Product-Line", required=False)
    ] = None,
    x_exported_at: Annotated[
        str | None, HeaderParameter(name="X-Exported-At", required=False)
    ] = None,
    x_sync_cycle_id: Annotated[
        str | None, HeaderParameter(name="X-Sync-Cycle-Id", required=False)
    ] = None,
) -> Accepted:
    """Upload inventory: as JSON, the key of an object that was PUT before; or the CSV itself (gzip
    or plain), which is deprecated and only for old agents.
    """
    content_type = media_type(request.headers)
    now = clock.now()
    if content_type == "application/json":
        named = await _named_object(request)
        upload_id = await accept_inventory.accept_named(
            database, caller, store, settings, named, now
        )
    else:
        if caller.account.object_store_pipeline_enabled:
            retired.used(request.scope, retired.CSV_IN_BODY)
        cycle = x_sync_cycle_id[:200] if x_sync_cycle_id else None
        # A client without a product line may send an empty header.
        arrived = accept_inventory.arrival(
            caller, x_product_line or None, cycle, x_exported_at, now
        )
        body = request.stream()
        upload_id = await accept_inventory.accept_bytes(
            database,
            caller,
            store,
            settings,
            body,
            content_type,
            arrived,
        )
    return Accepted("accepted", upload_id)


async def _named_object(request: ApiRequest) -> accept_inventory.NamedObject:
    return read_json.read(await request.json(), accept_inventory.NamedObject)


@get(
    "/uploads/{upload_id:int}",
    opt=BY_ANY | POLLED,
    security=[A_SESSION, A_TOKEN],
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def read_upload(
    upload_id: int,
    caller: Caller,
    session: AsyncSession,
) -> InventoryReport | UploadReport:
    """Show the progress of an upload, and every skipped row with its reason."""
    now = clock.now()
    return await report_on(
        session, caller, await accept_inventory.watched(session, caller, upload_id, now), now
    )


@get(
    "/uploads",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.InvalidPayload),
)
async def list_uploads(
    caller: Caller,
    session: AsyncSession,
    page: Annotated[int, QueryParameter(ge=1, le=limits.PAGE_MOST)] = 1,
    per_page: Annotated[int, QueryParameter(ge=1, le=UPLOADS_PER_PAGE_MOST)] = (
        limits.UPLOADS_PER_PAGE
    ),
) -> UploadList:
    """Uploads of inventory and orders, newest first, with their results."""
    found = await correct_rows.page_of_uploads(session, caller, Paging(page, per_page))
    return UploadList(await listed_reports(session, found.rows), *found.numbers)


@get(
    "/uploads/{upload_id:int}/rejected.csv",
    media_type="text/csv",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def rejected_rows(
    upload_id: int,
    caller: Caller,
    heavy: HeavyWork,
) -> Response[bytes]:
    """All rejected rows with the file's own columns, their lines and reasons. Correct the rows and
    send them to POST /uploads/{upload_id}/mend.
    """
    parts = await correct_rows.rejected(heavy, caller, upload_id)
    return as_csv.file(parts, f"rejected-{upload_id}", BackgroundTask(parts.aclose))


@dataclass
class _MendedBody(Operation):
    def __post_init__(self) -> None:
        self.request_body = RequestBody(
            required=True,
            description="The rows of rejected.csv, mended; its column Line says which rows they are.",
            content={"text/csv": _csv_forms()["text/csv"]},
        )


@post(
    "/uploads/{upload_id:int}/mend",
    status_code=202,
    opt=BY_EITHER | UPLOADS,
    security=[A_SESSION],
    operation_class=_MendedBody,
    request_max_body_size=limits.BODY_WIRE_BYTES,
    responses=problems(
        *FOR_OWNERS,
        errors.NotFound,
        errors.NotTheNewest,
        errors.PayloadTooLarge,
        errors.DecompressedTooLarge,
        errors.InvalidCsv,
    ),
)
async def mend_upload(
    request: ApiRequest,
    upload_id: int,
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    heavy: HeavyWork,
) -> Accepted:
    """Upload the file again, with the corrected rows instead of the rejected ones."""
    mended = await request.body()
    new_id = await correct_rows.mend(database, caller, store, settings, heavy, upload_id, mended)
    return Accepted("accepted", new_id)


@post(
    "/uploads/{upload_id:int}/confirm",
    status_code=200,
    opt=BY_EITHER,
    security=[A_SESSION],
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.NotAwaitingReview),
)
async def confirm_upload(
    upload_id: int,
    caller: Caller,
    session: AsyncSession,
) -> InventoryReport | UploadReport:
    """Confirm an upload that needs review: absent cards are out of stock, and prices change."""
    now = clock.now()
    upload = await reviews.settle_upload(session, caller, upload_id, "confirmed", now)
    return await report_on(session, caller, upload, now)


@post(
    "/uploads/{upload_id:int}/discard",
    status_code=200,
    opt=BY_EITHER,
    security=[A_SESSION],
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.NotAwaitingReview),
)
async def discard_upload(
    upload_id: int,
    caller: Caller,
    session: AsyncSession,
) -> InventoryReport | UploadReport:
    """Discard an upload that needs review: the row updates remain, but absent cards remain in
    stock, and no price changes.
    """
    now = clock.now()
    upload = await reviews.settle_upload(session, caller, upload_id, "discarded", now)
    return await report_on(session, caller, upload, now)


@put(
    "/objects/{key:path}",
    status_code=200,
    # The response is text, because JSON would send `null` as an empty response.
    media_type=MediaType.TEXT,
    operation_class=_ObjectBody,
    tags=["objects"],
    request_max_body_size=limits.PRESIGNED_PLAIN_BYTES + 1,
    responses=problems(
        errors.BadRequest,
        errors.InvalidSignature,
        errors.UrlExpired,
        AlreadyUsed,
        errors.PayloadTooLarge,
        errors.NotFound,
        errors.RateLimited,
        errors.ServiceUnavailable,
    ),
)
async def put_object(
    request: ApiRequest,
    key: WithSlashes,
    state: State,
    expires: str = "",
    signature: str = "",
) -> None:
    """Receive a presigned PUT to the embedded object store. The URL authorizes one upload."""
    store = presigned_puts.local(state.store)
    key = key.removeprefix("/")
    try:
        store.verify_put(key, expires, signature, clock.now())
    except errors.Problem:
        await state.rate_limits.admit_anonymous(request.scope)
        raise
    await presigned_puts.receive(store, key, request.stream())


router = Router(
    path="",
    route_handlers=[
        request_upload,
        upload_inventory,
        list_uploads,
        read_upload,
        rejected_rows,
        mend_upload,
        confirm_upload,
        discard_upload,
    ],
    tags=["inventory"],
)

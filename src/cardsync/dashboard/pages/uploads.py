"""The pages of uploads: the result of each upload, its review, and its rejected rows, which a
member corrects and uploads again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from litestar import Response, get
from litestar.background_tasks import BackgroundTask
from litestar.response import Stream, Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.dashboard.form_handlers import AROUND_BYTES, again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import HEADERS, PageRequest, back_to, paging_of, see, show
from cardsync.imports import accept_inventory, correct_rows, reviews
from cardsync.imports.upload_report import listed_reports, report_on
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.work.models import Upload
from cardsync.shop.operators import catalog_installs
from cardsync.web import as_csv
from cardsync.web.forms import Form
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import provide_settings, reading

MENDED_BYTES: Final = limits.BODY_WIRE_BYTES + AROUND_BYTES
UNDER_WAY: Final = ("queued", "processing")


@get("/sync/uploads")
async def uploads_page(request: PageRequest, caller: Caller) -> Template:
    paging = paging_of(request, limits.UPLOADS_PER_PAGE)
    async with reading(request) as reads:
        found = await correct_rows.page_of_uploads(reads, caller, paging)
        uploads = await listed_reports(reads, found.rows)
    return show(
        request,
        caller,
        "uploads.html",
        uploads=uploads,
        **found.numbers._asdict(),
    )


@get("/sync/uploads/{upload_id:int}")
async def upload_page(request: PageRequest, caller: Caller, upload_id: int) -> Template:
    async with reading(request) as reads:
        return await _shown(request, caller, reads)


async def _shown(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    now, upload_id = clock.now(), request.path_params["upload_id"]
    settings = provide_settings(request.app.state)
    upload = await accept_inventory.shown_upload(source, caller, upload_id)
    report, no_catalog = await each_of(
        source,
        report_on(source, caller, upload, now),
        _without_catalog(source, caller, upload, settings, now),
    )
    under_way = report.state in UNDER_WAY
    return show(
        request,
        caller,
        "upload.html",
        report=report,
        under_way=under_way,
        no_catalog=None if under_way else no_catalog,
        problem=problem,
    )


async def _without_catalog(
    source: Source, caller: Caller, upload: Upload, settings: Settings, now: datetime
) -> catalog_installs.NoCatalog | None:
    if upload.stream != "inventory" or upload.state in UNDER_WAY:
        return None
    return await catalog_installs.without_catalog(source, caller, now, settings)


@post_form("/sync/uploads/{upload_id:int}/review")
async def settle_review(
    caller: Caller, form: Form, session: AsyncSession, upload_id: int
) -> Response[str]:
    decision = form["decision"]
    if decision not in ("confirmed", "discarded"):
        raise errors.InvalidPayload("decision: confirmed or discarded")
    word: Literal["confirmed", "discarded"] = (
        "confirmed" if decision == "confirmed" else "discarded"
    )
    await reviews.settle_upload(session, caller, upload_id, word, clock.now())
    return back_to(form["back"] or f"/sync/uploads/{upload_id}", message(f"upload_{word}"))


@get("/sync/uploads/{upload_id:int}/rejected.csv")
async def rejected_rows(caller: Caller, heavy: HeavyWork, upload_id: int) -> Stream:
    parts = await correct_rows.rejected(heavy, caller, upload_id)
    headers = HEADERS | as_csv.headers(f"rejected-{upload_id}")
    ended = BackgroundTask(parts.aclose)
    return Stream(parts, media_type="text/csv", headers=headers, background=ended)


@post_form(
    "/sync/uploads/{upload_id:int}/mend",
    UPLOADS,
    exception_handlers=again(
        _shown, errors.InvalidCsv, errors.NotTheNewest, errors.DecompressedTooLarge
    ),
    request_max_body_size=MENDED_BYTES,
)
async def mend_upload(
    caller: Caller,
    form: Form,
    database: Database,
    store: Store,
    settings: Settings,
    heavy: HeavyWork,
    upload_id: int,
) -> Response[str]:
    if form.file is None:
        raise errors.InvalidCsv("choose the corrected file first")
    mended = await form.file.read()
    new = await correct_rows.mend(database, caller, store, settings, heavy, upload_id, mended)
    return see(f"/sync/uploads/{new}", message("upload_mended"))


ROUTES: Final = [uploads_page, upload_page, settle_review, rejected_rows, mend_upload]

"""HTTP routes of sales reports: upload of a month's report, the stored months, and missing months."""

from __future__ import annotations

from dataclasses import dataclass, replace

from litestar import Router, get, post
from litestar.openapi.spec import (
    OpenAPIFormat,
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    RequestBody,
    Schema,
)
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, BY_EITHER
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.sales.errors import InvalidJson
from cardsync.sales.orders import sales_reports
from cardsync.sales.orders.sales_schemas import (
    Gaps,
    MonthReport,
    MonthReports,
    ReportStored,
)
from cardsync.web.field_words import WORDS
from cardsync.web.request import FOR_AGENTS, READ_BY_OWNERS, ApiRequest, problems, takes_json


@dataclass
class _ReportBody(Operation):
    """The description of the body of POST /sales_report. The route reads its body itself, so the
    framework does not know the fields.
    """

    def __post_init__(self) -> None:
        day = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.DATE)
        amount = Schema(
            type=[OpenAPIType.NUMBER, OpenAPIType.STRING, OpenAPIType.NULL],
        )
        count = Schema(type=[OpenAPIType.INTEGER, OpenAPIType.STRING, OpenAPIType.NULL])
        forms = dict.fromkeys(sales_reports.AMOUNTS, amount) | dict.fromkeys(
            sales_reports.COUNTS, count
        )
        report = Schema(
            type=OpenAPIType.OBJECT,
            description=WORDS["report"],
            properties={
                name: replace(form, description=WORDS[name]) for name, form in forms.items()
            },
        )
        whole = Schema(
            type=OpenAPIType.OBJECT,
            required=["date_from", "date_to", "report"],
            properties={
                "date_from": replace(day, description="The first day of the month"),
                "date_to": replace(day, description="The last day, or one of this month"),
                "report": report,
            },
        )
        self.request_body = RequestBody(
            required=True,
            description="A JSON object; the same as `application/gzip`, compressed.",
            content={
                "application/json": OpenAPIMediaType(schema=whole),
            },
        )


@post(
    "/sales_report",
    status_code=200,
    opt=UPLOADS,
    operation_class=_ReportBody,
    request_max_body_size=limits.BODY_WIRE_BYTES,
    responses=problems(
        *FOR_AGENTS,
        errors.BadRequest,
        errors.PayloadTooLarge,
        errors.DecompressedTooLarge,
        errors.UnsupportedMediaType,
        InvalidJson,
        errors.InvalidGzip,
        errors.InvalidPayload,
    ),
)
async def upload_sales_report(
    request: ApiRequest,
    caller: Caller,
    database: Database,
) -> ReportStored:
    """Store a month's report, or update it if the month is stored. A report up to the month's last
    day covers the month, even without revenue.
    """
    takes_json(request.headers)
    body = await request.body()
    report = await sales_reports.receive(database, caller, body, clock.now())
    return struct_of(ReportStored, report, status="ok")


@get(
    "/sales_report",
    opt=BY_EITHER,
    security=[A_SESSION],
    responses=problems(*READ_BY_OWNERS),
)
async def read_sales_reports(caller: Caller, session: AsyncSession) -> MonthReports:
    """The stored months, oldest first; for owners, and for staff who may see revenue."""
    rows = await sales_reports.stored(session, caller)
    return MonthReports([struct_of(MonthReport, row) for row in rows])


@get("/sales_report/gaps", responses=problems(*FOR_AGENTS))
async def read_sales_report_gaps(caller: Caller, session: AsyncSession) -> Gaps:
    """The first days of the months that no report covers completely, oldest first. A shop without
    dated orders has none.
    """
    return Gaps(await sales_reports.gaps(session, caller, clock.now()))


router = Router(
    path="",
    route_handlers=[upload_sales_report, read_sales_reports, read_sales_report_gaps],
    tags=["sales"],
)

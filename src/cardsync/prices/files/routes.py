"""HTTP route of the price file."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, Router, get
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.prices.files.content import REASONS
from cardsync.prices.served_file import served_file
from cardsync.stock.quick_add.served_entries import Asker
from cardsync.web import as_csv
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import FOR_AGENTS, problems, storable

_CACHE = {"Cache-Control": "private, no-cache", "Vary": "Authorization"}


@get(
    "/export/price-updates",
    media_type="text/csv",
    response_headers=[
        ResponseHeader(
            "ETag",
            documentation_only=True,
            description="Weak; names the set of (id, target). read_only accounts only",
        ),
        ResponseHeader("Cache-Control", documentation_only=True, description="private, no-cache"),
        ResponseHeader("Vary", documentation_only=True, description="Authorization"),
        ResponseHeader(
            "X-Price-Export-Empty-Reason",
            documentation_only=True,
            description=f"Why the CSV is header-only, joined by commas: {', '.join(REASONS)}",
        ),
        ResponseHeader(
            "X-Price-Export-Kind",
            documentation_only=True,
            description="The kind of file: price_updates, rollback or quick_add",
        ),
        ResponseHeader(
            "X-Quick-Add-Ids",
            documentation_only=True,
            description="With a file of quick-add, its entries in the rows' order, joined by commas",
        ),
        ResponseHeader(
            "X-Quick-Add-File",
            documentation_only=True,
            description="With a file of quick-add, its number; an equal number is the same file again",
        ),
    ],
    responses={
        304: ResponseSpec(
            data_container=None,
            description="Nothing changed since the ETag in If-None-Match (read_only accounts)",
        ),
        **problems(*FOR_AGENTS),
    },
)
async def price_updates(
    caller: Caller,
    database: Database,
    heavy: HeavyWork,
    if_none_match: Annotated[
        str | None, HeaderParameter(name="If-None-Match", required=False)
    ] = None,
    agent_id: Annotated[
        str | None, HeaderParameter(name="X-Agent-Id", required=False, max_length=200)
    ] = None,
    quick_add_has: Annotated[
        int | None, HeaderParameter(name="X-Quick-Add-Has", required=False, ge=1, le=2**62)
    ] = None,
) -> Response[bytes]:
    """Return the price changes as the marketplace's pricing CSV. Without changes, the CSV is
    header-only, and X-Price-Export-Empty-Reason names the reasons.

    While a rollback is ready or served, the answer is its file, even if the account may not push
    prices. Otherwise published quick-add rows are served first, with a positive Add to Quantity,
    each row in one file.

    An agent that names its installation in X-Agent-Id gets a quick-add file again, with the same
    X-Quick-Add-File, until the file is reported or the agent sends its number as X-Quick-Add-Has.
    An agent without X-Agent-Id gets the file again for 30 minutes.
    """
    asker = Asker(storable(agent_id), quick_add_has)
    file = await served_file(database, caller, heavy, if_none_match, asker, clock.now())
    headers = _CACHE | {"X-Price-Export-Kind": file.kind}
    if file.etag:
        headers["ETag"] = file.etag
    if file.body is None:
        return Response(b"", status_code=304, headers=headers)
    if file.quick_add_ids:
        headers["X-Quick-Add-Ids"] = ",".join(map(str, file.quick_add_ids))
        headers["X-Quick-Add-File"] = str(file.quick_add_number)
    if file.empty_reason:
        headers["X-Price-Export-Empty-Reason"] = file.empty_reason
    return as_csv.body(file.body, headers)


router = Router(path="", route_handlers=[price_updates], tags=["pricing"])

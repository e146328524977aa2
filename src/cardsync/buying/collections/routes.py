"""HTTP routes of collections: upload a file, read its rows and matches, choose products, and value
the collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from litestar import Router, delete, get, post, put
from litestar.openapi.spec import (
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    RequestBody,
    Schema,
)
from litestar.params import QueryParameter
from litestar.types import ControllerRouterHandler
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_READING_TOKEN, READS
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS, WRITES
from cardsync.buying.collections import (
    choose_rows,
    draft_effect,
    read_collections,
    value_collection,
)
from cardsync.buying.collections.accept_collection import accept_collection
from cardsync.buying.collections.schemas import (
    Choices,
    Chosen,
    CollectionDetail,
    CollectionList,
    EffectShown,
    NamedColumns,
    RowPage,
    ValuedCollection,
    WaitingRows,
    WhichRows,
)
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.storage import Store
from cardsync.platform.value_types import JsonObject
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    FOR_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
)

PageNumber = Annotated[int, QueryParameter(ge=1, le=limits.PAGE_MOST)]
READING = problems(*BEHIND_A_KEY, errors.InvalidPayload)
READING_ONE = problems(*BEHIND_A_KEY, errors.NotFound, errors.InvalidPayload)
WRITING_ONE = problems(*FOR_EITHER, *WITH_JSON_BODY, errors.NotFound)
BRINGING = problems(
    *FOR_EITHER,
    errors.InvalidCsv,
    errors.InvalidGzip,
    errors.InvalidPayload,
    errors.PayloadTooLarge,
    errors.DecompressedTooLarge,
    errors.TooManyRows,
)


@dataclass
class _File(Operation):
    """The operation of the upload, whose body is the file itself. The framework can't describe
    that.
    """

    def __post_init__(self) -> None:
        whole = Schema(type=OpenAPIType.STRING)
        self.request_body = RequestBody(
            required=True,
            description="The file, plain or gzipped, at most 10 MB on the wire and 50 MB inflated.",
            content={"text/csv": OpenAPIMediaType(schema=whole)},
        )


@get("/collections", responses=READING)
async def list_collections(
    caller: Caller,
    session: AsyncSession,
    page: PageNumber = 1,
) -> CollectionList:
    """The shop's collections, newest first."""
    return await read_collections.list_collections(session, caller, page)


@post(
    "/collections",
    status_code=202,
    opt=UPLOADS,
    request_max_body_size=limits.BODY_WIRE_BYTES,
    responses=BRINGING,
    operation_class=_File,
)
async def bring_collection(
    caller: Caller,
    database: Database,
    store: Store,
    body: bytes,
    name: Annotated[str, QueryParameter(max_length=200)] = "",
) -> CollectionDetail:
    """Upload a file in any of the known formats. A file that is sent twice is one collection."""
    made = await accept_collection(database, caller, store, name, body, clock.now())
    async with database.tenant(caller.seller_id) as session:
        return await read_collections.read_collection(session, caller, made.id)


@get("/collections/{collection_id:int}", responses=READING_ONE)
async def read_collection(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
) -> CollectionDetail:
    """One collection with its counts, its progress and the rows that could not be read."""
    return await read_collections.read_collection(session, caller, collection_id)


@get("/collections/{collection_id:int}/rows", responses=READING_ONE)
async def list_rows(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
    which: WhichRows = "all",
    page: PageNumber = 1,
) -> RowPage:
    """The rows in the order of the file."""
    return await read_collections.rows_of(session, caller, collection_id, which, page)


@get("/collections/{collection_id:int}/waiting", responses=READING_ONE)
async def list_waiting_rows(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
) -> WaitingRows:
    """The first rows that wait for a choice, each with its candidates: products that may match."""
    return await read_collections.waiting_rows(session, caller, collection_id)


@post(
    "/collections/{collection_id:int}/choices",
    status_code=200,
    opt=WRITES,
    responses=WRITING_ONE,
)
async def choose_products(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
    data: Choices,
) -> Chosen:
    """Choose the products of rows, or leave rows out. A choice also applies to rows with the same
    text.
    """
    return await choose_rows.choose_rows(session, caller, collection_id, data.choices, clock.now())


@put("/collections/{collection_id:int}/columns", opt=WRITES, responses=WRITING_ONE)
async def name_columns(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
    data: NamedColumns,
) -> CollectionDetail:
    """Set the meanings of the file's columns, for this file and later files with the same
    header.
    """
    now = clock.now()
    await choose_rows.name_columns(session, caller, collection_id, data.columns, now)
    await session.flush()
    return await read_collections.read_collection(session, caller, collection_id)


@get("/collections/{collection_id:int}/value", responses=READING_ONE)
async def value_rows(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
    page: PageNumber = 1,
) -> ValuedCollection:
    """Value the matched rows by the live buy rules, with the reasons for each row."""
    return await value_collection.value_collection(
        session, caller, collection_id, clock.now(), page
    )


@delete(
    "/collections/{collection_id:int}",
    status_code=200,
    responses=problems(*FOR_OWNERS, errors.NotFound),
)
async def delete_collection(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
) -> Deleted:
    """Delete a collection with its rows."""
    await choose_rows.delete_collection(session, caller, collection_id, clock.now())
    return Deleted(True)


@post(
    "/preview",
    status_code=200,
    opt=READS,
    security=[A_READING_TOKEN],
    responses=problems(
        *FOR_OWNERS,
        *WITH_JSON_BODY,
        errors.NotFound,
        errors.InvalidRule,
        errors.InvalidQuery,
    ),
)
async def preview_buy_rule(
    caller: Caller,
    session: AsyncSession,
    data: Annotated[JsonObject, Like(draft_effect.DraftEffectAsked)],
) -> EffectShown:
    """Value a collection, by default the newest, with a draft of a buy rule. Nothing is stored."""
    return await draft_effect.preview_draft(session, caller, data, clock.now())


HANDLERS: list[ControllerRouterHandler] = [
    preview_buy_rule,
    list_collections,
    bring_collection,
    read_collection,
    list_rows,
    list_waiting_rows,
    choose_products,
    name_columns,
    value_rows,
    delete_collection,
]
router = Router(path="/buying", route_handlers=HANDLERS, tags=["buying"])

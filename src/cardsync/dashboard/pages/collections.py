"""The pages of collections: the list of customers' files, and one collection with its progress, the
rows that wait for a choice, and its value.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.buying.collections import choose_rows, read_collections, value_collection
from cardsync.buying.collections.accept_collection import accept_collection
from cardsync.buying.collections.file_formats import FIELDS
from cardsync.buying.collections.schemas import CONDITIONS, Choice
from cardsync.catalog.printings import PRINTINGS
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.uploads import MENDED_BYTES
from cardsync.dashboard.shell import PageRequest, paging_of, see, show
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import Database
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.storage import Store
from cardsync.web.forms import Form
from cardsync.web.request import opened, reading

# The columns of a collection's file, by the names that sellers use.
COLUMN_NAMES: Final = {
    "copies": "Copies",
    "foil_copies": "Foil copies",
    "name": "Name",
    "set_name": "Set",
    "set_code": "Set code",
    "number": "Collector number",
    "variation": "Variation",
    "finish": "Finish",
    "condition": "Condition",
    "language": "Language",
    "rarity": "Rarity",
    "game": "Game",
    "grade": "Grade",
    "proxy": "Proxy",
    "sku": "SKU",
    "listing_id": "Product ID",
    "scryfall_id": "Scryfall ID",
    "cardmarket_id": "Cardmarket ID",
    "cardtrader_id": "CardTrader ID",
    "mtgjson_id": "MTGJSON ID",
}


@get("/buying")
async def buying_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _list(request, caller, reads)


async def _list(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    page = paging_of(request, read_collections.PER_PAGE).page
    found = await read_collections.list_collections(source, caller, page)
    return show(
        request,
        caller,
        "buying.html",
        found=found,
        total_pages=-(-found.total // found.per_page),
        problem=problem,
    )


@post_form(
    "/buying",
    UPLOADS,
    exception_handlers=again(
        _list, errors.InvalidCsv, errors.TooManyRows, errors.DecompressedTooLarge
    ),
    request_max_body_size=MENDED_BYTES,
)
async def bring_file(caller: Caller, form: Form, database: Database, store: Store) -> Response[str]:
    if form.file is None:
        raise errors.InvalidCsv("choose the customer's file first")
    data, name = await form.file.read(), form.file.filename or ""
    made = await accept_collection(database, caller, store, name, data, clock.now())
    return see(f"/buying/collections/{made.id}", message("collection_brought"))


@get("/buying/collections/{collection_id:int}")
async def collection_page(request: PageRequest, caller: Caller, collection_id: int) -> Template:
    async with reading(request) as reads:
        found, waiting = await at_once(
            read_collections.read_collection(reads, caller, collection_id),
            read_collections.first_waiting(reads, caller, collection_id, 1),
        )
    page = paging_of(request, read_collections.ROWS_PER_PAGE).page
    valued = None
    # Valuing a collection is slow. So the page values it only after it was read (until then the
    # page reloads every two seconds), and while rows wait for choices only if the address requests
    # the value.
    asked = "value" in request.query_params
    if found.state == "done" and (asked or not waiting):
        async with opened(request) as session:
            valued = await value_collection.value_collection(
                session, caller, collection_id, clock.now(), page
            )
    return show(
        request,
        caller,
        "collection.html",
        found=found,
        under_way=found.state == "queued",
        waiting=waiting,
        valued=valued,
        asked=asked,
        total_pages=-(-valued.total // valued.per_page) if valued else 1,
        column_names=[(field, COLUMN_NAMES[field]) for field in FIELDS],
        columns=[(name, name) for name in found.header],
        conditions=[("", "As in the file"), *((code, code) for code in CONDITIONS)],
        finishes=[("", "As in the file"), *((name, name) for name in PRINTINGS)],
    )


@post_form("/buying/collections/{collection_id:int}/choose")
async def choose_row(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    collection_id: int,
) -> Response[str]:
    """Settle one row: use the product that a button names, or leave the row out if the button names
    none.
    """
    row, product = read_id(form["row"]), read_id(form["product_id"])
    if row is None or (form["product_id"] and product is None):
        raise errors.InvalidPayload("row: must be a row of the file")
    said = form.some("condition", "finish")
    condition = next((code for code in CONDITIONS if code == said.get("condition")), None)
    finish = next((name for name in PRINTINGS if name == said.get("finish")), None)
    choice = Choice(row, product, condition, finish)
    done = await choose_rows.choose_rows(session, caller, collection_id, [choice], clock.now())
    told = message("rows_settled", done.settled)
    return see(f"/buying/collections/{collection_id}", told)


@post_form("/buying/collections/{collection_id:int}/columns")
async def say_columns(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    collection_id: int,
) -> Response[str]:
    named = form.some(*FIELDS)
    columns = {field: name for field, name in named.items() if name}
    await choose_rows.name_columns(session, caller, collection_id, columns, clock.now())
    return see(f"/buying/collections/{collection_id}", message("saved"))


@post_form("/buying/collections/{collection_id:int}/delete")
async def forget_collection(
    caller: Caller,
    session: AsyncSession,
    collection_id: int,
) -> Response[str]:
    await choose_rows.delete_collection(session, caller, collection_id, clock.now())
    return see("/buying", message("collection_deleted"))


ROUTES: Final = [
    buying_page,
    bring_file,
    collection_page,
    choose_row,
    say_columns,
    forget_collection,
]

"""Quick-add: products of the catalog are found by number and name, drafted in one form and
published; what was sent and never answered is settled one by one.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get, post
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors, limits, read_json
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.cards.bulk_selection import read_id
from cardsync.catalog.condition import CODES, PRINTINGS
from cardsync.dashboard.confirmed import writer_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, field, games_of, read_form, see, show
from cardsync.database.session import Database
from cardsync.plans import writes
from cardsync.quick_add import drafts, settle
from cardsync.quick_add.shown import entry_body, pending_body, product_body
from cardsync.quick_add.type_ahead import products_like
from cardsync.quick_add.wanted import Changes, Wanted
from cardsync.settings import Settings

STATUSES: Final = ("draft", "published", "pending", "listed", "rejected")
CONDITIONS: Final = [(code, name.title()) for name, code in CODES.items()]
_ROW: Final = ("condition", "printing", "price", "cost")


@get("/add-cards", opt=BY_FORM)
async def add_cards_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    query = request.query_params
    typed = query.get("q", "")[: limits.SEARCHED_CHARACTERS]
    game = query.get("game", "")
    wanted = query.get("status", "")
    status = wanted if wanted in STATUSES else None
    number = query.get("page", "")
    page = (
        min(int(number[:9] or 1), limits.PAGE_MOST)
        if number.isascii() and (number.isdigit() and int(number[:9]))
        else 1
    )
    lines = caller.account.product_lines
    found = await products_like(
        session, caller, typed, game if game in lines else None, limits.TYPE_AHEAD
    )
    rows, total = await drafts.entries(session, caller, status, page, limits.CARDS_PER_PAGE)
    return show(
        request,
        caller,
        "add_cards.html",
        typed=typed,
        game=game,
        games=games_of(caller),
        products=[product_body(product) for product in found],
        entries=[entry_body(row) for row in rows],
        total=total,
        page=page,
        total_pages=-(-total // limits.CARDS_PER_PAGE),
        status=status or "",
        statuses=[("", "All"), *((name, name.title()) for name in STATUSES)],
        conditions=CONDITIONS,
        printings=[(name, name) for name in PRINTINGS],
        unanswered=len(await settle.pending(session, caller)),
    )


@post("/add-cards", opt=BY_FORM | WRITES)
async def draft_cards(request: PageRequest, caller: Caller, database: Database) -> Response[str]:
    """Draft the rows of the form that name a quantity."""
    form = await read_form(request)
    wanted = []
    for name in form:
        product_id = read_id(name.removeprefix("quantity:"))
        if not name.startswith("quantity:") or not field(form, name) or product_id is None:
            continue
        given = {part: field(form, f"{part}:{product_id}") for part in _ROW}
        values: dict[str, Any] = {part: text for part, text in given.items() if text}
        values |= {"product_id": product_id, "quantity": field(form, name)}
        wanted.append(read_json.read(values, Wanted, f"card {product_id}, ", strict=False))
    if not wanted:
        raise errors.InvalidPayload("quantity: give the quantity of one card at least")
    if len(wanted) > limits.QUICK_ADD_BATCH:
        raise errors.InvalidPayload(f"quantity: at most {limits.QUICK_ADD_BATCH} cards at once")
    made = await drafts.draft(database, caller, wanted, clock.now())
    done = message("drafts_made", len(made))
    return see("/add-cards", done, q=field(form, "q"), status="draft")


@post("/add-cards/publish", opt=BY_FORM | WRITES)
async def publish_cards(
    request: PageRequest, caller: Caller, session: AsyncSession, settings: Settings
) -> Response[str]:
    form = await read_form(request)
    ids = [id for text in form.get("ids", []) if (id := read_id(text)) is not None]
    if not 1 <= len(ids) <= limits.QUICK_ADD_BATCH:
        raise errors.InvalidPayload(f"ids: tick 1 to {limits.QUICK_ADD_BATCH} drafts")
    await writes.publish_listings(writer_of(session, caller, settings, form), ids)
    done = message("drafts_published")
    return see("/add-cards", done, status="published")


@post("/add-cards/{entry_id:int}", opt=BY_FORM | WRITES)
async def change_card(
    request: PageRequest, caller: Caller, session: AsyncSession, entry_id: int
) -> Response[str]:
    """Change a draft; a rejected entry becomes one, and can be published again."""
    form = await read_form(request)
    given = {name: field(form, name) for name in ("quantity", "condition", "printing", "price")}
    values: dict[str, Any] = {name: text for name, text in given.items() if text}
    if "price" in form and not given["price"]:
        values["price"] = None
    changes = read_json.read(values, Changes, f"entry {entry_id}, ", strict=False)
    await drafts.change(session, caller, entry_id, changes, clock.now())
    return see("/add-cards", message("draft_saved"), status="draft")


@post("/add-cards/{entry_id:int}/delete", opt=BY_FORM | WRITES)
async def delete_card(
    request: PageRequest, caller: Caller, session: AsyncSession, entry_id: int
) -> Response[str]:
    await read_form(request)
    await drafts.delete(session, caller, entry_id, clock.now())
    return see("/add-cards", message("entry_deleted"))


@get("/add-cards/recover", opt=BY_FORM)
async def recover_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    now = clock.now()
    rows = [pending_body(row, now) for row in await settle.pending(session, caller)]
    return show(request, caller, "recover.html", rows=rows)


@post("/add-cards/{entry_id:int}/settle", opt=BY_FORM | WRITES)
async def settle_card(
    request: PageRequest, caller: Caller, session: AsyncSession, entry_id: int
) -> Response[str]:
    form = await read_form(request)
    listed = field(form, "listed")
    if listed not in ("true", "false"):
        raise errors.InvalidPayload("listed: true or false")
    text = field(form, "quantity")
    quantity = read_id(text)
    if text and quantity is None:
        raise errors.InvalidPayload("quantity: a number like 2")
    await settle.settle(session, caller, entry_id, listed == "true", quantity, clock.now())
    return see("/add-cards/recover", message("entry_settled"))


ROUTES: Final = [
    add_cards_page,
    draft_cards,
    publish_cards,
    change_card,
    delete_card,
    recover_page,
    settle_card,
]

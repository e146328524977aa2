"""The pages of quick-add: members find products of the catalog by number and name, draft them in
one form and publish them; entries that were sent without an answer are settled one by one.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors, limits, read_json
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.cards.bulk_selection import read_id
from cardsync.catalog.condition import CODES
from cardsync.catalog.printings import printings_of
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, games_of, see, show
from cardsync.database.session import Database
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.quick_add import drafts, settle
from cardsync.quick_add.checked_entry import Changes, Wanted
from cardsync.quick_add.shown import entry_body
from cardsync.quick_add.type_ahead import products_like

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
        products=found,
        entries=[entry_body(row) for row in rows],
        total=total,
        page=page,
        total_pages=-(-total // limits.CARDS_PER_PAGE),
        status=status or "",
        statuses=[("", "All"), *((name, name.title()) for name in STATUSES)],
        conditions=CONDITIONS,
        printings_of=printings_of,
        unanswered=len(await settle.pending(session, caller, clock.now())),
    )


@post_form("/add-cards")
async def draft_cards(caller: Caller, form: Form, database: Database) -> Response[str]:
    """Draft the rows of the form that name a quantity."""
    wanted = []
    for name in form:
        product_id = read_id(name.removeprefix("quantity:"))
        if not name.startswith("quantity:") or not form[name] or product_id is None:
            continue
        given = {part: form[f"{part}:{product_id}"] for part in _ROW}
        values: dict[str, Any] = {part: text for part, text in given.items() if text}
        values |= {"product_id": product_id, "quantity": form[name]}
        wanted.append(read_json.read(values, Wanted, f"card {product_id}, ", strict=False))
    if not wanted:
        raise errors.InvalidPayload("quantity: enter a quantity for at least one card")
    if len(wanted) > limits.QUICK_ADD_BATCH:
        raise errors.InvalidPayload(f"quantity: at most {limits.QUICK_ADD_BATCH} cards at once")
    made = await drafts.draft(database, caller, wanted, clock.now())
    done = message("drafts_made", len(made))
    return see("/add-cards", done, q=form["q"], status="draft")


@post_form("/add-cards/publish")
async def publish_cards(form: Form, writer: Writer) -> Response[str]:
    ids = [id for text in form.all("ids") if (id := read_id(text)) is not None]
    if not 1 <= len(ids) <= limits.QUICK_ADD_BATCH:
        raise errors.InvalidPayload(f"ids: select 1 to {limits.QUICK_ADD_BATCH} drafts")
    await writes.publish_listings(writer, ids)
    done = message("drafts_published")
    return see("/add-cards", done, status="published")


@post_form("/add-cards/{entry_id:int}")
async def change_card(
    caller: Caller, form: Form, session: AsyncSession, entry_id: int
) -> Response[str]:
    """Change a draft; a rejected entry becomes one, and can be published again."""
    given = form.some("quantity", "condition", "printing", "price")
    values: dict[str, Any] = {name: text for name, text in given.items() if text}
    if "price" in form and not given["price"]:
        values["price"] = None
    changes = read_json.read(values, Changes, f"entry {entry_id}, ", strict=False)
    await drafts.change(session, caller, entry_id, changes, clock.now())
    return see("/add-cards", message("draft_saved"), status="draft")


@post_form("/add-cards/{entry_id:int}/delete")
async def delete_card(caller: Caller, session: AsyncSession, entry_id: int) -> Response[str]:
    await drafts.delete(session, caller, entry_id, clock.now())
    return see("/add-cards", message("entry_deleted"))


@get("/add-cards/recover", opt=BY_FORM)
async def recover_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    rows = await settle.pending(session, caller, clock.now())
    return show(request, caller, "recover.html", rows=rows)


@post_form("/add-cards/{entry_id:int}/settle")
async def settle_card(
    caller: Caller, form: Form, session: AsyncSession, entry_id: int
) -> Response[str]:
    listed = form["listed"]
    if listed not in ("true", "false"):
        raise errors.InvalidPayload("listed: true or false")
    text = form["quantity"]
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

"""The pages of quick-add. Members find products in the catalog by number and name, draft them in
one form, and publish the drafts. If the agent did not report whether TCGplayer listed an entry, a
member settles it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.condition import CODES
from cardsync.catalog.printings import printings_of
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, games_of, paging_of, see, show
from cardsync.platform import clock, errors, limits, read_json
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.shelf_place import Place, read_place
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.stock.quick_add import drafts, settle
from cardsync.stock.quick_add.checked_entry import Changes, Wanted
from cardsync.stock.quick_add.schemas import QuickAddEntry
from cardsync.stock.quick_add.type_ahead import products_like
from cardsync.web.forms import Form
from cardsync.web.request import reading

STATUS_WORDS: Final = {
    "draft": "Draft",
    "published": "Sent",
    "pending": "Processing",
    "listed": "Live",
    "rejected": "Rejected",
}
CONDITIONS: Final = [(code, name.title()) for name, code in CODES.items()]
_ROW: Final = ("condition", "printing", "price", "cost")
_AMOUNTS: Final = ("quantity", "price", "cost")


@get("/add-cards")
async def add_cards_page(request: PageRequest, caller: Caller) -> Template:
    query = request.query_params
    typed = query.get("q", "")[: limits.SEARCHED_CHARACTERS]
    game = query.get("game", "")
    wanted = query.get("status", "")
    status = wanted if wanted in STATUS_WORDS else None
    lines = caller.account.product_lines
    line = game if game in lines else None
    paging = paging_of(request, limits.CARDS_PER_PAGE)
    async with reading(request) as reads:
        found, entries, pending = await at_once(
            products_like(reads, caller, typed, line, limits.TYPE_AHEAD),
            drafts.entries(reads, caller, status, paging),
            settle.pending(reads, caller, clock.now()),
        )
    return show(
        request,
        caller,
        "add_cards.html",
        typed=typed,
        game=game,
        games=games_of(caller),
        products=found,
        entries=[struct_of(QuickAddEntry, row) for row in entries.rows],
        **entries.numbers._asdict(),
        status=status or "",
        place_of=_place_of,
        statuses=[("", "All"), *STATUS_WORDS.items()],
        status_words=STATUS_WORDS,
        conditions=CONDITIONS,
        printings_of=printings_of,
        unanswered=len(pending),
    )


@post_form("/add-cards")
async def draft_cards(caller: Caller, form: Form, database: Database) -> Response[str]:
    """Draft the cards for which the form has a quantity."""
    wanted = []
    for name in form:
        product_id = read_id(name.removeprefix("quantity:"))
        if not name.startswith("quantity:") or not form[name] or product_id is None:
            continue
        given = {part: form[f"{part}:{product_id}"] for part in _ROW}
        values: dict[str, object] = {part: text for part, text in given.items() if text}
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
    """Save the form's rows and publish the selected drafts, or all drafts of the page if the box
    above them is ticked.
    """
    session, caller, _, now, _ = writer
    ids = [id for text in form.all("ids") if (id := read_id(text)) is not None]
    if "all" in form and not ids:
        ids = [entry for entry, _ in _typed(form)]
    if not ids:
        raise errors.InvalidPayload("Select at least one draft.")
    if len(ids) > limits.QUICK_ADD_BATCH:
        raise errors.InvalidPayload(f"Select at most {limits.QUICK_ADD_BATCH} drafts at once.")
    await _change(session, caller, form, now)
    await writes.publish_listings(writer, ids)
    done = message("drafts_published")
    return see("/add-cards", done, status="published")


@post_form("/add-cards/drafts")
async def change_cards(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Save the typed values of all rows. The button of a rejected entry makes it a draft again."""
    await _change(session, caller, form, clock.now())
    return see("/add-cards", message("draft_saved"), status="draft")


def _typed(form: Form) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the id and the typed fields of each entry in the form."""
    for name in form:
        entry_id = read_id(name.removeprefix("quantity:"))
        if name.startswith("quantity:") and entry_id is not None:
            yield entry_id, {part: form[f"{part}:{entry_id}"] for part in (*_AMOUNTS, "place")}


async def _change(
    session: AsyncSession, caller: Caller, form: Form, now: datetime, without: int | None = None
) -> None:
    """Change the entries whose typed fields differ from the stored ones. Raises NotADraft,
    InvalidPayload.
    """
    typed = dict(_typed(form))
    again = read_id(form["again"])
    for row in await drafts.some(session, caller, list(typed)):
        entry, said = struct_of(QuickAddEntry, row), typed[row.id]
        known = {part: str(getattr(entry, part) or "") for part in _AMOUNTS}
        values: dict[str, object] = {
            part: said[part] for part in _AMOUNTS if said[part] != known[part]
        }
        place = {}
        if f"place:{row.id}" in form and said["place"] != (_place_of(entry) or ""):
            there = read_place(said["place"]) if said["place"] else None
            place = {"box": there and there.box, "slot": there and there.slot}
        if row.id == without or (not values and not place and row.id != again):
            continue
        values = {part: text or None for part, text in values.items()} | place
        changes = read_json.read(values, Changes, f"{entry.product_name}, ", strict=False)
        await drafts.change(session, caller, row.id, changes, now)


def _place_of(entry: QuickAddEntry) -> str | None:
    if entry.box is None or entry.slot is None:
        return None
    return Place(entry.box, entry.slot).code


@post_form("/add-cards/{entry_id:int}/delete")
async def delete_card(
    caller: Caller, form: Form, session: AsyncSession, entry_id: int
) -> Response[str]:
    """Delete an entry, and save the typed values of the other rows."""
    now = clock.now()
    await _change(session, caller, form, now, without=entry_id)
    await drafts.delete(session, caller, entry_id, now)
    return see("/add-cards", message("entry_deleted"))


@get("/add-cards/recover")
async def recover_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        rows = await settle.pending(reads, caller, clock.now())
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
    change_cards,
    delete_card,
    recover_page,
    settle_card,
]

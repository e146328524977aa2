"""The form over the table of cards: it puts the chosen rows, the page's, or all that match on a
list, on shelves or in a CSV.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from litestar import Response, get, post
from litestar.response import Stream

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.cards import as_csv
from cardsync.cards.bulk_selection import Selection, read_id
from cardsync.cards.filters import read_filter
from cardsync.contributions.add import publish_picked
from cardsync.dashboard.confirmed import writer_of
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.shell import HEADERS, PageRequest, field, read_form, see
from cardsync.database.session import Database
from cardsync.lists import entries
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.pricing.rules.pin_many import Pinned
from cardsync.settings import Settings
from cardsync.shelving.many import put_many
from cardsync.shelving.place import Place

Form = Mapping[str, list[str]]
PinMany = Callable[[Writer, Selection], Awaitable[Pinned]]


def selected(form: Form) -> Selection:
    """Return what a form selects: `scope` is `all` (that match), `page`, or the rows that are
    ticked. Raises InvalidPayload.
    """
    if field(form, "scope") != "all":
        return chosen(form)
    search, game, status = (field(form, name) for name in ("search", "game", "status"))
    return Selection(search=search, game=game, status=status or "active")


def chosen(form: Form) -> Selection:
    """Return the rows that a form names, by the one button of a row or by their boxes. Raises
    InvalidPayload.
    """
    name = "page_ids" if field(form, "scope") == "page" else "card_ids"
    texts = form.get("card_id") or [id for text in form.get(name, []) for id in text.split(",")]
    ids = [read_id(text.strip()) for text in texts if text.strip()]
    if not ids:
        raise errors.InvalidPayload(
            "nothing is selected: go back and tick rows, or take all that match"
        )
    if None in ids:
        raise errors.InvalidPayload("card_ids: these are not ids of cards")
    return Selection(card_ids=ids)


def added_message(done: entries.Added) -> str:
    """Report the result for the cards of a selection."""
    told = message("list_added", done.added)
    if done.truncated:
        return together(told, message("list_full", done.requested))
    there = done.requested - done.added
    return together(told, message("list_had", there)) if there else told


@post("/cards/add", opt=BY_FORM | WRITES)
async def add_selected(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    form = await read_form(request)
    list_id = read_id(field(form, "list_id"))
    if list_id is None:
        raise errors.InvalidPayload("list: choose the list that takes the cards")
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds) as session:
        done = await writes.add_cards(
            writer_of(session, caller, settings, form), list_id, selected(form)
        )
    return see(f"/lists/{list_id}", done=added_message(done))


@post("/cards/shelve", opt=BY_FORM | WRITES)
async def shelve_selected(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    form = await read_form(request)
    selection = selected(form)
    start = Place(number_of(form, "box"), number_of(form, "start_slot"))
    per_slot = number_of(form, "per_slot")
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds) as session:
        done = await put_many(session, caller, selection, start, per_slot, clock.now(), seconds)
    told = message("none_to_put")
    if done.first and done.last:
        told = message("many_put", done.quantity, done.first, done.last)
        told = together(told, message("more_to_put")) if done.truncated else told
    return _back(form, told)


def number_of(form: Form, name: str) -> int:
    text = field(form, name)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= limits.SHELF_NUMBER:
        raise errors.InvalidPayload(f"{name}: a number from 1 to {limits.SHELF_NUMBER:,}")
    return number


async def _pin_or_unpin(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    write: PinMany,
    said: str,
) -> Response[str]:
    form = await read_form(request)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        done = await write(writer_of(session, caller, settings, form), selected(form))
    return _back(form, message(said, done.changed, done.requested), more=done.truncated)


@post("/cards/pin", opt=BY_FORM | WRITES)
async def pin_selected(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    return await _pin_or_unpin(request, caller, database, settings, writes.pin_many, "many_pinned")


@post("/cards/unpin", opt=BY_FORM | WRITES)
async def unpin_selected(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    return await _pin_or_unpin(
        request, caller, database, settings, writes.unpin_many, "many_unpinned"
    )


@post("/cards/publish", opt=BY_FORM | WRITES)
async def publish_selected(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[str]:
    """Let everybody of the shop see the caller's own contributions among the selected cards."""
    form = await read_form(request)
    selection, seconds = selected(form), settings.read_seconds
    async with database.bounded(caller.seller_id, seconds) as session:
        done, more = await publish_picked(session, caller, selection, clock.now(), seconds)
    return _back(form, message("many_published", done), more=more)


def _back(form: Form, told: str, *, more: bool = False) -> Response[str]:
    """Return to the search from which the form was sent."""
    kept = {name: field(form, name) for name in ("search", "game", "status")}
    kept["status"] = "" if kept["status"] == "active" else kept["status"]
    return see("/cards", done=together(told, message("again")) if more else told, **kept)


@post("/cards/export.csv", opt=BY_FORM)
async def export_selected(request: PageRequest, caller: Caller) -> Response[str]:
    """Send the browser to the file of a selection."""
    selection = selected(await read_form(request))
    if selection.card_ids is not None:
        ids = ",".join(map(str, selection.card_ids))
        return see("/cards/export.csv", selected_ids=ids, status="all")
    told: dict[str, Any] = selection.given
    return see("/cards/export.csv", **told)


@get("/cards/export.csv", opt=BY_FORM)
async def export_cards(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Response[bytes]:
    wanted = read_filter(request.query_params.dict())
    parts = await as_csv.cards_as_csv(database, caller, wanted, settings.read_seconds)
    headers = HEADERS | as_csv.HEADERS
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=headers))

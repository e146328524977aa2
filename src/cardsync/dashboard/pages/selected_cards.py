"""The form over the table of cards. It adds the selected cards to a list, shelves, pins or exports
them, or prints their labels. The cards are the ticked rows, the rows of the page, or all cards that
match the search.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, cast

from litestar import Response, get
from litestar.response import Stream
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.search_of_ids import TICKED_MOST, search_of_ids
from cardsync.dashboard.shell import HEADERS, PageRequest, TemplateValues, see
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.typed_numbers import read_id, whole
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import Place, checked_box
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.rules.pin_many import Pinned
from cardsync.stock.cards import as_csv
from cardsync.stock.cards.bulk_selection import Selection
from cardsync.stock.cards.card_filter import read_filter
from cardsync.stock.contributions.add import publish_picked
from cardsync.stock.lists import entries
from cardsync.stock.search.chips import with_part
from cardsync.stock.search.fields import QueryError
from cardsync.stock.shelving.place_many import put_many
from cardsync.web.forms import Form
from cardsync.web.heavy_work import HeavyWork

PRICE_FILE: Final = "/sync/prices"
PinMany = Callable[[Writer, Selection], Awaitable[Pinned]]


def selected(form: Form) -> Selection:
    """Return a form's selection: the card of the pressed button, else by `scope` all cards that
    match the search (`all`), the rows of the page (`page`), or the ticked rows. Raises
    InvalidPayload.
    """
    if form["card_id"] or "all" not in form.all("scope"):
        return chosen(form)
    return Selection(search=form["search"], game=form["game"], status=form["status"] or "active")


def chosen(form: Form) -> Selection:
    """Return the chosen rows of a form: the row of the pressed button, the rows of the page, or the
    ticked rows. Raises InvalidPayload.
    """
    name = "page_ids" if "page" in form.all("scope") else "card_ids"
    texts = form.all("card_id") or [id for text in form.all(name) for id in text.split(",")]
    ids = [read_id(text.strip()) for text in texts if text.strip()]
    if not ids:
        raise errors.InvalidPayload(
            "nothing is selected: go back and select rows, or choose all matches"
        )
    if None in ids:
        raise errors.InvalidPayload("card_ids: these are not ids of cards")
    return Selection(card_ids=ids)


def added_message(done: entries.Added) -> str:
    """Return the message about the cards that were added to a list."""
    notice = message("list_added", done.added)
    if done.truncated:
        return together(notice, message("list_full", done.requested))
    there = done.requested - done.added
    return together(notice, message("list_had", there)) if there else notice


@post_form("/cards/add")
async def add_selected(form: Form, writer: Writer) -> Response[str]:
    list_id = read_id(form["list_id"])
    if list_id is None:
        raise errors.InvalidPayload("list: choose the list to add the cards to")
    done = await writes.add_cards(writer, list_id, selected(form))
    return see(f"/lists/{list_id}", done=added_message(done))


@post_form("/cards/shelve")
async def shelve_selected(
    caller: Caller, form: Form, bounded: AsyncSession, settings: Settings
) -> Response[str]:
    selection = selected(form)
    start = Place(checked_box(form["box"]), number_of(form, "start_slot"))
    per_slot = number_of(form, "per_slot")
    seconds = settings.read_seconds
    done = await put_many(bounded, caller, selection, start, per_slot, clock.now(), seconds)
    notice = message("none_to_put")
    if done.first and done.last:
        notice = message("many_put", done.quantity, done.first, done.last)
        notice = together(notice, message("more_to_put")) if done.truncated else notice
    return _back(form, notice)


def number_of(form: Form, name: str) -> int:
    number = whole(form[name], limits.SHELF_NUMBER, least=1)
    if number is None:
        raise errors.InvalidPayload(f"{name}: a number from 1 to {limits.SHELF_NUMBER:,}")
    return number


async def _pin_or_unpin(
    write: PinMany,
    writer: Writer,
    form: Form,
    said: str,
) -> Response[str]:
    done = await write(writer, selected(form))
    return _back(form, message(said, done.changed), more=done.truncated)


@post_form("/cards/pin")
async def pin_selected(form: Form, writer: Writer) -> Response[str]:
    return await _pin_or_unpin(writes.pin_many, writer, form, "many_pinned")


@post_form("/cards/unpin")
async def unpin_selected(form: Form, writer: Writer) -> Response[str]:
    return await _pin_or_unpin(writes.unpin_many, writer, form, "many_unpinned")


@post_form("/cards/publish")
async def publish_selected(
    caller: Caller, form: Form, bounded: AsyncSession, settings: Settings
) -> Response[str]:
    """Make the caller's own contributions among the selected cards visible to all members of the
    shop.
    """
    selection, seconds = selected(form), settings.read_seconds
    done, more = await publish_picked(bounded, caller, selection, clock.now(), seconds)
    return _back(form, message("many_published", done), more=more)


def _back(form: Form, notice: str, *, more: bool = False) -> Response[str]:
    """Send the browser back to the search from which the form was sent, or to the price file."""
    if form["back"] == PRICE_FILE:
        return see(PRICE_FILE, done=notice, page=form["page"])
    kept = form.some("search", "game", "status")
    kept["status"] = "" if kept["status"] == "active" else kept["status"]
    return see("/cards", done=together(notice, message("again")) if more else notice, **kept)


def _query_of(selection: Selection) -> TemplateValues:
    """Return a selection as parameters of an address."""
    if selection.card_ids is None:
        return selection.given
    return {"selected_ids": ",".join(map(str, selection.card_ids)), "status": "all"}


@post_form("/cards/labels")
async def label_selected(form: Form) -> Response[str]:
    """Send the browser to the page that prints the labels of a selection."""
    return see("/print", **_query_of(selected(form)))


def search_of(form: Form) -> str:
    """Return a search for a form's cards: the page's own search for all of them, or the ids of the
    ticked cards. Raises InvalidPayload, InvalidQuery.
    """
    selection = selected(form)
    ids = selection.card_ids
    if ids is None:
        search, game = selection.search or "", selection.game
        try:
            return with_part(search, f'game:"{game}"') if game else search
        except QueryError as e:
            raise errors.InvalidQuery(f"search: {e}") from e
    if len(ids) > TICKED_MOST:
        raise errors.InvalidPayload(
            f"select at most {TICKED_MOST} cards, or all that match a search"
        )
    return search_of_ids(ids)


@post_form("/cards/promote")
async def promote_selected(form: Form) -> Response[str]:
    """Send the browser to the workshop of a new promotion for the selected cards."""
    return see("/pricing/sales/new", query=search_of(form))


@post_form("/cards/mark-down")
async def mark_down_selected(form: Form) -> Response[str]:
    """Send the browser to the workshop of a new rule that marks down the selected cards step by
    step.
    """
    return see("/pricing/rules/new", query=search_of(form), markdown="1")


@post_form("/cards/export.csv")
async def export_selected(form: Form) -> Response[str]:
    """Send the browser to the CSV of a selection."""
    return see("/cards/export.csv", **_query_of(selected(form)))


@get("/cards/export.csv")
async def export_cards(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Response[bytes]:
    wanted = read_filter(request.query_params.dict())
    parts = await as_csv.cards_as_csv(heavy, caller, wanted)
    headers = HEADERS | as_csv.HEADERS
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=headers))

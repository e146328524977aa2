"""The pages for printing: labels of cards and boxes on a sheet whose first labels may be used up, a
test page, the restock sheet, a pull sheet, and packing slips without an address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

import segno
from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.buying.buylist.buylist_settings import shop_of
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.pages.orders import waits
from cardsync.dashboard.pages.selected_cards import number_of
from cardsync.dashboard.shell import HEADERS, PageRequest, box_page, see, show, url
from cardsync.platform import errors, limits
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import boxes_between, checked_box, place_in
from cardsync.sales.orders import pull_reads, returned_copies
from cardsync.sales.orders.one_order import read_order
from cardsync.sales.orders.schemas import OrderInFull, adds_up, order_in_full
from cardsync.stock.cards.card_filter import CardPage, ids_of, read_filter, read_page, selected_ids
from cardsync.stock.cards.queries import search_cards
from cardsync.stock.cards.schemas import CardBody, card_body
from cardsync.stock.printing.sheets import SHEETS, Sheet, layout, sheet_of
from cardsync.stock.printing.style import style_of
from cardsync.web.forms import Form
from cardsync.web.request import reading

KINDS: Final = ("cards", "boxes", "test")
BOXES_MOST: Final = 500
SLIPS_MOST: Final = 100
PAPERS: Final = {"letter": "Letter", "roll46": "4 × 6 in roll"}


class Label(NamedTuple):
    """A label. `about` is the address in its QR code, `picture` the address of the card's picture;
    each is empty if the label has none.
    """

    title: str
    lines: list[str]
    about: str
    picture: str = ""


class Placed(NamedTuple):
    """A label with its place on the page; `code` is its QR code as the source of a picture."""

    place: int
    label: Label
    code: str


class LabelRequest(NamedTuple):
    """The address's options for labels of any kind."""

    kind: str
    sheet: Sheet
    start: int
    outlined: bool


def wanted_of(given: dict[str, list[str]]) -> LabelRequest:
    """Read the options in an address. Pure. Raises InvalidPayload, NotFound."""
    kind = (given.get("kind") or ["cards"])[-1]
    if kind not in KINDS:
        raise errors.InvalidPayload(f"kind: must be one of {', '.join(KINDS)}")
    sheet = sheet_of((given.get("sheet") or ["avery-5160"])[-1])
    start = number_of(Form(given), "start") if any(given.get("start", [])) else 1
    return LabelRequest(kind, sheet, start, kind == "test" or "outlined" in given)


def placed_on(sheet: Sheet, labels: list[Label], start: int) -> list[list[Placed]]:
    """Return the labels of each page. Raises InvalidPayload if `start` is not on the sheet."""
    positions = layout(sheet, len(labels), start)
    pages = [
        (at.page, Placed((at.row - 1) * sheet.columns + at.column, label, code_of(label.about)))
        for at, label in zip(positions, labels, strict=True)
    ]
    return [[each for _, each in page] for _, page in groupby(pages, lambda each: each[0])]


@lru_cache(maxsize=4_096)
def code_of(address: str) -> str:
    """Return the QR code of an address for a label, whose own margin is white too; an empty text
    without an address.
    """
    return drawn_code(address, quiet=1) if address else ""


def drawn_code(address: str, quiet: int = 4) -> str:
    """Return the QR code of an address as the source of a picture, with a white margin of `quiet`
    modules (ISO/IEC 18004 asks for four). The mask of the code is fixed: trying all eight masks
    would take most of a sheet's time, and scanners read any mask. The modules are filled:
    viewers of PDF files draw the strokes of small codes as hairlines.
    """
    matrix = segno.make(address, error="m", micro=False, mask=3, boost_error=False).matrix
    size, runs = len(matrix) + 2 * quiet, []
    for y, row in enumerate(matrix, start=quiet):
        x = quiet
        for dark, run in groupby(row):
            width = len(list(run))
            if dark:
                runs.append(f"M{x} {y}h{width}v1h-{width}z")
            x += width
    return (
        f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size} {size}'"
        f" shape-rendering='crispEdges'%3E%3Cpath fill='%23fff' d='M0 0h{size}v{size}H0z'/%3E"
        f"%3Cpath d='{''.join(runs)}'/%3E%3C/svg%3E"
    )


@get("/print")
async def print_page(request: PageRequest, caller: Caller) -> Template:
    asked = request.query_params.dict()
    given = {name: texts[-1] for name, texts in asked.items()}
    # The form has no fields for these parts of a selection, which the table of cards sent.
    kept: dict[str, str] = {name: given[name] for name in ("game", "status") if name in given}
    if (ids := selected_ids(asked)) is not None:
        kept["selected_ids"] = ids
    return show(
        request,
        caller,
        "print.html",
        sheets=[(sheet.key, f"{sheet.name} ({sheet.labels})") for sheet in SHEETS.values()],
        search=given.get("search", ""),
        kept=kept,
        chosen=len(ids_of(ids)),
    )


@get("/print/sheets/{key:str}")
async def sheet_style(key: str) -> Response[str]:
    """Serve the style sheet that places labels on a sheet, in millimeters."""
    return Response(style_of(sheet_of(key)), media_type="text/css", headers=HEADERS)


@get("/print/labels")
async def labels_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    given = request.query_params.dict()
    wanted = wanted_of(given)
    origin = settings.origin_for(request.headers.get("host"))
    page, more = read_page({"per_page": [str(limits.CARDS_PER_PAGE_MOST)], **given}), 0
    if wanted.kind == "cards":
        cards, total = await _cards(request, caller, settings, page)
        labels = [_card_label(card, origin, pictured="pictures" in given) for card in cards]
        more = total - page.offset - len(labels)
    elif wanted.kind == "boxes":
        labels = _box_labels(given, origin)
    else:
        labels = [Label(f"{place}", [wanted.sheet.name], "") for place in range(1, 1000)]
        labels = labels[: wanted.sheet.labels - wanted.start + 1]
    return show(
        request,
        caller,
        "labels.html",
        pages=await asyncio.to_thread(placed_on, wanted.sheet, labels, wanted.start),
        wanted=wanted,
        count=len(labels),
        more=more,
        following=url("/print/labels", **given | {"page": page.page + 1, "start": ""}),
    )


async def _cards(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    page: CardPage,
) -> tuple[list[CardBody], int]:
    wanted = read_filter(request.query_params.dict())
    async with reading(request) as reads:
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    if answer.problems:
        raise errors.InvalidQuery(f"search: {answer.problems[0][0]}")
    return [card_body(row) for row in answer.found.cards], answer.found.total


def _card_label(card: CardBody, origin: str, *, pictured: bool) -> Label:
    place = f"Place {card.location_code}" if card.location_code else ""
    lines = [card.set_name, card.condition_label, place]
    title = f"{card.product_name} {card.number}".strip()
    picture = f"/img/cards/{card.id}" if pictured else ""
    return Label(title, [line for line in lines if line], f"{origin}/cards/{card.id}", picture)


def _box_labels(given: dict[str, list[str]], origin: str) -> list[Label]:
    form = Form(given)
    first, last = checked_box(form["first"], "first"), checked_box(form["last"], "last")
    boxes = boxes_between(first, last, BOXES_MOST)
    if not boxes:
        raise errors.InvalidPayload(
            f"last: at most {BOXES_MOST} boxes, counting from the first, like 1 to 10 or A1 to A10"
        )
    return [Label(f"Box {box}", [], f"{origin}{box_page(box)}") for box in boxes]


@get("/print/restock")
async def restock_sheet(request: PageRequest, caller: Caller) -> Template:
    """Show the copies of refunded orders, sorted along the way past the shelves."""
    paging = Paging(1, limits.RETURNS_PER_PAGE_MOST)
    async with reading(request) as reads:
        desk = await returned_copies.desk(reads, caller, paging, restocked=False)
    rows = [(item, order) for order in desk.returns for item in order.items]
    rows.sort(key=lambda row: (_way(row[0].location_code), row[0].item_id))
    return show(request, caller, "restock_sheet.html", rows=rows, desk=desk)


class Slip(NamedTuple):
    """A packing slip. `priced` is true if the prices are known and add up to the buyer's payment;
    otherwise the slip has no prices.
    """

    order: OrderInFull
    priced: bool


@get("/print/orders/{order_id:int}")
async def packing_slip(request: PageRequest, caller: Caller, order_id: int) -> Template:
    return await _slips(request, caller, [order_id])


@get("/print/slips")
async def packing_slips(request: PageRequest, caller: Caller) -> Template:
    """Show the packing slips of several orders, each on its own page."""
    ids = ids_of(request.query_params.getall("order", []))
    if len(ids) > SLIPS_MOST:
        raise errors.InvalidPayload(f"order: select at most {SLIPS_MOST} orders")
    return await _slips(request, caller, ids)


@post_form("/print/slips")
async def ask_for_slips(form: Form) -> Response[str]:
    """Send the browser to the packing slips of the ticked orders."""
    return see("/print/slips", order=form.all("order"))


async def _slips(request: PageRequest, caller: Caller, ids: Sequence[int]) -> Template:
    async with reading(request) as reads:
        shop = await shop_of(reads, caller)
        orders = [order_in_full(await read_order(reads, caller, order_id)) for order_id in ids]
    slips = [
        Slip(order, adds_up(order) and all(item.unit_price for item in order.items))
        for order in orders
    ]
    paper = request.query_params.get("paper", "")
    return show(
        request,
        caller,
        "slips.html",
        slips=slips,
        shop=shop,
        waiting=[order.id for order in orders if waits(order)],
        copies=sum(order.item_count for order in orders),
        papers=PAPERS,
        paper=paper if paper in PAPERS else "letter",
        ids=list(ids),
    )


@get("/print/pulls/{session_id:int}")
async def pull_sheet(request: PageRequest, caller: Caller, session_id: int) -> Template:
    """Show the cards of a pull session, sorted along the way past the shelves."""
    async with reading(request) as reads:
        pull = await pull_reads.in_full(reads, caller, session_id)
    rows: list[tuple[Any, Any]] = [(item, order) for order in pull.orders for item in order.items]
    rows.sort(key=lambda row: (_way(row[0].location_code), row[0].id))
    return show(request, caller, "pull_sheet.html", pull=pull, rows=rows)


def _way(code: str | None) -> tuple[bool, tuple[str, int]]:
    """Return a place's rank on the way past the shelves. Unassigned cards are last."""
    return (True, ("", 0)) if code is None else (False, place_in(code).way)


ROUTES = [
    print_page,
    sheet_style,
    labels_page,
    restock_sheet,
    packing_slip,
    packing_slips,
    ask_for_slips,
    pull_sheet,
]

"""The pages of pulls at the desk. A member opens a session, shows all phones one code, follows
their progress, decides about missing cards and ends the session. Then the pulled orders are
shipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal, cast

from litestar import Response, get
from litestar.response import Stream, Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.buylist.buylist_settings import shop_of
from cardsync.buying.offers.schemas import Shop
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.formats import game_name
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.printing import drawn_code
from cardsync.dashboard.shell import PageRequest, games_of, see, show
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.settings import Settings
from cardsync.sales.orders import pull_reads, pull_sessions
from cardsync.sales.orders.order_filter import read_filter
from cardsync.sales.orders.pull_schemas import PullOrder
from cardsync.sales.orders.queries import find_orders
from cardsync.sales.pulling import missing_cards, phone_links
from cardsync.sales.pulling.event_streams import PullStreams
from cardsync.sales.pulling.phone import event_stream
from cardsync.sales.pulling.queue import Queue, read_queue
from cardsync.sales.pulling.schemas import MissingCard, progress_of
from cardsync.stock.cards.card_filter import ids_of
from cardsync.web.forms import Form
from cardsync.web.request import AnyResponse, opened, reading

Mark = Callable[[AsyncSession, Caller, int, int, datetime], Awaitable[None]]
# The operation for the last part of a form's address; the API uses the same names.
MARKS: dict[str, Mark] = {
    "pulled": pull_sessions.mark_pulled,
    "defer": pull_sessions.defer,
    "unassign": pull_sessions.unassign,
}
ENDS = {"complete": "completed", "cancel": "cancelled"}
# The filters of GET /api/orders by which a member chooses the orders of a session.
FILTERS = ("search", "date_from", "date_to", "product_line", "shipping_type")


@get("/pulls")
async def pulls_page(request: PageRequest, caller: Caller) -> Template:
    query = {name: value for name, value in request.query_params.items() if name in FILTERS}
    given = {name: [value] for name, value in query.items() if value}
    wanted = read_filter(given | {"pull_session": ["none"], "per_page": ["1"]})
    async with reading(request) as reads:
        found, (missing, texts) = await at_once(
            find_orders(reads, caller, wanted), missing_of(reads, caller)
        )
    return show(
        request,
        caller,
        "pulls.html",
        open=next((row for row in found.sessions if row.status == "open"), None),
        ended=[row for row in found.sessions if row.status != "open"],
        pullable=found.total,
        missing=missing,
        texts=texts,
        asked={name: query.get(name, "") for name in FILTERS},
        games=games_of(caller),
    )


@post_form("/pulls")
async def open_pull(
    caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Response[str]:
    """Start a pull of the ticked orders, or of all orders that match the filters, and make the code
    for its phones.
    """
    given = {name: [value] for name in FILTERS if (value := form[name])}
    wanted = read_filter(given)
    ticked = ids_of(form.all("order")) if form.all("order") else None
    now = clock.now()
    session_id = await pull_sessions.open_session(session, caller, ticked, wanted, now)
    await phone_links.make_link_of_all(session, caller, session_id, settings, "", now)
    return see(f"/pulls/{session_id}", done=message("pull_opened"))


async def missing_of(
    reads: Reading,
    caller: Caller,
    order_ids: Sequence[int] | None = None,
    session_id: int | None = None,
) -> tuple[list[MissingCard], dict[int, str]]:
    """Return the missing cards without a decision, and the text for the buyer about each of them,
    by the id of the order's item.
    """
    missing = await missing_cards.missing_cards(
        reads, caller, order_ids=order_ids, session_id=session_id
    )
    shop = await shop_of(reads, caller) if missing else Shop("", "")
    return missing, {one.item_id: message_about(one, shop.name) for one in missing}


def message_about(card: MissingCard, shop: str) -> str:
    """Return a text about a missing card, which the seller copies and sends to the buyer. Pure."""
    words = [f"Hi {card.buyer_name.split()[0]}," if card.buyer_name else "Hi,", ""]
    name = " ".join(filter(None, [card.product_name, card.condition and f"({card.condition})"]))
    which = f"{name or 'one of the cards'} of your order {card.order_number}"
    words.append(
        f"I'm sorry: {which} turned out to be damaged."
        if card.reason == "damaged"
        else f"I'm sorry: I can't find {which}."
    )
    others = [one for one in card.other_copies if not one.same]
    choice = "Would you like a refund for this card"
    if others:
        choice += f", or a copy in {others[0].condition_label} instead"
    words += [f"{choice}? The rest of your order is ready to ship.", "", shop]
    return "\n".join(words).strip()


@get("/pulls/{session_id:int}")
async def pull_page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    session_id: int,
    ending: bool = False,
) -> Template:
    origin = settings.origin_for(request.headers.get("host"))
    async with reading(request) as reads:
        pull, queue, (phones, code), (missing, texts) = await at_once(
            pull_reads.in_full(reads, caller, session_id),
            read_queue(reads, caller, session_id, clock.now()),
            at_once(
                phone_links.list_links(reads, caller, session_id),
                phone_links.link_of_all(reads, caller, session_id, settings, origin),
            ),
            missing_of(reads, caller, session_id=session_id),
        )
    return show(
        request,
        caller,
        "pull.html",
        pull=pull,
        games=_games(queue, pull.orders),
        total=progress_of(queue, None),
        links=phones,
        ending=ending,
        code=code,
        qr=drawn_code(code.url) if code else "",
        left=_left(pull.orders),
        ready=[order for order in pull.orders if order.pulled_at and not order.in_review],
        missing=missing,
        texts=texts,
        lines=_lines(queue),
        put_back=[entry for entry in queue.entries if entry.line.surplus],
    )


def _left(orders: Iterable[PullOrder]) -> list[PullOrder]:
    """Return those orders of a session that still have copies to pull. Pure."""
    return [
        order
        for order in orders
        if not (order.pulled_at or order.missing_at or order.in_review or order.shipped_marked_at)
    ]


def _lines(queue: Queue) -> dict[int, tuple[int, int]]:
    """Return the numbers of pulled and of ordered copies, by order id. Pure."""
    sums: dict[int, tuple[int, int]] = {}
    for entry in queue.entries:
        pulled, wanted = sums.get(entry.order_id, (0, 0))
        sums[entry.order_id] = pulled + entry.line.pulled, wanted + entry.line.wanted
    return sums


@post_form("/pulls/{session_id:int}/{end:str}")
async def change_pull(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
    settings: Settings,
    session_id: int,
    end: str,
) -> AnyResponse | Template:
    if end == "cover":
        return await _cover(request, caller, session, settings, session_id)
    if end == "code":
        await phone_links.make_link_of_all(session, caller, session_id, settings, "", clock.now())
        return see(f"/pulls/{session_id}")
    if end not in ENDS:
        raise errors.NotFound(f"a pull cannot be {end!r}")
    state = cast(Literal["completed", "cancelled"], ENDS[end])
    if state == "completed" and not form["confirm"]:
        pull = await pull_reads.in_full(session, caller, session_id)
        if pull.status == "open" and _left(pull.orders):
            return see(f"/pulls/{session_id}", ending="true")
    await pull_sessions.end_session(session, caller, session_id, state, clock.now())
    return see(f"/pulls/{session_id}", done=message(f"pull_{state}"))


async def _cover(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    session_id: int,
) -> Template:
    """Make new links, and show them this one time as QR codes."""
    now = clock.now()
    earlier = await phone_links.list_links(session, caller, session_id)
    origin = settings.origin_for(request.headers.get("host"))
    made = await phone_links.make_links(session, caller, session_id, None, origin, now)
    pull = await pull_reads.in_full(session, caller, session_id)
    queue = await read_queue(session, caller, session_id, now)
    working = sum(link.revoked_at is None for link in earlier)
    games = {game["product_line"]: game for game in _games(queue, pull.orders)}
    sheets = [
        {"url": link.url, "qr": drawn_code(link.url), **games[link.product_line]}
        for link in made
        if link.product_line in games
    ]
    return show(request, caller, "pull_cover.html", pull=pull, sheets=sheets, earlier=working)


def _games(queue: Queue, orders: Iterable[PullOrder]) -> list[dict[str, object]]:
    """Return each game of the session with its progress, its orders and how they are shipped."""
    shipping = {order.id: order.shipping_type for order in orders}
    games = []
    for line in sorted({entry.product_line for entry in queue.entries}):
        entries = queue.of_line(line)
        mine = {entry.order_id for entry in entries}
        games.append(
            {
                "product_line": line,
                "name": game_name(line) or "Other cards",
                "orders": len(mine),
                "cards": sum(entry.wanted for entry in entries),
                "shipping": Counter(shipping.get(order, "pwe") for order in mine),
                "progress": progress_of(queue, line),
            }
        )
    return games


@post_form("/pulls/{session_id:int}/orders/{order_id:int}/{mark:str}")
async def mark_pull_order(
    caller: Caller, session: AsyncSession, session_id: int, order_id: int, mark: str
) -> Response[str]:
    if mark not in MARKS:
        raise errors.NotFound(f"an order in a pull can't be marked {mark!r}")
    await MARKS[mark](session, caller, session_id, order_id, clock.now())
    return see(f"/pulls/{session_id}", done=message(f"pull_{mark}"))


@post_form("/pulls/{session_id:int}/links/{link_id:int}/revoke")
async def revoke_phone_link(
    caller: Caller, session: AsyncSession, session_id: int, link_id: int
) -> Response[str]:
    await phone_links.revoke(session, caller, link_id, clock.now())
    return see(f"/pulls/{session_id}", done=message("link_revoked"))


@get("/pulls/{session_id:int}/changes")
async def pull_changes(request: PageRequest, caller: Caller, session_id: int) -> Stream:
    """Send the events of one session to the page until the session ends."""
    streams: PullStreams = request.app.state.pull_streams

    async def still_open() -> bool:
        async with opened(request) as session:
            summary_of_session = await pull_reads.summary(session, caller, session_id)
        return summary_of_session.status == "open"

    if not await still_open():
        raise errors.PullSessionNotOpen(f"pull session {session_id} has ended")
    return event_stream(streams.events(caller.seller_id, 0, still_open))


ROUTES = [
    pulls_page,
    open_pull,
    pull_page,
    change_pull,
    mark_pull_order,
    revoke_phone_link,
    pull_changes,
]

"""The public page of a shop's buylist. Strangers search the catalog, see both prices in each
condition, and send a cart, which becomes a draft offer. The page works without scripts and sets no
cookie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from litestar import MediaType, Response, get
from litestar.response import Template

from cardsync.access.admission import among_programs
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import PICTURES
from cardsync.buying.buylist.carts import CartLine, place_of, read_cart, send_cart, wants_of
from cardsync.buying.buylist.search_buylist import BuylistRow, search_buylist
from cardsync.buying.buylist.visitors import SHOP
from cardsync.buying.engine.buy_rules import GRADES
from cardsync.buying.offers.offer_amounts import Priced, totals
from cardsync.buying.offers.price_lines import priced
from cardsync.buying.offers.schemas import OfferTotals
from cardsync.dashboard.assets import asset_url
from cardsync.dashboard.shell import HEADERS, PageRequest, games_of, reader_of, url
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.storage import Store
from cardsync.stock.pictures.answer import FOREVER, answer
from cardsync.stock.pictures.read_pictures import of_product
from cardsync.web.forms import Form, public_form, sentence
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse

# Browsers must not send the page's address, which contains the search and the cart, to other sites.
# Search engines must not follow the links that change the cart.
VISITOR_HEADERS = HEADERS | {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "nofollow"}
GIVEN: Final = ("name", "contact", "note")


@get("/{shop:int}")
async def buylist_page(
    request: PageRequest, caller: Caller, database: Database, shop: int
) -> Template:
    cart = read_cart([*request.query_params.getall("cart", []), *_added(request)])
    sent = read_id(request.query_params.get("sent", "")) or 0
    return await _shown(request, caller, database, cart, sent=sent)


@public_form("/{shop:int}", middleware=[among_programs], status_code=200)
async def send_by_form(
    request: PageRequest, caller: Caller, database: Database, form: Form, shop: int
) -> Response[str] | Template:
    """Send the cart to the shop. The form has no token, because no cookie authorizes it. The answer
    redirects to the page, so that a reload does not send the cart again.
    """
    cart = read_cart(form.all("cart"))
    given = form.some(*GIVEN)
    try:
        async with database.tenant(caller.seller_id, work=Work.VISIT) as session:
            number = await send_cart(
                session, caller, cart, form["name"], form["contact"], form["note"], clock.now()
            )
    except (errors.InvalidPayload, errors.ListFull) as e:
        return await _shown(request, caller, database, cart, e, given=given)
    headers = VISITOR_HEADERS | {"Location": url(SHOP.of(request.scope).buylist, sent=number)}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


def _added(request: PageRequest) -> list[str]:
    """Return the entries for the cart: the rows of the search for which the visitor
    typed copies.
    """
    entries = []
    for name, given in request.query_params.multi_items():
        kind, _, card = name.partition(":")
        if kind == "copies" and (read_id(str(given)) or 0):
            condition = request.query_params.get(f"condition:{card}", GRADES[0])
            entries.append(f"{card.replace(':', '-' + str(condition) + '-')}-{given}")
    return entries


async def _offered(
    database: Database, caller: Caller, typed: str, line: str | None, cart: Sequence[CartLine]
) -> tuple[list[BuylistRow], list[dict[str, Any]], errors.InvalidPayload | None]:
    """Return the rows that the search finds, and the priced lines of the cart or the reason why it
    has none.
    """
    now = clock.now()
    async with database.tenant(caller.seller_id, work=Work.VISIT) as session:
        rows = await search_buylist(session, caller, typed, line, now)
        try:
            lines = await priced(session, caller, wants_of(cart), now) if cart else []
        except errors.InvalidPayload as refused:
            return rows, [], refused
    return rows, lines, None


async def _shown(
    request: PageRequest,
    caller: Caller,
    database: Database,
    cart: list[CartLine],
    problem: errors.Problem | None = None,
    sent: int = 0,
    given: Mapping[str, str] | None = None,
) -> Template:
    """Show the results of the search, and the cart with its sums."""
    query = request.query_params
    typed = str(query.get("q", ""))[: limits.SEARCHED_CHARACTERS]
    game = str(query.get("game", ""))
    line = game if game in caller.account.product_lines else None
    rows, lines, refused = await _offered(database, caller, typed, line, cart)
    if refused is not None:
        cart, problem = [], refused
    sums = totals(Priced(x["copies"], x["cash_each"], x["credit_each"]) for x in lines)
    shop = SHOP.of(request.scope)
    path = shop.buylist
    entries = [each.entry for each in cart]
    remove = [
        url(path, q=typed, game=game, cart=[x for x in entries if x != one]) for one in entries
    ]
    context = {
        "reader": reader_of(request, caller),
        "asset": asset_url,
        "url": url,
        "csrf_token": "",
        "shop": shop,
        "home": path,
        "here": True,
        "path": path,
        "typed": typed,
        "game": game,
        "games": games_of(caller),
        "rows": rows,
        "most": limits.BUYLIST_ROWS,
        "place_of": place_of,
        "lines": lines,
        "entries": entries,
        "without": _at_first([x.copies for x in cart], [x["copies"] for x in lines], remove),
        "cart": cart,
        "totals": struct_of(OfferTotals, sums),
        "problem": sentence(problem) if problem else "",
        "sent": sent,
        "given": given or dict.fromkeys(GIVEN, ""),
    }
    return Template(
        "public_buylist.html",
        context=context,
        status_code=problem.status if problem else 200,
        media_type=MediaType.HTML,
        headers=VISITOR_HEADERS,
    )


def _at_first(wanted: Sequence[int], priced: Sequence[int], remove: Sequence[str]) -> list[str]:
    """Return the address that removes a card for the first priced line of each card, and "" for its
    other lines. A card whose copies have several prices has several consecutive lines.
    """
    said: list[str] = []
    left, of = 0, iter(zip(wanted, remove, strict=True))
    for copies in priced:
        address = ""
        if left <= 0:
            left, address = next(of)
        left -= copies
        said.append(address)
    return said


@get("/{shop:int}/img/{product_id:int}/{size:str}", opt=PICTURES)
async def buylist_picture(
    request: PageRequest,
    caller: Caller,
    database: Database,
    store: Store,
    shop: int,
    product_id: int,
    size: str,
) -> Response[bytes]:
    """Send the picture of a product; members see the same picture."""
    shown = await of_product(database, caller, store, product_id, size)
    return answer(shown, request.headers.get("if-none-match"), FOREVER)


def refused(request: AnyRequest, problem: errors.Problem) -> AnyResponse | Template:
    return page(
        "message.html",
        problem.status,
        problem.headers,
        heading="That did not work",
        message=sentence(problem),
    )

"""The public page of what a shop buys: strangers search the catalog, see both prices in each
condition, and send a cart that becomes a draft offer. It works without scripts and keeps no cookie.
"""

from __future__ import annotations

from typing import Any

from litestar import MediaType, Request, Response, get, post
from litestar.response import Template

from cardsync import clock, errors, limits
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.buying.buylist.buylist_settings import PATH
from cardsync.buying.buylist.carts import CartLine, place_of, read_cart, send_cart, wants_of
from cardsync.buying.buylist.search_buylist import search_buylist
from cardsync.buying.buylist.visitors import shop_of
from cardsync.buying.engine.buy_rules import GRADES
from cardsync.buying.offers.offer_amounts import Priced, totals
from cardsync.buying.offers.price_lines import priced
from cardsync.buying.offers.shown import totals_body
from cardsync.cards.bulk_selection import read_id
from cardsync.dashboard.assets import asset_url
from cardsync.dashboard.form_handlers import unchecked
from cardsync.dashboard.pages.add_cards import CONDITIONS
from cardsync.dashboard.shell import HEADERS, PageRequest, games_of, reader_of, sentence, url
from cardsync.database.seller_slots import Work
from cardsync.database.session import Database
from cardsync.web.pages import page

# Nothing of the search leaves the page, and no search engine follows carts.
VISITOR_HEADERS = HEADERS | {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "nofollow"}


@get("/{shop:int}")
async def buylist_page(
    request: PageRequest, caller: Caller, database: Database, shop: int
) -> Template:
    cart = read_cart([*request.query_params.getall("cart", []), *_added(request)])
    sent = read_id(request.query_params.get("sent", "")) or 0
    return await _shown(request, caller, database, cart, sent=sent)


@post("/{shop:int}", status_code=200)
async def send_by_form(
    request: PageRequest, caller: Caller, database: Database, shop: int
) -> Response[str] | Template:
    """Send the cart. The form has no token of its own, because no cookie authorizes it. The answer
    leads to the page again, so that a reload sends nothing twice.
    """
    limited: RateLimits = request.app.state.rate_limits
    await limited.admit_anonymous(request.scope)
    form = await unchecked(request)
    cart = read_cart(form.all("cart"))
    try:
        async with database.tenant(caller.seller_id, work=Work.VISIT) as session:
            number = await send_cart(
                session, caller, cart, form["name"], form["contact"], form["note"], clock.now()
            )
    except (errors.InvalidPayload, errors.ListFull) as e:
        return await _shown(request, caller, database, cart, e)
    headers = VISITOR_HEADERS | {"Location": url(f"{PATH}/{caller.seller_id}", sent=number)}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


def _added(request: PageRequest) -> list[str]:
    """Return the entries of the search's rows that name copies."""
    entries = []
    for name, given in request.query_params.multi_items():
        kind, _, card = name.partition(":")
        if kind == "copies" and (read_id(str(given)) or 0):
            condition = request.query_params.get(f"condition:{card}", GRADES[0])
            entries.append(f"{card.replace(':', '-' + str(condition) + '-')}-{given}")
    return entries


async def _shown(
    request: PageRequest,
    caller: Caller,
    database: Database,
    cart: list[CartLine],
    problem: errors.Problem | None = None,
    sent: int = 0,
) -> Template:
    """Show the search, and the cart with what it brings as a whole."""
    query = request.query_params
    typed = str(query.get("q", ""))[: limits.SEARCHED_CHARACTERS]
    game = str(query.get("game", ""))
    line = game if game in caller.account.product_lines else None
    now = clock.now()
    lines: list[dict[str, Any]] = []
    async with database.tenant(caller.seller_id, work=Work.VISIT) as session:
        rows = await search_buylist(session, caller, typed, line, now)
        if cart:
            try:
                lines = await priced(session, caller, wants_of(cart), now)
            except errors.InvalidPayload as e:
                cart, problem = [], e
    sums = totals(Priced(x["copies"], x["cash_each"], x["credit_each"]) for x in lines)
    shop = shop_of(request.scope)
    path = f"{PATH}/{caller.seller_id}"
    entries = [each.entry for each in cart]
    context = {
        "reader": reader_of(request, caller),
        "asset": asset_url,
        "url": url,
        "csrf_token": "",
        "shop": shop,
        "path": path,
        "typed": typed,
        "game": game,
        "games": games_of(caller),
        "rows": rows,
        "place_of": place_of,
        "conditions": [pair for pair in CONDITIONS if pair[0] in GRADES],
        "lines": lines,
        "entries": entries,
        "without": [
            url(path, q=typed, game=game, cart=[x for x in entries if x != one]) for one in entries
        ],
        "cart": cart,
        "totals": totals_body(sums),
        "problem": sentence(problem) if problem else "",
        "sent": sent,
    }
    return Template(
        "public_buylist.html",
        context=context,
        status_code=problem.status if problem else 200,
        media_type=MediaType.HTML,
        headers=VISITOR_HEADERS,
    )


def refused(request: Request[Any, Any, Any], problem: errors.Problem) -> Response[Any] | Template:
    return page(
        "message.html",
        problem.status,
        problem.headers,
        heading="That did not work",
        message=sentence(problem),
    )

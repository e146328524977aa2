"""The page that a customer opens with a link: one offer of the shop, and the form that accepts or
declines it. The page works without scripts, and shows nothing else of the shop.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple, get_args

from litestar import MediaType, Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import PICTURES
from cardsync.buying.offers import offer_life, offer_reads
from cardsync.buying.offers.models import Way
from cardsync.buying.offers.offer_links import PATH, link_of
from cardsync.buying.offers.schemas import OfferLine, Shop
from cardsync.dashboard.assets import asset_url
from cardsync.dashboard.formats import Reader
from cardsync.dashboard.messages import message, sentences
from cardsync.dashboard.shell import HEADERS, PageRequest, reader_of, url
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.typed_numbers import amount, read_id
from cardsync.platform.storage import Store
from cardsync.stock.pictures.answer import FOREVER, answer
from cardsync.stock.pictures.read_pictures import of_product
from cardsync.web.forms import Form, public_form, sentence
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse

# The page's address contains a secret: browsers must not send it to other sites, and search engines
# must not list it.
CUSTOMER_HEADERS = HEADERS | {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
}
# The form has two fields for each line, and a form may have at most 2,000 fields.
LINES_SHOWN: Final = 500
WAYS = [("cash", "Cash"), ("credit", "Store credit"), ("split", "Split")]


@get("/{token:str}")
async def offer_page(
    request: PageRequest, caller: Caller, session: AsyncSession, token: str
) -> Template:
    return await _shown(request, caller, session, token)


@get("/{token:str}/img/{product_id:int}/{size:str}", opt=PICTURES)
async def offer_picture(
    request: PageRequest,
    caller: Caller,
    database: Database,
    store: Store,
    product_id: int,
    size: str,
) -> Response[bytes]:
    """Send the picture of a product. The picture is on this service's own host, so that no other
    site learns the token in the page's address.
    """
    shown = await of_product(database, caller, store, product_id, size)
    return answer(shown, request.headers.get("if-none-match"), FOREVER)


@public_form("/{token:str}")
async def answer_by_form(
    request: PageRequest, caller: Caller, session: AsyncSession, form: Form, token: str
) -> Response[str] | Template:
    """Accept or decline the offer. The form has no token, because no cookie authorizes it."""
    link = link_of(request.scope)
    now = clock.now()
    revision = read_id(form["revision"]) or 0
    try:
        if form["answer"] == "no":
            await offer_life.answer_no(
                session, caller, link.offer_id, revision, now, by_customer=True
            )
            return _ended("You declined the offer. Thank you for asking.", 200, shop=link.shop)
        await _accept(session, caller, link.offer_id, revision, form)
    except (errors.InvalidPayload, errors.RevisionConflict, errors.OfferStateWrong) as e:
        await session.rollback()
        return _ended(sentence(e), e.status, f"{PATH}/{token}", link.shop)
    where = url(f"{PATH}/{token}", done=message("offer_accepted"))
    headers = CUSTOMER_HEADERS | {"Location": where}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


async def _accept(
    session: AsyncSession, caller: Caller, offer_id: int, revision: int, form: Form
) -> None:
    """Accept the form's lines of the offer. Raises what `answer_yes` raises."""
    way: Way | None = next((way for way in get_args(Way) if way == form["way"]), None)
    if way is None:
        raise errors.InvalidPayload("way: choose cash, store credit or split")
    part = _amount(form["cash_part"]) if way == "split" else None
    chosen, shown = chosen_of(form)
    await offer_life.answer_yes(
        session,
        caller,
        offer_id,
        revision,
        way,
        part,
        chosen,
        clock.now(),
        shown=shown or None,
        by_customer=True,
    )


class Part(NamedTuple):
    """The offer's lines on one page; pages are counted from 1."""

    rows: list[OfferLine]
    page: int
    pages: int


def part_of(request: PageRequest, lines: list[OfferLine], most: int) -> Part:
    """Return the lines on the page that the address names."""
    pages = max(-(-len(lines) // most), 1)
    page = min(read_id(request.query_params.get("lines", "")) or 1, pages)
    return Part(lines[(page - 1) * most : page * most], page, pages)


def chosen_of(form: Form) -> tuple[list[int], list[int]]:
    """Return the ids of the ticked lines, and of all lines that the page showed."""
    ticked, shown = (
        [id for text in form.all(name) if (id := read_id(text)) is not None]
        for name in ("line", "shown")
    )
    return ticked, shown


def _amount(text: str) -> Decimal:
    if (part := amount(text)) is None:
        raise errors.InvalidPayload("cash_part: an amount like 12.50")
    return part


async def _shown(
    request: PageRequest, caller: Caller, session: AsyncSession, token: str
) -> Template:
    link = link_of(request.scope)
    offer = await offer_reads.one_offer(session, caller, link.offer_id)
    lines = part_of(request, offer.lines, LINES_SHOWN)
    reader = reader_of(request, caller)
    totals = offer.totals
    context = {
        "reader": reader,
        "asset": asset_url,
        "url": url,
        "token": token,
        "shop": link.shop,
        "home": link.shop.buylist,
        "here": False,
        "offer": offer,
        "lines": [_brings(line) for line in lines.rows],
        "page": lines.page,
        "pages": lines.pages,
        "payable": _payable(reader, Decimal(totals.cash), Decimal(totals.credit)),
        "shown_way": "cash" if offer.way == "cash" or not Decimal(totals.credit) else "credit",
        "done": sentences(str(request.query_params.get("done", ""))),
        "csrf_token": "",
    }
    return Template(
        "customer_offer.html",
        context=context,
        media_type=MediaType.HTML,
        headers=CUSTOMER_HEADERS,
    )


class Brings(NamedTuple):
    """A line with its present copies and prices, and the sums of its copies in cash and
    in credit.
    """

    line: OfferLine
    copies: int
    condition: str
    each: dict[str, str | None]
    sums: dict[str, Decimal | None]


def _brings(line: OfferLine) -> Brings:
    now = line.received or line
    each = {"credit": now.credit_each, "cash": now.cash_each}
    sums = {way: Decimal(one) * now.copies if one else None for way, one in each.items()}
    return Brings(line, now.copies, now.condition, each, sums)


def _payable(reader: Reader, cash: Decimal, credit: Decimal) -> list[tuple[Way, str, str]]:
    """Return the ways in which the shop can pay for the offer, the highest amount first."""
    more = f"{reader.money(credit - cash)} more than cash" if credit > cash else ""
    ways: list[tuple[Way, str, str]] = []
    if credit:
        ways.append(("credit", f"{reader.money(credit)} store credit", more))
    if cash:
        ways.append(("cash", f"{reader.money(cash)} cash", ""))
    if cash and credit:
        ways.append(("split", "Split", "Some in cash, the rest in store credit"))
    return ways


def _ended(said: str, status: int, again: str = "", shop: Shop | None = None) -> Template:
    return Template(
        "customer_offer_ended.html",
        context={
            "asset": asset_url,
            "csrf_token": "",
            "message": said,
            "again": again,
            "shop": shop,
            "home": shop.buylist if shop else "",
            "here": False,
        },
        status_code=status,
        media_type=MediaType.HTML,
        headers=CUSTOMER_HEADERS,
    )


def refused(
    request: AnyRequest,
    problem: errors.Problem,
) -> AnyResponse | Template:
    """Show a visitor without a sign-in why the link does not work."""
    if isinstance(problem, errors.OfferLinkEnded):
        return _ended(sentence(problem), problem.status)
    return page(
        "message.html",
        problem.status,
        problem.headers,
        heading="That did not work",
        message=sentence(problem),
    )

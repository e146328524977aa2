"""The pages for operators of the installation: a search for sellers, one seller's plan and
switches, and the state of product lines, queues, statements, releases and imports.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import SETTINGS
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.shell import PageRequest, paging_of, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.declared_fields import from_text
from cardsync.platform.settings import Settings
from cardsync.shop.limits import OPERATOR_SELLERS
from cardsync.shop.operators import installation, shops
from cardsync.web.forms import Form
from cardsync.web.request import reading

_SWITCHES: Final = ("suspended", "past_due")


@get("/operator")
async def sellers_page(request: PageRequest, caller: Caller) -> Template:
    given = request.query_params.dict()
    paging = paging_of(request, OPERATOR_SELLERS)
    search = (given.get("search") or [""])[-1][: limits.SEARCHED_CHARACTERS]
    async with reading(request) as reads:
        found = await shops.shops(reads, caller, search, paging)
    return show(request, caller, "operator.html", found=found, search=search)


@get("/operator/sellers/{seller_id:int}")
async def seller_page(request: PageRequest, caller: Caller, seller_id: int) -> Template:
    async with reading(request) as reads:
        seller = await shops.one_shop(reads, caller, seller_id)
    return show(
        request,
        caller,
        "operator_seller.html",
        seller=seller,
        plans=[(plan, plan.title()) for plan in limits.PLANS],
        own=seller_id == caller.seller_id,
    )


@post_form("/operator/sellers/{seller_id:int}")
async def change_seller(
    caller: Caller, form: Form, session: AsyncSession, seller_id: int
) -> Response[str]:
    """Set what the form names: the plan with the end of its trial, or one switch."""
    values: dict[str, object] = {}
    for name in shops.CHANGEABLE:
        if name in form:
            try:
                values[name] = from_text(SETTINGS[name], form[name])
            except ValueError as e:
                raise errors.InvalidPayload(f"{name}: must be {e}") from e
    await shops.change_shop(session, caller, seller_id, values, clock.now())
    facts = [
        message(f"{name}_{'on' if on else 'off'}")
        for name, on in values.items()
        if name in _SWITCHES
    ]
    done = together(*facts) or message("plan_saved")
    return see(f"/operator/sellers/{seller_id}", done=done)


@get("/operator/installation")
async def installation_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    async with reading(request) as reads:
        found = await installation.read_installation(reads, caller, clock.now(), settings)
    return show(request, caller, "operator_installation.html", found=found)


ROUTES = [sellers_page, seller_page, change_seller, installation_page]

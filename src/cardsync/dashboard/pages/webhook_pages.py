"""The page Settings, Webhooks: an owner's webhooks, and one webhook with its deliveries.

A secret is shown only on the page that answers the form that made it.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.read_sources import Source
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.notices import webhooks
from cardsync.shop.notices.notice_kinds import KINDS, TEST
from cardsync.shop.notices.schemas import DeliveryBody, webhook_body
from cardsync.web.forms import Form, read_form
from cardsync.web.request import reading

PATH: Final = "/settings/webhooks"
_OFF: Final = {
    "gone": "Turned off: its server said the address is gone for good.",
    "failing": "Turned off: every delivery failed for three days.",
    "owner": "Turned off.",
}
_LABELS: Final = {kind: each.label for kind, each in KINDS.items()} | {TEST: "Test"}


async def _all(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    now, form = clock.now(), read_form(request)
    return _show(
        request,
        caller,
        "settings_webhooks.html",
        webhooks=[webhook_body(row, now) for row in await webhooks.webhooks(source, caller)],
        url=form["url"],
        wanted=form.all("kind"),
        problem=problem,
    )


def _show(
    request: PageRequest,
    caller: Caller,
    template: str,
    status: int = 200,
    /,
    **values: Any,
) -> Template:
    tabs = tabs_of(caller)
    return show(request, caller, template, status, tabs=tabs, labels=_LABELS, **values)


@get(PATH)
async def webhooks_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _all(request, caller, reads)


@post_form(PATH, exception_handlers=again(_all, errors.InvalidPayload))
async def make_webhook(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Template:
    url, wanted = form["url"], form.all("kind")
    made = await webhooks.make(session, caller, settings, url, wanted, clock.now())
    return await _one(request, caller, session, made=made)


async def _one(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
    made: webhooks.Made | None = None,
) -> Template:
    now, form = clock.now(), read_form(request)
    webhook_id = made.webhook.id if made else request.path_params["webhook_id"]
    row, deliveries = await webhooks.with_deliveries(source, caller, webhook_id)
    shown = webhook_body(row, now)
    return _show(
        request,
        caller,
        "settings_webhook.html",
        secret=made.secret if made else "",
        url=form["url"] if problem else shown.url,
        wanted=form.all("kind") if problem else shown.kinds,
        problem=problem,
        webhook=shown,
        why_off=_OFF.get(shown.off_why or "", ""),
        deliveries=[struct_of(DeliveryBody, one) for one in deliveries],
    )


@get(PATH + "/{webhook_id:int}")
async def webhook_page(request: PageRequest, caller: Caller, webhook_id: int) -> Template:
    async with reading(request) as reads:
        return await _one(request, caller, reads)


@post_form(PATH + "/{webhook_id:int}", exception_handlers=again(_one, errors.InvalidPayload))
async def change_webhook(
    caller: Caller, form: Form, session: AsyncSession, settings: Settings, webhook_id: int
) -> Response[str]:
    url, wanted = form["url"], form.all("kind")
    await webhooks.change(session, caller, settings, webhook_id, clock.now(), url=url, kinds=wanted)
    return see(f"{PATH}/{webhook_id}", message("saved"))


@post_form(PATH + "/{webhook_id:int}/{what:str}")
async def do_with_webhook(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
    settings: Settings,
    webhook_id: int,
    what: str,
) -> Template | Response[str]:
    now = clock.now()
    done = "saved"
    match what:
        case "test":
            await webhooks.send_test(session, caller, settings, webhook_id, now)
            done = "webhook_tested"
        case "secret":
            made = await webhooks.rotate(session, caller, settings, webhook_id, now)
            return await _one(request, caller, session, made=made)
        case "switch":
            on = form["on"] == "true"
            await webhooks.change(session, caller, settings, webhook_id, now, on=on)
            done = "webhook_on" if on else "webhook_off"
        case "delete":
            await webhooks.remove(session, caller, webhook_id, now)
            return see(PATH, message("webhook_deleted"))
        case _:
            raise errors.NotFound("this page does not exist")
    return see(f"{PATH}/{webhook_id}", message(done))


@post_form(PATH + "/{webhook_id:int}/deliveries/{delivery_id:int}")
async def replay_delivery(
    caller: Caller,
    session: AsyncSession,
    webhook_id: int,
    delivery_id: int,
) -> Response[str]:
    await webhooks.replay(session, caller, webhook_id, delivery_id, clock.now())
    return see(f"{PATH}/{webhook_id}", message("webhook_replayed"))


ROUTES: Final = [
    webhooks_page,
    make_webhook,
    webhook_page,
    change_webhook,
    do_with_webhook,
    replay_delivery,
]

"""The page of connected assistants: the permissions and the use of each assistant, and how to
connect another assistant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.audience import PATH
from cardsync.access.caller import Caller
from cardsync.assistant import self_test
from cardsync.assistant.connect import BY_KEY, CLIENTS
from cardsync.assistant.oauth import grants
from cardsync.assistant.self_test import Step
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import Database
from cardsync.platform.money import dollars
from cardsync.platform.settings import Settings
from cardsync.prices.loss import loss_limits as loss
from cardsync.prices.loss.decide import Mode
from cardsync.prices.plans import budgets, permissions
from cardsync.prices.plans.actions import ActionType
from cardsync.web.forms import Form
from cardsync.web.reach import reach_of
from cardsync.web.request import reading

KINDS: Final[tuple[tuple[ActionType, str], ...]] = (
    ("pricing.change_set", "Prices and rules"),
    ("pricing.pins", "Pinned prices"),
    ("lists.change_set", "Lists"),
)
# The description of each permission mode. An assistant without a mode of its own has the mode of
# all tokens, which the page describes with these words.
_USUAL: Final[dict[Mode, str]] = {
    "deny": "never",
    "always_ask": "ask me about plans; make single changes",
    "ask_for_mutations": "ask me about plans; make single changes",
    "auto_low_risk": "ask me about large plans; make single changes",
    "auto_unless_critical": "ask me about critical plans; make single changes",
}
MODES: Final = (
    ("deny", "Never"),
    ("always_ask", "Ask me every time"),
    ("ask_for_mutations", "Ask me before anything changes"),
    ("auto_low_risk", "Make small changes; ask me about the rest"),
    ("auto_unless_critical", "Make changes; ask me about critical ones"),
)


async def _page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    steps: Sequence[Step] = (),
) -> Template:
    now = clock.now()
    async with reading(request) as reads:
        connected, used, given = await at_once(
            grants.listed(reads, caller),
            budgets.used(reads, caller.seller_id, now),
            permissions.permissions_of(reads, caller.seller_id),
        )
    of_tokens = given["token"]
    return show(
        request,
        caller,
        "settings_assistants.html",
        tabs=tabs_of(caller),
        connected=connected,
        used=used,
        shares=[
            ("Largest price change this hour", used.card_hour_bp, loss.HOUR_CARD_BP),
            ("Value changed this hour", used.hour_value_bp, loss.HOUR_TOUCHED_BP),
            ("Largest price change today", used.card_day_bp, loss.DAY_CARD_BP),
        ],
        week=dollars(used.week_units),
        week_budget=dollars(used.week_budget_units),
        kinds=KINDS,
        modes=MODES,
        usual={kind: f"Default: {_USUAL[of_tokens[kind]]}" for kind, _ in KINDS},
        clients=CLIENTS,
        address=_origin(request, settings) + PATH,
        reach=reach_of(_origin(request, settings)),
        steps=steps,
    )


def _origin(request: PageRequest, settings: Settings) -> str:
    host = request.headers.get("host", "")
    return settings.origin_for(host) if settings.is_own_name(host) else settings.origin


@get("/settings/assistants")
async def assistants_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    return await _page(request, caller, settings)


@get("/settings/assistants/connect/{client:str}")
async def connect_page(
    request: PageRequest, caller: Caller, settings: Settings, client: str
) -> Template:
    caller.must_be_owner()
    found = BY_KEY.get(client)
    if found is None:
        raise errors.NotFound(f"there is no client {client}")
    origin = _origin(request, settings)
    return show(
        request,
        caller,
        "settings_connect.html",
        tabs=tabs_of(caller),
        client=found,
        command=found.filled(origin, origin + PATH),
        reach=reach_of(origin),
    )


@post_form("/settings/assistants/test")
async def test_connection(
    request: PageRequest, caller: Caller, database: Database, settings: Settings
) -> Template:
    steps = await self_test.run(database, settings, caller, _origin(request, settings))
    return await _page(request, caller, settings, steps=steps)


@post_form("/settings/assistants/{grant_id:int}/modes")
async def change_modes(
    caller: Caller, form: Form, session: AsyncSession, grant_id: int
) -> Response[str]:
    body = {"modes": {kind: form[kind] or None for kind, _ in KINDS if kind in form}}
    await grants.change_modes(session, caller, grant_id, body, clock.now())
    return see("/settings/assistants", message("assistant_changed"))


@post_form("/settings/assistants/{grant_id:int}/revoke")
async def revoke(caller: Caller, session: AsyncSession, grant_id: int) -> Response[str]:
    await grants.revoke(session, caller, grant_id, clock.now())
    return see("/settings/assistants", message("assistant_revoked"))


ROUTES: Final = [assistants_page, connect_page, test_connection, change_modes, revoke]

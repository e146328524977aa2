"""The page of the network: its two switches with their dates, the shop as buyers see it, and the
cards that buyers asked for in vain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litestar import Response, get
from litestar.response import Template

from cardsync import clock
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.accounts import account_form, account_settings
from cardsync.accounts.account_form import ChangedMeanwhile, Unreadable
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import Input, shown_and_wanted
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.database.session import Database
from cardsync.discovery.network_shown import postage_shown
from cardsync.discovery.seller_network import read_network
from cardsync.settings import Settings

INPUTS: Final = (
    Input(
        "network_consent",
        "I agree to let network buyers find my stock",
        "check",
        "If off, no one can see your stock.",
    ),
    Input(
        "network_published",
        "My stock is published",
        "check",
        "Switch it off for a while, for example for a vacation, and keep your consent.",
    ),
    Input("store_name", "Store name", hint="As buyers see it."),
    Input(
        "listing_url_template",
        "Link to one of your listings",
        hint="Like https://shop.example/product/{marketplace_product_id}. "
        "Empty for the product's page at the marketplace.",
    ),
    Input(
        "postage_steps",
        "Postage by parcel value",
        hint="For example 0:1.27,12:3.20: a parcel costs 1.27 to ship, or 3.20 from $12 up. Empty if you do not know: baskets then use an estimate.",
    ),
)
REASONS: Final = {
    "no_consent": "you have not consented",
    "not_published": "your stock is not published",
    "suspended": "your account is suspended",
    "plan_ended": "your plan has ended",
}


async def _page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    status: int = 200,
    wanted: Mapping[str, str] | None = None,
    **values: Any,
) -> Template:
    async with database.tenant(caller.seller_id) as session:
        found = await read_network(session, caller, settings, clock.now())
        current = account_form.as_texts(await account_settings.account_of(session, caller))
    given = {"conflicts": [], "problems": {}} | values
    return show(
        request,
        caller,
        "network.html",
        status,
        network=found,
        default_postage=postage_shown(settings.default_postage_steps),
        inputs=INPUTS,
        labels={each.name: each.label for each in INPUTS},
        reasons=REASONS,
        current=current,
        texts={**current, **(wanted or {})},
        **given,
    )


@get("/network", opt=BY_FORM)
async def network_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Template:
    return await _page(request, caller, database, settings)


@post_form("/network")
async def change_network(
    request: PageRequest, caller: Caller, form: Form, database: Database, settings: Settings
) -> Template | Response[str]:
    shown, wanted = shown_and_wanted(form, INPUTS)
    try:
        async with database.tenant(caller.seller_id) as session:
            changed = await account_form.change_shown(session, caller, shown, wanted, clock.now())
    except ChangedMeanwhile as e:
        mine = {name: text for name, text in wanted.items() if text != shown[name]}
        return await _page(
            request,
            caller,
            database,
            settings,
            409,
            mine,
            conflicts=e.conflicts,
            problem="Something changed in the meantime. Nothing was saved.",
        )
    except Unreadable as e:
        return await _page(
            request,
            caller,
            database,
            settings,
            422,
            wanted,
            problems=e.problems,
            problem="Nothing was saved: a field could not be read.",
        )
    return see("/network", message("saved_network" if changed else "same"))


ROUTES: Final = [network_page, change_network]

"""The page of the network: its two switches with their dates, a table of shipping rates, the shop
as buyers see it, and the cards that buyers looked for without success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import inputs_of, refused_settings, shown_and_wanted
from cardsync.dashboard.shell import PageRequest, reader_of, see, show
from cardsync.network.network_schemas import postage_shown
from cardsync.network.seller_network import read_network
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.postage import MOST_STEPS
from cardsync.shop.accounts import account_form, account_settings
from cardsync.shop.accounts.account_form import ChangedMeanwhile, Unreadable
from cardsync.web.forms import Form, read_form
from cardsync.web.request import provide_settings, reading

INPUTS: Final = inputs_of("network", store_name="As buyers see it.")
# The reasons why the network shows nothing of the shop although both switches are on.
REASONS: Final = {
    "suspended": "your account is suspended",
    "plan_ended": "your plan has ended",
}
# The reasons why the network does not show a listing, by the fields of `KeptPrivate`.
PRIVATE: Final = {
    "custom": "custom",
    "private": "by you",
    "without_price": "without a price",
    "other_language": "in another language",
}
# The number of blank rows in the table of shipping rates.
BLANK_ROWS: Final = 2


def rates_of(text: str) -> list[tuple[str, str]]:
    """Return the rows of the table of shipping rates, and blank rows. Pure."""
    rows = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    known = [(start.strip(), rate.strip()) for start, _, rate in rows]
    return [*known, *[("", "")] * min(BLANK_ROWS, MOST_STEPS - len(known))]


def text_of(starts: Sequence[str], rates: Sequence[str]) -> str:
    """Return the table's rows as the setting's text. Blank rows are left out, and "free" becomes 0.
    Pure.
    """

    def plain(cell: str) -> str:
        cell = cell.strip().lstrip("$").strip()
        return "0" if cell.casefold() == "free" else cell

    rows = [(plain(start), plain(rate)) for start, rate in zip(starts, rates, strict=False)]
    return ",".join(f"{start or '0'}:{rate}" for start, rate in rows if start or rate)


async def _page(
    request: PageRequest,
    caller: Caller,
    source: Source,
    status: int = 200,
    wanted: Mapping[str, str] | None = None,
    **values: Any,
) -> Template:
    settings = provide_settings(request.app.state)
    found, account = await each_of(
        source,
        read_network(source, caller, settings, clock.now()),
        account_settings.account_of(source, caller),
    )
    current = account_form.as_texts(account)
    given = {"conflicts": [], "problems": {}} | values
    reader = reader_of(request, caller)
    days = {"network_published": found.published_at, "network_consent": found.consented_at}
    words = {"network_published": "Sharing since", "network_consent": "Agreed on"}
    texts = {**current, **(wanted or {})}
    return show(
        request,
        caller,
        "network.html",
        status,
        network=found,
        default_postage=postage_shown(settings.default_postage_steps),
        inputs=INPUTS,
        labels={each.name: each.label for each in INPUTS},
        reasons=[REASONS[why] for why in found.hidden_because if why in REASONS],
        private_words=", ".join(
            f"{reader.number(count)} {words}"
            for name, words in PRIVATE.items()
            if (count := getattr(found.kept_private, name))
        )
        or "none",
        since={
            name: f"{words[name]} {reader.day(day.astimezone(reader.zone).date())}"
            for name, day in days.items()
            if day is not None
        },
        rates=rates_of(texts["postage_steps"]),
        current=current,
        texts=texts,
        **given,
    )


@get("/network")
async def network_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _page(request, caller, reads)


def _texts_of(form: Form) -> tuple[dict[str, str], dict[str, str]]:
    shown, wanted = shown_and_wanted(form, INPUTS)
    if "postage_steps" in wanted:
        wanted["postage_steps"] = text_of(form.all("rate_from"), form.all("rate"))
    return shown, wanted


async def _not_saved(
    request: PageRequest, caller: Caller, session: AsyncSession, e: ChangedMeanwhile | Unreadable
) -> Template:
    _, typed, status, values = refused_settings(e, *_texts_of(read_form(request)))
    return await _page(request, caller, session, status, typed, **values)


@post_form("/network", exception_handlers=again(_not_saved, ChangedMeanwhile, Unreadable))
async def change_network(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    changed = await account_form.change_shown(session, caller, *_texts_of(form), clock.now())
    return see("/network", message("saved_network" if changed else "same"))


ROUTES: Final = [network_page, change_network]

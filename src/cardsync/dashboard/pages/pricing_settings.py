"""The pages of pricing settings and of pinned prices. The form of the settings also sends the
values that the page showed, so that a member cannot overwrite another member's change unknowingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form, writer_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.offered_cards import offered_cards
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, see
from cardsync.platform import errors
from cardsync.platform.declared_fields import Declared, Field, declared, of_section
from cardsync.platform.kit.typed_numbers import read_id, whole
from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.rules.rule_forms import read_percent
from cardsync.prices.rules.shown_changes import (
    ChangedMeanwhile,
    settings_texts,
)
from cardsync.prices.rules.undo_sales import plain_settings
from cardsync.shop.accounts import account_settings
from cardsync.stock.cards.card_filter import CardFilter, read_page
from cardsync.stock.cards.queries import search_cards
from cardsync.stock.cards.schemas import card_body
from cardsync.web.forms import Form, read_form, sentence
from cardsync.web.request import opened, provide_settings, reading

# These settings decide no price.
APART: Final = (
    Declared(
        "recommendations",
        str,
        False,
        None,
        Field(
            section="moves",
            label="Suggestions",
            options={
                "review": "Ask me first",
                "automatic": "Apply high-confidence ones automatically",
            },
        ),
    ),
    Declared(
        "attribution_logging",
        bool,
        False,
        None,
        Field(section="direct", label="Save how each price was calculated"),
    ),
)
# The sections of the form, in their order.
SECTIONS: Final = ("limits", "review", "moves", "fees", "direct")
_FIELDS: Final = (*declared(SellerPricing), *APART)
INPUTS: Final = [one for section in SECTIONS for one in of_section(_FIELDS, section)]
NAMES: Final = [each.name for each in INPUTS]
LABELS: Final = {each.name: each.field.label for each in INPUTS}


class Conflict(NamedTuple):
    """A setting that another member changed while this member changed it, too."""

    label: str
    current: str
    wanted: str


async def _current(request: PageRequest, caller: Caller) -> dict[str, str]:
    async with reading(request) as reads:
        account = await account_settings.account_of(reads, caller)
        return settings_texts(plain_settings(account, NAMES))


def _shown(
    request: PageRequest,
    caller: Caller,
    current: Mapping[str, str],
    status: int = 200,
    /,
    **values: Any,
) -> Template:
    given = {"texts": current, "conflicts": []} | values
    return show_part(
        request,
        caller,
        "pricing_settings.html",
        status,
        current=current,
        inputs=INPUTS,
        **given,
    )


@get("/pricing/settings")
async def settings_page(request: PageRequest, caller: Caller) -> Template:
    return _shown(request, caller, await _current(request, caller))


def value_of(each: Declared, text: str) -> object:
    """Return a field's typed text as the setting's value. Pure."""
    if each.type is bool:
        return text == "true"
    if each.nullable and not text:
        return None
    if each.is_percent:
        return read_percent(text, each.name)
    number = whole(text) if each.type is int and not each.field.money else None
    return text if number is None else number


@post_form("/pricing/settings")
async def save_settings(
    request: PageRequest, caller: Caller, form: Form
) -> Template | Response[str]:
    """Save the settings whose fields differ from the shown values."""
    shown = {name: form[f"was:{name}"] for name in NAMES if f"was:{name}" in form}
    checks = {each.name for each in INPUTS if each.type is bool}
    wanted = {name: (form[name] or "false") if name in checks else form[name] for name in shown}
    changed = [each for each in INPUTS if shown.get(each.name) != wanted.get(each.name)]
    try:
        body = {each.name: value_of(each, wanted[each.name]) for each in changed}
        async with opened(request, long=True) as session:
            await writes.change_shown_settings(writer_of(request, session), shown, body)
    except ChangedMeanwhile as e:
        mine = {name: wanted[name] for name in body}
        conflicts = [
            Conflict(LABELS[name], e.current[name], text)
            for name, text in mine.items()
            if e.current[name] not in (shown[name], text)
        ]
        # The form may have only some of the settings.
        current = {**await _current(request, caller), **e.current}
        return _shown(
            request,
            caller,
            current,
            409,
            texts={**current, **mine},
            conflicts=conflicts,
            problem="Someone else changed this. Nothing was saved.",
        )
    except errors.InvalidRule as e:
        current = await _current(request, caller)
        texts = {**current, **wanted}
        return _shown(request, caller, current, e.status, texts=texts, problem=sentence(e))
    return see("/pricing/settings", done=message("saved" if body else "same"))


@get("/pricing/pins")
async def pins_page(request: PageRequest, caller: Caller) -> Template:
    return await _pins(request, caller)


async def _pins(
    request: PageRequest,
    caller: Caller,
    _: AsyncSession | None = None,
    problem: errors.Problem | None = None,
) -> Template:
    """Show the pinned cards, and the cards that a member found in order to pin one."""
    page, settings = read_page(request.query_params.dict()), provide_settings(request.app.state)
    pinned = CardFilter(search="is:pinned", status="all")
    async with reading(request) as reads:
        answer = await search_cards(reads, caller, pinned, page, settings.read_seconds)
    find, found = await offered_cards(request, caller, settings)
    return show_part(
        request,
        caller,
        "pricing_pins.html",
        problem=problem,
        cards=[card_body(row) for row in answer.found.cards],
        find=find,
        found=found,
        total=answer.found.total,
        page=page,
        total_pages=page.of(answer.found.total).total_pages,
        **read_form(request).some("number", "price"),
    )


@post_form(
    "/pricing/pins",
    exception_handlers=again(_pins, errors.InvalidRule, errors.InvalidPayload, errors.NotFound),
)
async def pin_card(form: Form, writer: Writer) -> Response[str]:
    """Pin a card or remove its pin, depending on the form's button."""
    marketplace_id = read_id(form["number"])
    if marketplace_id is None:
        raise errors.InvalidPayload("number: must be a card's SKU")
    if form["action"] == "unpin":
        await writes.unpin(writer, marketplace_id)
        return see("/pricing/pins", done=message("pin_removed"))
    pinned = await writes.pin(writer, marketplace_id, {"price": form["price"]})
    return see("/pricing/pins", done=message("pinned", pinned // UNITS_PER_CENT))


ROUTES = [settings_page, save_settings, pins_page, pin_card]

"""The settings' pages: one a section, each with the owner's forms and their answers.

A link or a key that is shown only once is on the page that answers its form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import available_timezones

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.models import SETTINGS
from cardsync.agents.sync import manual_request as sync_request
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.formats import game_name
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import account_form, account_settings, deletion, people
from cardsync.shop.accounts.account_form import LINE, ChangedMeanwhile, Unreadable
from cardsync.shop.accounts.browser_session import cookie_of
from cardsync.shop.accounts.schemas import DeletionBody
from cardsync.shop.operators import own_backups
from cardsync.web.forms import Form, go, sentence
from cardsync.web.reach import reach_of

# The sections' tabs: address, name, and whether an owner alone has it.
TABS: Final = [
    ("/settings/shop", "Shop", True),
    ("/settings/sync", "Sync", True),
    ("/settings/people", "People", True),
    ("/settings/keys", "Keys", True),
    ("/settings/assistants", "Assistants", True),
    ("/account/credits", "Credits", False),
    ("/settings/data", "Data", True),
    ("/settings/webhooks", "Webhooks", True),
    ("/settings/notices", "Notifications", False),
    ("/settings/sign-in", "Sign-in", False),
    ("/settings/appearance", "Appearance", False),
]


@dataclass(frozen=True)
class Input:
    """A field of a section's form. `kind` is text, check, or an input's type."""

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    options: tuple[tuple[str, str], ...] = ()
    group: str = ""


def inputs_of(page: str) -> tuple[Input, ...]:
    """Return the fields of a page's form, as the settings declare them."""
    found = [(place, one) for one in SETTINGS.values() for place in one.places]
    found.sort(key=lambda each: not each[0].first)
    return tuple(
        Input(one.name, place.label, one.kind.input, place.hint, one.kind.options)
        for place, one in found
        if place.page == page
    )


INPUTS: Final = {"shop": inputs_of("shop"), "sync": inputs_of("sync")}
HEADINGS: Final = {"shop": "Shop", "sync": "Sync"}


def _show(
    request: PageRequest, caller: Caller, template: str, status: int = 200, /, **values: Any
) -> Template:
    return show(request, caller, template, status, tabs=tabs_of(caller), **values)


def tabs_of(caller: Caller) -> list[tuple[str, str]]:
    """Return the sections that the caller may open."""
    owner = caller.role == "owner"
    return [(path, name) for path, name, owners in TABS if owner or not owners]


@get("/settings", opt=BY_FORM)
async def settings_page(caller: Caller) -> Response[str]:
    return see("/settings/shop" if caller.role == "owner" else "/settings/appearance")


def _section(
    request: PageRequest,
    caller: Caller,
    section: str,
    current: Mapping[str, str],
    status: int = 200,
    wanted: Mapping[str, str] | None = None,
    **values: Any,
) -> Template:
    inputs = list(INPUTS[section])
    if section == "shop":
        lines = [name for name in current if name.startswith(LINE)]
        line_names = {name: name.removeprefix(LINE) for name in lines}
        inputs += [
            Input(name, game_name(line_names[name]), "check", group="lines") for name in lines
        ]
    given = {"conflicts": [], "problems": {}} | values
    return _show(
        request,
        caller,
        "settings_form.html",
        status,
        section=section,
        section_name=HEADINGS[section],
        inputs=inputs,
        current=current,
        texts={**current, **(wanted or {})},
        labels={each.name: each.label for each in inputs},
        zones=sorted(available_timezones()) if section == "shop" else [],
        **given,
    )


@get(["/settings/shop", "/settings/sync"], opt=BY_FORM)
async def section_page(request: PageRequest, caller: Caller, database: Database) -> Template:
    section = request.url.path.rpartition("/")[2]
    async with database.tenant(caller.seller_id) as session:
        account = await account_settings.account_of(session, caller)
        current = account_form.as_texts(account)
        asked = account.full_history_requested
    return _section(request, caller, section, current, history_asked=asked)


def shown_and_wanted(
    form: Form,
    inputs: Iterable[Input],
    *,
    lines: bool = False,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts that a section's form showed, and those that it brings."""
    shown = {name.removeprefix("was:"): form[name] for name in form if name.startswith("was:")}
    kinds = {each.name: each.kind for each in inputs}
    kinds |= {name: "check" for name in shown if lines and name.startswith(LINE)}
    wanted = {
        name: (form[name] or "false") if kinds[name] == "check" else form[name]
        for name in shown
        if name in kinds
    }
    return shown, wanted


@post_form(["/settings/shop", "/settings/sync"])
async def change_section(
    request: PageRequest,
    caller: Caller,
    form: Form,
    database: Database,
) -> Template | Response[str]:
    section = request.url.path.rpartition("/")[2]
    shown, wanted = shown_and_wanted(form, INPUTS[section], lines=section == "shop")
    try:
        async with database.tenant(caller.seller_id) as session:
            changed = await account_form.change_shown(session, caller, shown, wanted, clock.now())
    except ChangedMeanwhile as e:
        # Fields changed in this tab stay in the form; the others show their present value.
        mine = {name: text for name, text in wanted.items() if text != shown[name]}
        return _section(
            request,
            caller,
            section,
            e.current,
            409,
            mine,
            conflicts=e.conflicts,
            history_asked=True,
            problem="Someone else changed this. Nothing was saved.",
        )
    except Unreadable as e:
        return _section(
            request,
            caller,
            section,
            shown,
            422,
            wanted,
            problems=e.problems,
            history_asked=True,
            problem="Nothing was saved: a field could not be read.",
        )
    return see(f"/settings/{section}", message("saved" if changed else "same"))


@post_form("/settings/sync/history")
async def import_history(
    caller: Caller, session: AsyncSession, settings: Settings
) -> Response[str]:
    await account_settings.account_of(session, caller)
    await sync_request.request_sync(
        session, caller, "orders", clock.now(), settings, full_history=True
    )
    return see("/settings/sync", message("history_asked"))


async def _people(
    request: PageRequest, caller: Caller, database: Database, status: int = 200, **values: Any
) -> Template:
    async with database.tenant(caller.seller_id) as session:
        found = await people.members(session, caller)
    given = {"link": "", "link_for": "", "link_days": 0, "email": "", "role": "staff"} | values
    given["reach"] = reach_of(request.app.state.settings.origin)
    return _show(
        request, caller, "settings_people.html", status, members=found, me=caller.member_id, **given
    )


@get("/settings/people", opt=BY_FORM)
async def people_page(request: PageRequest, caller: Caller, database: Database) -> Template:
    return await _people(request, caller, database)


@post_form("/settings/people")
async def invite(
    request: PageRequest, caller: Caller, form: Form, database: Database, settings: Settings
) -> Template:
    email, role = form["email"], form["role"]
    try:
        async with database.tenant(caller.seller_id) as session:
            made = await people.invite(session, caller, settings, email, role, clock.now())
    except errors.InvalidPayload as e:
        why = sentence(e)
        return await _people(
            request, caller, database, e.status, email=email, role=role, problem=why
        )
    return await _people(
        request,
        caller,
        database,
        link=settings.origin + made.link,
        link_for=email,
        link_days=made.days,
    )


@post_form("/settings/people/{member_id:int}/{what:str}")
async def change_person(
    request: PageRequest,
    caller: Caller,
    form: Form,
    database: Database,
    settings: Settings,
    member_id: int,
    what: str,
) -> Template | Response[str]:
    now = clock.now()
    link = ""
    days = 0
    async with database.tenant(caller.seller_id) as session:
        match what:
            case "role":
                await people.change_role(session, caller, member_id, form["role"], now)
                done = message("role_changed")
            case "sign-out":
                await people.sign_out(session, caller, member_id, now)
                done = message("member_signed_out")
            case "remove":
                await people.remove(session, caller, member_id, now)
                done = message("member_removed")
            case "link":
                made = await people.new_link(session, caller, settings, member_id, now)
                link, days, done = settings.origin + made.link, made.days, ""
            case _:
                raise errors.NotFound("this page does not exist")
    if link:
        return await _people(request, caller, database, link=link, link_days=days)
    return see("/settings/people", done)


async def _data(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    status: int = 200,
    **values: Any,
) -> Template:
    settings: Settings = request.app.state.settings
    return _show(
        request,
        caller,
        "settings_data.html",
        status,
        deletion=struct_of(DeletionBody, await deletion.asked(session, caller)),
        own=await own_backups.shown(session, caller, clock.now(), settings),
        **values,
    )


@get("/settings/data", opt=BY_FORM)
async def data_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    return await _data(request, caller, session)


@post_form("/settings/data/backup")
async def back_up(caller: Caller, session: AsyncSession, settings: Settings) -> Response[str]:
    await own_backups.ask(session, caller, clock.now(), settings)
    return see("/settings/data")


@post_form("/settings/data/delete")
async def delete_account(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Template | Response[str]:
    typed = form["confirm"]
    try:
        await deletion.ask(session, caller, typed, clock.now())
    except errors.InvalidPayload as e:
        return await _data(request, caller, session, e.status, problem=sentence(e))
    return go("/sign-in?signed_out=deletion", cookie_of(settings, ""))


@post_form("/settings/data/keep")
async def keep_account(
    caller: Caller,
    session: AsyncSession,
) -> Response[str]:
    await deletion.restore(session, caller, clock.now())
    return see("/settings/data", message("account_stays"))


@get("/settings/appearance", opt=BY_FORM)
async def appearance_page(request: PageRequest, caller: Caller) -> Template:
    return _show(request, caller, "settings_appearance.html")


ROUTES: Final = [
    settings_page,
    section_page,
    change_section,
    import_history,
    people_page,
    invite,
    change_person,
    data_page,
    back_up,
    delete_account,
    keep_account,
    appearance_page,
]

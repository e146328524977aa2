"""The settings' pages, one for each section, with the owner's forms and their answers.

A link or a key is shown only once, on the page that answers its form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import available_timezones

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import SETTINGS
from cardsync.agents.sync import manual_request as sync_request
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.formats import game_name
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import account_form, account_settings, deletion, people
from cardsync.shop.accounts.account_form import LINE, ChangedMeanwhile, Unreadable
from cardsync.shop.accounts.browser_session import cookie_of
from cardsync.shop.accounts.schemas import DeletionBody
from cardsync.shop.operators import own_backups
from cardsync.web.forms import Form, go, read_form
from cardsync.web.reach import reach_of
from cardsync.web.request import reading

# The tab of each section: its address, its name, and whether only an owner sees it.
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
    """A field of a section's form. `kind` is text, zone, check or select."""

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    options: tuple[tuple[str, str], ...] = ()
    group: str = ""


def inputs_of(section: str, **also: str) -> tuple[Input, ...]:
    """Return the inputs of a section's form. `also` names settings of other sections, with their
    hints in this form.
    """
    found = [one for one in SETTINGS.values() if one.field.section == section or one.name in also]
    found.sort(key=lambda one: one.name in also or not one.field.first)
    return tuple(
        Input(
            one.name,
            one.field.label,
            one.input,
            also.get(one.name, one.field.hint),
            tuple((one.field.options or {}).items()),
        )
        for one in found
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


@get("/settings")
async def settings_page(caller: Caller) -> Response[str]:
    return see("/settings/shop" if caller.role == "owner" else "/settings/appearance")


def _section(
    request: PageRequest,
    caller: Caller,
    section: str,
    current: Mapping[str, str],
    status: int = 200,
    wanted: Mapping[str, str] | None = None,
    **values: object,
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


@get(["/settings/shop", "/settings/sync"])
async def section_page(request: PageRequest, caller: Caller) -> Template:
    section = request.url.path.rpartition("/")[2]
    async with reading(request) as reads:
        account = await account_settings.account_of(reads, caller)
    current = account_form.as_texts(account)
    asked = account.full_history_requested
    return _section(request, caller, section, current, history_asked=asked)


def shown_and_wanted(
    form: Form,
    inputs: Iterable[Input],
    *,
    lines: bool = False,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values that the section's form showed, and the submitted values."""
    shown = {name.removeprefix("was:"): form[name] for name in form if name.startswith("was:")}
    kinds = {each.name: each.kind for each in inputs}
    kinds |= {name: "check" for name in shown if lines and name.startswith(LINE)}
    wanted = {
        name: (form[name] or "false") if kinds[name] == "check" else form[name]
        for name in shown
        if name in kinds
    }
    return shown, wanted


def refused_settings(
    refusal: ChangedMeanwhile | Unreadable, shown: dict[str, str], wanted: dict[str, str]
) -> tuple[Mapping[str, str], dict[str, str], int, dict[str, object]]:
    """Return four values: the present settings, the typed values that stay in the form, the status,
    and the page's further values. A field that this member changed keeps the typed value; any other
    field shows its present value. Pure.
    """
    if isinstance(refusal, Unreadable):
        why = "Nothing was saved: a field could not be read."
        return shown, wanted, 422, {"problems": refusal.problems, "problem": why}
    mine = {name: text for name, text in wanted.items() if text != shown[name]}
    why = "Someone else changed this. Nothing was saved."
    return refusal.current, mine, 409, {"conflicts": refusal.conflicts, "problem": why}


def _form_of(request: PageRequest) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return a form's section, the values that the form showed, and the submitted values."""
    section = request.url.path.rpartition("/")[2]
    lines = section == "shop"
    return section, *shown_and_wanted(read_form(request), INPUTS[section], lines=lines)


async def _not_saved(
    request: PageRequest, caller: Caller, _: AsyncSession, e: ChangedMeanwhile | Unreadable
) -> Template:
    section, shown, wanted = _form_of(request)
    current, typed, status, values = refused_settings(e, shown, wanted)
    return _section(request, caller, section, current, status, typed, history_asked=True, **values)


@post_form(
    ["/settings/shop", "/settings/sync"],
    exception_handlers=again(_not_saved, ChangedMeanwhile, Unreadable),
)
async def change_section(
    request: PageRequest, caller: Caller, session: AsyncSession
) -> Response[str]:
    section, shown, wanted = _form_of(request)
    changed = await account_form.change_shown(session, caller, shown, wanted, clock.now())
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
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
    **values: object,
) -> Template:
    found = await people.members(source, caller)
    given = {"link": "", "link_for": "", "link_days": 0, "email": "", "role": "staff"} | values
    if problem:
        given |= read_form(request).some("email", "role")
    given["reach"] = reach_of(request.app.state.settings.origin)
    me = caller.member_id
    return _show(
        request, caller, "settings_people.html", members=found, me=me, problem=problem, **given
    )


@get("/settings/people")
async def people_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _people(request, caller, reads)


@post_form("/settings/people", exception_handlers=again(_people, errors.InvalidPayload))
async def invite(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Template:
    email = form["email"]
    made = await people.invite(session, caller, settings, email, form["role"], clock.now())
    return await _people(
        request,
        caller,
        session,
        link=settings.origin + made.link,
        link_for=email,
        link_days=made.days,
    )


@post_form("/settings/people/{member_id:int}/{what:str}")
async def change_person(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
    settings: Settings,
    member_id: int,
    what: str,
) -> Template | Response[str]:
    now = clock.now()
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
            link = settings.origin + made.link
            return await _people(request, caller, session, link=link, link_days=made.days)
        case _:
            raise errors.NotFound("this page does not exist")
    return see("/settings/people", done)


async def _data(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    settings: Settings = request.app.state.settings
    asked, own = await each_of(
        source,
        deletion.asked(source, caller),
        own_backups.shown(source, caller, clock.now(), settings),
    )
    return _show(
        request,
        caller,
        "settings_data.html",
        problem=problem,
        deletion=struct_of(DeletionBody, asked),
        own=own,
    )


@get("/settings/data")
async def data_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _data(request, caller, reads)


@post_form("/settings/data/backup")
async def back_up(caller: Caller, session: AsyncSession, settings: Settings) -> Response[str]:
    await own_backups.ask(session, caller, clock.now(), settings)
    return see("/settings/data")


@post_form("/settings/data/delete", exception_handlers=again(_data, errors.InvalidPayload))
async def delete_account(
    caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Response[str]:
    await deletion.ask(session, caller, form["confirm"], clock.now())
    return go("/sign-in?signed_out=deletion", cookie_of(settings, ""))


@post_form("/settings/data/keep")
async def keep_account(
    caller: Caller,
    session: AsyncSession,
) -> Response[str]:
    await deletion.restore(session, caller, clock.now())
    return see("/settings/data", message("account_stays"))


@get("/settings/appearance")
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

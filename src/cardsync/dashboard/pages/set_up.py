"""The first run: the page that makes the first seller, while there is none; then the owner's steps:
a pricing export and its result, the presets on the shop's own cards, and the price file or the
agent. Each step has an address of its own, so that the owner can leave and return.

Only the set-up link makes the first seller, on this machine as on any other: a request that a proxy
passed on may look as if it came from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from litestar import Response, get, post
from litestar.datastructures import UploadFile
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.accounts import first_run, own_keys
from cardsync.accounts.browser_session import cookie_of
from cardsync.accounts.first_run import NewOwner
from cardsync.cards.card_filter import CardFilter, CardPage
from cardsync.cards.queries import find_cards
from cardsync.cards.shown import Found
from cardsync.dashboard.agent_commands import shells
from cardsync.dashboard.form_handlers import Form, post_form, read_file
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages import set_up_restore
from cardsync.dashboard.pages.pricing import CAPS, MEANT
from cardsync.dashboard.pages.set_up_restore import must_be_open
from cardsync.dashboard.pages.sync import price_file_now
from cardsync.dashboard.shell import PageRequest, see, sentence, show
from cardsync.database.seller_slots import Work
from cardsync.database.session import Database
from cardsync.inventory import accept_inventory
from cardsync.inventory.upload_report import report_on
from cardsync.operations import offered_backups
from cardsync.operators import catalog_installs
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.pricing.files.changes_in_file import ChangesInFile
from cardsync.pricing.preview.asked import compared_presets
from cardsync.pricing.runs.run_reads import newest_runs
from cardsync.seller_state.state import lease_is_live
from cardsync.settings import Settings
from cardsync.storage import Store
from cardsync.sync.last_seen import LastSeen
from cardsync.web.forms import form_of, go
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.pages import page
from cardsync.web.reach import reach_of
from cardsync.web.request import ApiRequest

_FIELDS: Final = ("store_name", "name", "email")
# The form's other fields are around the file.
UPLOAD_BYTES: Final = limits.PRESIGNED_PLAIN_BYTES + 100_000
_CHUNK: Final = 1 << 18
# The page shows at most this many of the largest price changes.
_CHANGES: Final = 10


class FirstLook(NamedTuple):
    """The shop in one line, how many of its prices a cap limits, and what its price file changes;
    `reasons` say why that is nothing.
    """

    cards: int
    in_stock: int
    listed: Decimal | None
    limited: int
    file: ChangesInFile | None
    reasons: list[str]


@get("/set-up")
async def set_up_page(request: ApiRequest, database: Database, settings: Settings) -> Template:
    token = str(request.query_params.get("token", ""))
    await must_be_open(database, settings, token)
    return await _page(settings, token=token)


@post("/set-up")
async def set_up(request: ApiRequest, database: Database, settings: Settings) -> Response[Any]:
    form = await form_of(request)
    token = form.get("token", "")
    await must_be_open(database, settings, token)
    given = {name: form.get(name, "") for name in _FIELDS}
    try:
        owner = NewOwner(**given, password=form.get("password", ""))
        who = await first_run.set_up(database, settings, owner)
    except errors.InvalidPayload as e:
        return await _page(settings, e.status, token=token, problem=sentence(e), **given)
    return go("/set-up/prices", cookie_of(settings, who.token))


async def _page(settings: Settings, status: int = 200, **values: str) -> Template:
    given: dict[str, Any] = dict.fromkeys((*_FIELDS, "token", "problem"), "") | values
    given["least"], given["most"] = limits.PASSWORD_CHARACTERS, limits.PASSWORD_CHARACTERS_MOST
    found, problem = await asyncio.to_thread(offered_backups.offered, settings)
    given["backups"], given["bucket_problem"] = found, problem
    return page("set_up.html", status, **given)


@get("/set-up/prices", opt=BY_FORM)
async def prices_page(request: PageRequest, caller: Caller) -> Template:
    caller.must_be_owner()
    return show(request, caller, "set_up_prices.html")


@post("/set-up/prices", opt=BY_FORM, request_max_body_size=UPLOAD_BYTES)
async def upload_prices(
    request: PageRequest, caller: Caller, database: Database, store: Store, settings: Settings
) -> Template | Response[str]:
    caller.must_be_owner()
    file = await read_file(request)
    try:
        if file is None:
            raise errors.InvalidCsv("choose your pricing export file first")
        arrived = accept_inventory.arrival(caller, None, None, None, clock.now())
        upload_id = await accept_inventory.accept_bytes(
            database,
            caller,
            store,
            settings,
            _parts(file),
            "",
            arrived,
            limits.PRESIGNED_PLAIN_BYTES,
        )
    except (errors.InvalidCsv, errors.PayloadTooLarge, errors.DecompressedTooLarge) as e:
        problem = sentence(e)
        return show(request, caller, "set_up_prices.html", e.status, problem=problem)
    return see(f"/set-up/uploads/{upload_id}")


async def _parts(file: UploadFile) -> AsyncIterator[bytes]:
    while part := await file.read(_CHUNK):
        yield part


@get("/set-up/uploads/{upload_id:int}", opt=BY_FORM)
async def upload_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    database: Database,
    settings: Settings,
    heavy: HeavyWork,
    upload_id: int,
) -> Template:
    now = clock.now()
    upload = await accept_inventory.watched(session, caller, upload_id, now)
    report = await report_on(session, caller, upload, now)
    is_read = report.finished_at is not None and report.error is None
    state = caller.state
    return show(
        request,
        caller,
        "set_up_report.html",
        report=report,
        progress=(state.work_done, state.work_total)
        if lease_is_live(state, now) and state.work_total
        else None,
        look=await _look(database, caller, settings, heavy)
        if is_read and caller.role == "owner"
        else None,
        no_catalog=await catalog_installs.without_catalog(session, caller, now, settings)
        if is_read
        else None,
    )


async def _look(
    database: Database, caller: Caller, settings: Settings, heavy: HeavyWork
) -> FirstLook:
    every = await _found(database, caller, settings, CardFilter(status="all"))
    stock = await _found(database, caller, settings, CardFilter())
    limited = await _found(database, caller, settings, CardFilter(search="is:capped"))
    file = await price_file_now(heavy, caller, _CHANGES)
    return FirstLook(every.total, stock.total, stock.worth, limited.total, *file)


async def _found(
    database: Database, caller: Caller, settings: Settings, wanted: CardFilter
) -> Found:
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        return await find_cards(reading, caller, wanted, CardPage(per_page=1), worth=True)


@get("/set-up/presets", opt=BY_FORM)
async def presets_page(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Template:
    return await _presets(request, caller, heavy)


async def _presets(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
    status: int = 200,
    **values: Any,
) -> Template:
    found = await heavy.read(compared_presets, caller, Work.PRICES_ALL, clock.now())
    return show(
        request,
        caller,
        "set_up_presets.html",
        status,
        presets=found,
        meant=MEANT,
        caps=CAPS,
        **values,
    )


@post_form("/set-up/presets")
async def choose_preset(
    request: PageRequest,
    caller: Caller,
    form: Form,
    database: Database,
    settings: Settings,
    heavy: HeavyWork,
) -> Template | Response[str]:
    preset = form["preset"]
    try:
        async with database.bounded(caller.seller_id, settings.read_seconds) as session:
            # The page shows what each preset does to the member's own cards.
            writer = Writer(session, caller, settings, clock.now(), confirmed=True)
            await writes.apply_preset(writer, preset)
            await writes.reprice(writer)
    except errors.MutexHeld as e:
        why = sentence(e)
        return await _presets(request, caller, heavy, e.status, problem=why)
    return see("/set-up/agent", message("preset_of_set_up"))


@get("/set-up/agent", opt=BY_FORM)
async def agent_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    database: Database,
    settings: Settings,
) -> Template:
    return await _agent(request, caller, session, database, settings)


async def _agent(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    database: Database,
    settings: Settings,
    status: int = 200,
    **values: Any,
) -> Template:
    caller.must_be_owner()
    seen: LastSeen = request.app.state.last_seen
    heavy: HeavyWork = request.app.state.heavy
    runs = await newest_runs(session, caller)
    found = await own_keys.listed(session, caller, clock.now())
    given = {"made": "", "name": ""} | values
    runs_on = bool(runs) and runs[0].state == "running"
    return show(
        request,
        caller,
        "set_up_agent.html",
        status,
        runs=runs_on,
        look=None if runs_on else await _look(database, caller, settings, heavy),
        seen=await seen.at(session, caller),
        why_none=found.why_none,
        keys=found.keys,
        origin=settings.origin,
        reach=reach_of(settings.origin),
        shells=shells(settings.origin, given["made"]) if given["made"] else [],
        system=_system(request.headers.get("user-agent", "")),
        review=caller.account.sync_mode == "read_only",
        **given,
    )


def _system(user_agent: str) -> str:
    """Return the key of the shell that the browser's computer most likely has."""
    if "Windows" in user_agent:
        return "powershell"
    return "linux" if "Linux" in user_agent and "Android" not in user_agent else "macos"


@post_form("/set-up/agent")
async def make_key(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
    database: Database,
    settings: Settings,
) -> Template:
    name = form["name"]
    try:
        minted = await own_keys.mint(session, caller, name, clock.now())
    except (errors.AccountEnding, errors.InvalidPayload) as e:
        why = sentence(e)
        return await _agent(
            request, caller, session, database, settings, e.status, name=name, problem=why
        )
    return await _agent(request, caller, session, database, settings, made=minted.api_key)


STRANGERS: Final = [
    set_up_page,
    set_up,
    set_up_restore.restore_page,
    set_up_restore.ask_for_restore,
]
ROUTES: Final = [
    prices_page,
    upload_prices,
    upload_page,
    presets_page,
    choose_preset,
    agent_page,
    make_key,
]

"""The first run. A page creates the first seller; then the owner uploads a pricing export and sees
its result, chooses a preset by its effect on the shop's own cards, and sends prices by the price
file or the agent. Each step has its own address, so that the owner can leave and return.

Only the set-up link may create the first seller, even from this computer, because a request that a
proxy forwards may appear to be local.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from litestar import Response, get
from litestar.datastructures import UploadFile
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.agents.releases.own_sync_app import address
from cardsync.agents.seller_state.state import lease_is_live
from cardsync.agents.sync.last_seen import LastSeen
from cardsync.dashboard.agent_commands import shells
from cardsync.dashboard.form_handlers import owners, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages import set_up_restore
from cardsync.dashboard.pages.pricing import CAPS, MEANT, compared
from cardsync.dashboard.pages.set_up_restore import must_be_open
from cardsync.dashboard.pages.sync import words_of
from cardsync.dashboard.shell import PageRequest, TemplateValues, see, show
from cardsync.imports import accept_inventory, correct_rows
from cardsync.imports.upload_report import Report, report_on
from cardsync.operations import offered_backups
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.prices.files.changes_in_file import sums_of_file
from cardsync.prices.files.file_now import reasons_of
from cardsync.prices.files.kept_file import Sums
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.preview.presets import Compared
from cardsync.prices.runs.run_reads import newest_runs
from cardsync.shop.accounts import first_run, own_keys
from cardsync.shop.accounts.browser_session import cookie_of
from cardsync.shop.accounts.first_run import NewOwner
from cardsync.shop.accounts.schemas import KeysBody
from cardsync.shop.operators import catalog_installs
from cardsync.shop.operators.catalog_installs import NoCatalog
from cardsync.shop.today.listed_value import read_listed_value
from cardsync.shop.today.schemas import ListedDay
from cardsync.stock.cards.card_filter import CardFilter
from cardsync.stock.cards.queries import count_cards
from cardsync.web.forms import Form, go, public_form, sentence
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.pages import page
from cardsync.web.reach import reach_of
from cardsync.web.request import AnyResponse, ApiRequest, opened, reading

_FIELDS: Final = ("store_name", "name", "email")
# The form has other fields and boundaries around the file.
UPLOAD_BYTES: Final = limits.PRESIGNED_PLAIN_BYTES + 100_000
_CHUNK: Final = 1 << 18


class FirstLook(NamedTuple):
    """The shop after its first import. `listed` is the day's count of copies and their market
    value, once it includes all cards; `reasons` explain why the price file is empty.
    """

    cards: int
    in_stock: int
    worth: Decimal | None
    listed: ListedDay | None
    limited: int
    file: Sums | None
    reasons: list[str]


@get("/set-up")
async def set_up_page(request: ApiRequest, database: Database, settings: Settings) -> Template:
    token = str(request.query_params.get("token", ""))
    await must_be_open(database, settings, token)
    return await _page(settings, token=token)


@public_form("/set-up")
async def set_up(form: Form, database: Database, settings: Settings) -> AnyResponse:
    token = form["token"]
    await must_be_open(database, settings, token)
    given = {name: form[name] for name in _FIELDS}
    try:
        owner = NewOwner(**given, password=form.password())
        who = await first_run.set_up(database, settings, owner)
    except errors.InvalidPayload as e:
        return await _page(settings, e.status, token=token, problem=sentence(e), **given)
    return go("/set-up/prices", cookie_of(settings, who.token))


async def _page(settings: Settings, status: int = 200, **values: str) -> Template:
    given: TemplateValues = dict.fromkeys((*_FIELDS, "token", "problem"), "") | values
    given["least"], given["most"] = limits.PASSWORD_CHARACTERS, limits.PASSWORD_CHARACTERS_MOST
    found, problem = await asyncio.to_thread(offered_backups.offered, settings)
    given["backups"], given["bucket_problem"] = found, problem
    return page("set_up.html", status, **given)


@post_form("/set-up/prices", guards=[owners], request_max_body_size=UPLOAD_BYTES)
async def upload_prices(
    request: PageRequest,
    caller: Caller,
    form: Form,
    database: Database,
    store: Store,
    settings: Settings,
    heavy: HeavyWork,
) -> Template | Response[str]:
    try:
        if form.file is None:
            raise errors.InvalidCsv("choose your pricing export file first")
        arrived = accept_inventory.arrival(caller, None, None, None, clock.now())
        upload_id = await accept_inventory.accept_bytes(
            database,
            caller,
            store,
            settings,
            _parts(form.file),
            "",
            arrived,
            limits.PRESIGNED_PLAIN_BYTES,
        )
    except (errors.InvalidCsv, errors.PayloadTooLarge, errors.DecompressedTooLarge) as e:
        why = sentence(e)
        return await _steps(request, caller, settings, heavy, e.status, problem=why)
    return see(f"/set-up/uploads/{upload_id}")


async def _parts(file: UploadFile) -> AsyncIterator[bytes]:
    while part := await file.read(_CHUNK):
        yield part


@get(
    ["/set-up/prices", "/set-up/uploads/{upload_id:int}", "/set-up/presets", "/set-up/agent"],
)
async def steps_page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    heavy: HeavyWork,
) -> Template:
    """Show all steps on one page; with `only=agent`, only whether the agent has connected."""
    if request.query_params.get("only") == "agent":
        caller.must_be_owner()
        seen: LastSeen = request.app.state.last_seen
        async with opened(request, long=True) as session:
            return show(request, caller, "set_up_agent.html", seen=await seen.at(session, caller))
    return await _steps(request, caller, settings, heavy)


class _Read(NamedTuple):
    """The values of the page that one database session reads."""

    report: Report | None
    runs: bool
    no_catalog: NoCatalog | None
    seen: datetime | None
    keys: KeysBody | None
    progress: tuple[int, int] | None


async def _steps(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    heavy: HeavyWork,
    status: int = 200,
    **values: Any,
) -> Template:
    upload_id = request.path_params.get("upload_id")
    owner = caller.role == "owner"
    if upload_id is None:
        caller.must_be_owner()
    async with reading(request) as reads:
        read = await _read(request, reads, caller, settings, upload_id)
    report = read.report
    waits = report is not None and report.finished_at is None and report.error is None
    look: FirstLook | None = None
    presets = Compared([], 1)
    if owner and not waits and not read.runs:
        found, figures = await asyncio.gather(
            _look(request, caller, heavy), compared(request, caller, heavy)
        )
        look, presets = found, figures if found.cards else presets
    given = {"made": "", "name": ""} | values
    return show(
        request,
        caller,
        "set_up_steps.html",
        status,
        **read._asdict(),
        waits=waits,
        look=look,
        **presets._asdict(),
        meant=MEANT,
        caps=CAPS,
        origin=settings.origin,
        reach=reach_of(settings.origin),
        shells=shells(settings.origin, address(settings.origin), given["made"])
        if given["made"]
        else [],
        system=_system(request.headers.get("user-agent", "")),
        review=caller.account.sync_mode == "read_only",
        **given,
    )


async def _read(
    request: PageRequest,
    reads: Reading,
    caller: Caller,
    settings: Settings,
    upload_id: int | None,
) -> _Read:
    """Return the page's values, with the report of the address's upload, or of the newest pricing
    export if the address names none. Raises NotFound.
    """
    now, state = clock.now(), caller.state
    working = lease_is_live(state, now) and state.work_total
    progress = (state.work_done, state.work_total) if working else None
    if caller.role != "owner":
        report = await _report(reads, caller, upload_id, now)
        return _Read(report, False, None, None, None, progress)
    seen: LastSeen = request.app.state.last_seen
    (report, runs), no_catalog, seen_at, keys = await at_once(
        at_once(_report(reads, caller, upload_id, now), newest_runs(reads, caller)),
        catalog_installs.without_catalog(reads, caller, now, settings),
        seen.at(reads, caller),
        own_keys.listed(reads, caller, now),
    )
    is_running = bool(runs) and runs[0].state == "running"
    return _Read(report, is_running, no_catalog, seen_at, keys, progress)


async def _report(
    reads: Reading, caller: Caller, upload_id: int | None, now: datetime
) -> Report | None:
    if upload_id is None:
        newest = await correct_rows.page_of_uploads(
            reads, caller, Paging(1, limits.UPLOADS_PER_PAGE)
        )
        upload = next((one for one in newest.rows if one.stream == "inventory"), None)
    else:
        caller.must_be_owner()
        upload = await accept_inventory.upload_of(reads, caller.seller_id, upload_id)
    return await report_on(reads, caller, upload, now) if upload else None


async def _look(request: PageRequest, caller: Caller, heavy: HeavyWork) -> FirstLook:
    now = clock.now()
    async with reading(request) as reads:
        counts, value, (file, known) = await at_once(
            at_once(
                count_cards(reads, caller, CardFilter(status="all")),
                count_cards(reads, caller, CardFilter(), worth=True),
                count_cards(reads, caller, CardFilter(search="is:capped")),
            ),
            read_listed_value(reads, caller, 1, now),
            sums_of_file(reads, caller, now),
        )
    (cards, _), (in_stock, worth), (limited, _) = counts
    # The listed value is computed a moment after an import, so the day's figure may be old.
    listed = next((day for day in value.days if day.cards == in_stock), None)
    reasons = words_of(await reasons_of(heavy, caller, now, known))
    return FirstLook(cards, in_stock, worth, listed, limited, file if file.total else None, reasons)


@post_form("/set-up/presets")
async def choose_preset(
    request: PageRequest,
    caller: Caller,
    form: Form,
    settings: Settings,
    heavy: HeavyWork,
) -> Template | Response[str]:
    preset = form["preset"]
    try:
        async with opened(request, long=True) as session:
            # The writer is confirmed, because the page showed each preset's effect on the shop's
            # own cards.
            writer = Writer(session, caller, settings, clock.now(), confirmed=True)
            await writes.apply_preset(writer, preset)
            await writes.reprice(writer)
    except errors.MutexHeld as e:
        why = sentence(e)
        return await _steps(request, caller, settings, heavy, e.status, problem=why)
    return see("/set-up/agent", message("preset_of_set_up"))


def _system(user_agent: str) -> str:
    """Return the key of the shell for the browser's operating system, as its User-Agent
    names it.
    """
    if "Windows" in user_agent:
        return "powershell"
    return "linux" if "Linux" in user_agent and "Android" not in user_agent else "macos"


@post_form("/set-up/agent")
async def make_key(
    request: PageRequest,
    caller: Caller,
    form: Form,
    settings: Settings,
    heavy: HeavyWork,
) -> Template:
    name = form["name"]
    try:
        async with opened(request, long=True) as session:
            minted = await own_keys.mint(session, caller, name, clock.now())
    except (errors.AccountEnding, errors.InvalidPayload) as e:
        shown: dict[str, object] = {"name": name, "problem": sentence(e)}
        return await _steps(request, caller, settings, heavy, e.status, **shown)
    return await _steps(request, caller, settings, heavy, made=minted.api_key)


STRANGERS: Final = [
    set_up_page,
    set_up,
    set_up_restore.restore_page,
    set_up_restore.ask_for_restore,
]
ROUTES: Final = [
    steps_page,
    upload_prices,
    choose_preset,
    make_key,
]

"""The page Sync. It shows the state of the sync, with the forms that request a sync, cancel it or
skip the wait; the agent and its tasks; and the price file with its one-time approval.

Other pages may include `sync_steering.html` with the values of `steering`; `back` is the page to
which its forms return.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final, get_args

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import SYNC_REQUEST
from cardsync.agents.agentwork import tasks
from cardsync.agents.agentwork.models import Status
from cardsync.agents.agentwork.task_list import page_of_tasks
from cardsync.agents.releases.offer import Installation
from cardsync.agents.releases.update import update_fields
from cardsync.agents.seller_state.sync_kinds import KINDS, read_kind
from cardsync.agents.sync import cancel, cooldown, past_cycles
from cardsync.agents.sync import manual_request as requests
from cardsync.agents.sync.cycles_schemas import cycle_body
from cardsync.agents.sync.last_seen import LastSeen, is_offline
from cardsync.agents.sync.poll import next_sync_at
from cardsync.agents.sync.schemas import status_body
from cardsync.agents.sync.status import status_of
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.formats import Reader
from cardsync.dashboard.frame import PART
from cardsync.dashboard.messages import message, sentences, together
from cardsync.dashboard.shell import (
    HEADERS,
    PageRequest,
    TemplateValues,
    paging_of,
    reader_of,
    see,
    show,
)
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.prices.files import price_updates
from cardsync.prices.files.changes_in_file import page_of_file, sums_of_file
from cardsync.prices.files.file_now import fresh_file, reasons_of
from cardsync.prices.rollback import rollbacks
from cardsync.prices.rollback.schemas import rollback_body
from cardsync.shop.accounts import account_settings
from cardsync.shop.credits import skip_wait
from cardsync.shop.today.sync_result import price_files
from cardsync.stock.quick_add import settle
from cardsync.web import as_csv
from cardsync.web.forms import Form
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import reading

TASK_STATUSES: Final[tuple[Status, ...]] = get_args(Status)
TASKS_SHOWN: Final = 20
CYCLES_SHOWN: Final = 5
FILES_SHOWN: Final = 5
KIND_NAMES: Final = {"full": "Everything", "pricing": "Inventory and prices"}
ROWS_SHOWN: Final = 50
ASKED: Final = (
    ("refresh_orders", "Fetch new orders"),
    ("backfill_orders", "Fetch orders from all years"),
    ("refresh_account", "Refresh the account"),
)
TASK_NAMES: Final = dict(ASKED) | {
    "backfill_sales_report": "Fetch a monthly sales report",
    "apply_price_updates": "Send prices to TCGplayer",
    "apply_rollback": "Send rollback prices to TCGplayer",
    "quick_add_listing": "List the added cards",
}
# The reasons for an empty price file, in words for members.
EMPTY: Final = {
    "no_updates": "No price changes right now.",
    "not_entitled": "Your plan doesn't include sending prices.",
    "consent_missing": "Turn on “Send prices to TCGplayer” in Settings, Sync.",
    "past_due": "A payment is due. Prices are sent again once it's paid.",
    "apply_in_progress": "The sync app is sending prices to TCGplayer right now.",
    "automatic_pricing_paused": "Sending prices is paused in Settings, Sync.",
    "awaiting_review": "A pricing run needs your review first.",
    "rollback_preparing": "A rollback is being prepared.",
    "drafts_only": "Only draft rules would change a price.",
}
BACK: Final = ("/sync", "/today")


def start_code(seen_at: datetime | None, now: datetime, *, in_progress: bool) -> str:
    """Return the code of the message that says when a requested or due sync starts. Pure."""
    if in_progress:
        return "start_after"
    if seen_at is None:
        return "start_without_agent"
    return "start_offline" if is_offline(seen_at, now) else "start_soon"


def start_of(reader: Reader, seen_at: datetime | None, *, in_progress: bool) -> str:
    """Return the message of `start_code` as a sentence. If the agent is offline, the sentence has
    the time since when. Pure.
    """
    code = start_code(seen_at, reader.now, in_progress=in_progress)
    if code == "start_offline" and seen_at is not None:
        since = f"since {reader.exact(seen_at)} ({reader.ago(seen_at)})"
        return f"The sync app is offline {since}; the sync starts once it is back."
    return sentences(message(code))


PHASES = {
    "idle": "Up to date",
    "requested": "Sync requested",
    "collecting": "Fetching from TCGplayer",
    "queued": "Upload received",
    "importing": "Importing cards",
    "repricing": "Pricing cards",
    "awaiting_review": "Needs review",
    "push_queued": "New prices are ready",
    "pushing": "Sending prices",
    "cancelling": "Canceling",
}


def phase_words(phase: str) -> str:
    """Return the phase of the sync in words."""
    return PHASES.get(phase) or phase.replace("_", " ").capitalize()


async def steering(
    request: PageRequest, caller: Caller, reads: Reading, settings: Settings, back: str
) -> TemplateValues:
    """Return the values that `sync_steering.html` shows."""
    now = clock.now()
    seen: LastSeen = request.app.state.last_seen
    seen_at, current, is_at_agent = await at_once(
        seen.at(reads, caller),
        status_of(reads, caller, price_updates.run_waits, now, settings),
        cancel.is_at_agent(reads, caller.seller_id, now),
    )
    span = timedelta(seconds=settings.sync_cooldown_seconds)
    remaining = cooldown.remaining_seconds(caller.state.last_pricing_at, span, now)
    binds = cooldown.meets(
        remaining,
        metering=caller.account.credits_metering_enabled,
        paid=caller.entitlements(now).paid,
    )
    at_agent = not current.in_progress and is_at_agent
    return {
        "status": status_body(current, caller.state.last_sync_at, seen_at),
        "phase": phase_words(current.phase),
        "can_cancel": caller.role == "owner" and (current.in_progress or at_agent),
        "kinds": [(kind, KIND_NAMES.get(kind) or kind.capitalize()) for kind in KINDS],
        "kind_names": {kind: KIND_NAMES.get(kind) or kind.capitalize() for kind in KINDS},
        "requested_kind": caller.state.requested_kind,
        "offline": is_offline(seen_at, now) and not current.in_progress,
        "start": start_of(
            reader_of(request, caller),
            seen_at,
            in_progress=current.in_progress,
        ),
        "cooldown_binds": binds,
        "cooldown_until": clock.rfc3339(now + timedelta(seconds=remaining)),
        "credit_balance": caller.account.credit_balance,
        "skip_key": secrets.token_urlsafe(24),
        "back": back,
    }


@get("/sync")
async def sync_page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
) -> Template:
    now = clock.now()
    asked_for = request.query_params.get("tasks", "")
    wanted: Status | None = next((name for name in TASK_STATUSES if name == asked_for), None)
    async with reading(request) as reads:
        steered, agent, values, unanswered = await at_once(
            steering(request, caller, reads, settings, "/sync"),
            _agent(request, caller, reads, settings),
            _of_owner(reads, caller, wanted, now),
            settle.pending(reads, caller, now),
        )
    return show(
        request,
        caller,
        "sync.html",
        **steered,
        **agent,
        **values,
        task_status=wanted or "",
        task_statuses=[("", "All"), *((name, name.title()) for name in TASK_STATUSES)],
        task_names=TASK_NAMES,
        asked=ASKED,
        allowed=caller.entitlements(now),
        next_at=next_sync_at(caller, now, settings),
        interval=caller.account.sync_interval_minutes or settings.sync_interval_minutes,
        account=caller.account,
        unanswered=len(unanswered),
    )


async def _of_owner(
    reads: Reading, caller: Caller, status: Status | None, now: datetime
) -> TemplateValues:
    """Return the values that only an owner sees."""
    if caller.role != "owner":
        return {"shown_tasks": None, "open_rollbacks": [], "cycles": [], "files": []}
    newest, cycles, tasks, files = await at_once(
        rollbacks.newest(reads, caller),
        past_cycles.newest_cycles(reads, caller, CYCLES_SHOWN),
        page_of_tasks(reads, caller, status, None, Paging(1, TASKS_SHOWN), now),
        price_files(reads, caller, FILES_SHOWN),
    )
    bodies = [rollback_body(row, [], now) for row in newest]
    return {
        "cycles": [cycle_body(row, []) for row in cycles],
        "shown_tasks": tasks,
        "open_rollbacks": [row for row in bodies if row.state in rollbacks.OPEN],
        "files": files,
    }


async def _agent(
    request: PageRequest, caller: Caller, reads: Reading, settings: Settings
) -> TemplateValues:
    """Return the agent as it last reported itself, and the newer release that it may install."""
    seen: LastSeen = request.app.state.last_seen
    agent = await seen.agent(reads, caller)
    if agent is None or agent.version is None:
        return {"agent": agent, "update": {"update_available": False}}
    asks = Installation(str(caller.seller_id), agent.version, agent.platform)
    origin = settings.origin_for(request.headers.get("host"))
    known = request.app.state.releases
    return {"agent": agent, "update": update_fields(known, "agent", asks, clock.now(), origin)}


def _back(form: Form) -> str:
    return form["back"] if form["back"] in BACK else BACK[0]


@post_form("/sync/request", opt=SYNC_REQUEST)
async def request_sync(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Response[str]:
    kind = read_kind(form["kind"] or "full")
    await requests.request_sync(session, caller, kind, clock.now(), settings)
    start = await _start(request, caller, session, settings)
    return see(_back(form), together(message(f"sync_requested_{kind}"), message(start)))


async def _start(
    request: PageRequest, caller: Caller, session: AsyncSession, settings: Settings
) -> str:
    seen: LastSeen = request.app.state.last_seen
    current = await status_of(session, caller, price_updates.run_waits, clock.now(), settings)
    seen_at = await seen.at(session, caller)
    return start_code(seen_at, clock.now(), in_progress=current.in_progress)


@post_form("/sync/cancel")
async def cancel_sync(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    status = await cancel.cancel_sync(session, caller, clock.now())
    over = status == "cancelled"
    return see(_back(form), message("sync_cancelled" if over else "sync_cancelling"))


@post_form("/sync/skip-wait", opt=SYNC_REQUEST)
async def skip_the_wait(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Response[str]:
    key = form["key"]
    skip_wait.check_key(key, "key")
    skipped = await skip_wait.skip_wait(session, caller, key, clock.now(), settings)
    start = await _start(request, caller, session, settings)
    shown_sync = {
        "charged": together(message("skip_charged", skipped.balance or 0), message(start)),
        "replayed": together(message("skip_replayed"), message(start)),
        "no_charge_needed": message("skip_no_charge_needed"),
        "sync_in_flight": message("skip_sync_in_flight"),
    }
    return see(_back(form), shown_sync[skipped.status])


@post_form("/sync/tasks")
async def request_task(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    kind = form["kind"]
    if kind not in dict(ASKED):
        raise errors.InvalidPayload(f"kind: must be {', '.join(dict(ASKED))}")
    _, made = await tasks.request_task(session, caller, kind, clock.now())
    return see("/sync", message("task_made" if made else "task_waits"))


@get("/sync/prices")
async def prices_page(request: PageRequest, caller: Caller, heavy: HeavyWork) -> Template:
    caller.must_be_owner()
    page, now = paging_of(request, ROWS_SHOWN), clock.now()
    counted = request.query_params.get("count") == "all"
    seen: LastSeen = request.app.state.last_seen
    async with reading(request) as reads:
        found, seen_at = await at_once(
            page_of_file(reads, caller, page, now, counted=counted), seen.at(reads, caller)
        )
    total = found.sums.total if found.sums else page.offset + page.per_page
    return show(
        request,
        caller,
        "sync_prices.html",
        **found._asdict(),
        reasons=words_of(await reasons_of(heavy, caller, now, found.why_empty)),
        page=page,
        total=total,
        total_pages=page.of(total).total_pages,
        seen=seen_at,
        allowed=caller.entitlements(now),
    )


@get("/sync/prices/count", opt=PART)
async def prices_count(request: PageRequest, caller: Caller) -> Template:
    """Show the sums of the price file, for a page that shows its rows first."""
    caller.must_be_owner()
    page = paging_of(request, ROWS_SHOWN)
    async with reading(request) as reads:
        sums, _ = await sums_of_file(reads, caller, clock.now())
    pages = page.of(sums.total).total_pages
    return show(request, caller, "prices_counted.html", sums=sums, page=page, total_pages=pages)


def words_of(reasons: list[str]) -> list[str]:
    """Return the reasons for an empty price file as sentences. Pure."""
    return [EMPTY[name] for name in reasons]


@get("/sync/prices.csv")
async def prices_file(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    caller.must_be_owner()
    updates = await fresh_file(heavy, caller, clock.now())
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="price-updates.csv"'}
    return as_csv.body(updates.body, headers)


@post_form("/sync/approve")
async def approve(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession
) -> Response[str]:
    """Approve one upload of prices in Review Mode, or withdraw the approval."""
    given = form["approved"] == "true"
    seen: LastSeen = request.app.state.last_seen
    values = {"upload_approved": given}
    await account_settings.change(session, caller, values, {}, clock.now())
    if given and await seen.at(session, caller) is None:
        return see("/sync", message("upload_approved_alone"))
    return see("/sync", message("upload_approved" if given else "upload_unapproved"))


@get("/sync/state")
async def sync_state(request: PageRequest, caller: Caller) -> Template:
    """Show the sync's state in the header again, for a page that stays open."""
    return show(request, caller, "sync_state.html")


ROUTES: Final = [
    sync_page,
    sync_state,
    request_sync,
    cancel_sync,
    skip_the_wait,
    request_task,
    prices_page,
    prices_count,
    prices_file,
    approve,
]

"""HTTP routes of the sync protocol: heartbeat, decision, status, request, log.

Heartbeats and polls are frequent, so their handlers usually write nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import MediaType, Response, Router, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter, QueryParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, A_TOKEN, BY_ANY, BY_ANYBODY, BY_EITHER
from cardsync.access.caller import Caller
from cardsync.access.patience import POLLED
from cardsync.access.rate_limits.groups import SYNC_REQUEST
from cardsync.agents.errors import Cooldown, MeteredCooldown, NoSyncInProgress
from cardsync.agents.limits import CYCLES_PER_PAGE_MOST
from cardsync.agents.releases.offer import Installation
from cardsync.agents.releases.update import update_fields
from cardsync.agents.seller_state.sync_kinds import Kind, read_kind
from cardsync.agents.sync import cancel, manual_request, past_cycles
from cardsync.agents.sync.cycle_logs import CycleLog, record_cycle
from cardsync.agents.sync.cycles_schemas import Cycle, Cycles, cycle_body
from cardsync.agents.sync.debug import DebugScreenshotBody, keep_screenshot
from cardsync.agents.sync.heartbeat import heartbeat as beat
from cardsync.agents.sync.last_seen import LastSeen, Noted
from cardsync.agents.sync.persons_turn import TurnKind
from cardsync.agents.sync.poll import answer_poll
from cardsync.agents.sync.schemas import (
    Cancelled,
    Heartbeat,
    Pending,
    ProductLineBody,
    Requested,
    Status,
    UploadApproval,
    pending_body,
    status_body,
)
from cardsync.agents.sync.status import status_of
from cardsync.catalog.product_lines import CATEGORY_IDS
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.value_types import Json
from cardsync.prices.files.price_updates import run_waits
from cardsync.sales.orders.sales_backfill import ask_for_missing_months
from cardsync.shop.accounts import sellers
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_AGENTS,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    ApiRequest,
    Polled,
    problems,
    provide_caller,
    storable,
)


class HeartbeatBody(msgspec.Struct):
    """`your_turn` is the reason for which the agent waits for its person, null if it does not wait;
    an agent that drives no browser omits it. `your_turn_host` is the host of the page that needs
    the person.
    """

    version: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """The version of the agent"""
    platform: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    your_turn: TurnKind | msgspec.UnsetType | None = msgspec.UNSET
    """The reason for which the agent waits for its person; null: it does not wait"""
    your_turn_host: (
        Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[A-Za-z0-9.\[\]:-]+$")] | None
    ) = None
    """The host of the page that needs the person"""

    def noted(self, now: datetime) -> Noted:
        if self.your_turn is msgspec.UNSET:
            return Noted(now, self.version, self.platform)
        host = self.your_turn_host if self.your_turn else None
        return Noted(now, self.version, self.platform, self.your_turn or "", host or "")


# Identifies the installation that sends the request, if the seller has several.
AgentId = Annotated[
    str | None,
    Parameter(required=False, description="Random per installation; names the lock's holder"),
]


class SyncRequest(msgspec.Struct):
    """With `full_history` the agent fetches the orders of all years, as in a first sync; only an
    owner may request it.
    """

    kind: Annotated[Json, Like(Kind | None)] = None
    """full, pricing, orders, refunds, feedback, sales or account; an unknown kind is full"""
    full_history: bool = False


@post("/heartbeat", status_code=200, opt=POLLED, responses=problems(*FOR_AGENTS, *WITH_JSON_BODY))
async def heartbeat(request: ApiRequest, data: HeartbeatBody | None = None) -> Polled[Heartbeat]:
    """Note that the agent is running, and clear a stale sync lock."""
    # Heartbeat and poll have no injected dependencies: the framework would resolve these for each
    # request, which costs as much as the work itself.
    caller, state = provide_caller(request), request.app.state
    database: Database = state.database
    settings: Settings = state.settings
    now = clock.now()
    body = data or HeartbeatBody()
    state.last_seen.note(caller.seller_id, body.noted(now))
    alive = await beat(database, caller, now, settings)
    lines = [
        ProductLineBody(name, CATEGORY_IDS.get(name, 0)) for name in caller.account.product_lines
    ]
    asks = Installation(str(caller.seller_id), body.version, body.platform)
    origin = settings.origin_for(request.headers.get("host"))
    return Polled(
        Heartbeat(
            **update_fields(state.releases, "agent", asks, now, origin),
            product_lines=lines,
            **alive._asdict(),
        )
    )


@get("/sync/pending", opt=POLLED, responses=problems(*FOR_AGENTS))
async def pending(
    request: ApiRequest,
    agent_id: AgentId = None,
    capabilities: Annotated[
        list[str] | None,
        Parameter(required=False, description="The agent's steps: `step@version`, comma-separated"),
    ] = None,
) -> Polled[Pending]:
    """Decide whether this seller's agent runs a cycle now.

    An answer of `sync` takes the sync lock.
    """
    caller, state = provide_caller(request), request.app.state
    database: Database = state.database
    settings: Settings = state.settings
    now = clock.now()
    agent = _agent(agent_id)
    decision = await answer_poll(database, caller, agent, capabilities, now, settings)
    return Polled(pending_body(decision))


def _agent(agent_id: str | None) -> str | None:
    return storable(agent_id[:200]) if agent_id else None


@get(
    "/status",
    opt=BY_ANY | POLLED,
    security=[A_SESSION, A_TOKEN],
    responses=problems(*BEHIND_A_KEY),
)
async def status(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> Status:
    """Show the phase and the progress of the seller's sync."""
    now = clock.now()
    seen: LastSeen = request.app.state.last_seen
    current = await status_of(session, caller, run_waits, now, settings)
    return status_body(current, caller.state.last_sync_at, await seen.at(session, caller))


@post(
    "/sync/request",
    status_code=200,
    opt=SYNC_REQUEST | BY_ANY,
    security=[A_SESSION, A_TOKEN],
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, MeteredCooldown, Cooldown),
)
async def request_sync(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: SyncRequest | None = None,
) -> Requested:
    """Request a sync, which begins at an agent's next poll.

    Of two requests `full` has precedence, else the newer kind.
    """
    asked = data or SyncRequest()
    kind, history = read_kind(asked.kind), asked.full_history
    await manual_request.request_sync(
        session, caller, kind, clock.now(), settings, full_history=history
    )
    return Requested("requested")


@post(
    "/sync/cancel",
    status_code=200,
    responses={
        202: ResponseSpec(
            data_container=Cancelled,
            description="A worker is writing: it stops at its next slab boundary",
            generate_examples=False,
        ),
        **problems(*FOR_OWNERS, NoSyncInProgress),
    },
    opt=BY_EITHER,
    security=[A_SESSION],
)
async def cancel_sync(caller: Caller, session: AsyncSession) -> Response[Cancelled]:
    """Stop the sync in progress: immediately, or at the next commit of the worker that writes."""
    status = await cancel.cancel_sync(session, caller, clock.now())
    return Response(Cancelled(status), status_code=200 if status == "cancelled" else 202)


@delete("/sync/approve_upload", status_code=200, responses=problems(*FOR_AGENTS))
async def clear_upload_approval(caller: Caller, session: AsyncSession) -> UploadApproval:
    """Record that the agent made the one-time upload that the seller approved."""
    await sellers.clear_upload_approval(session, caller)
    return UploadApproval("ok", False)


# The answer is text, because JSON would send `null` for an empty answer.
@post(
    "/sync/log",
    status_code=201,
    media_type=MediaType.TEXT,
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY),
)
async def log_cycle(
    caller: Caller,
    session: AsyncSession,
    data: CycleLog,
    agent_id: AgentId = None,
) -> None:
    """Record a cycle; the same `sync_cycle_id` again updates its row."""
    now = clock.now()
    await record_cycle(session, caller, data, _agent(agent_id), ask_for_missing_months, now)


@post(
    "/sync/debug",
    status_code=201,
    media_type=MediaType.TEXT,
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY, errors.NotFound),
)
async def debug_cycle(
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    data: DebugScreenshotBody,
) -> None:
    """Store a screenshot of the agent's browser with the named cycle, else with the newest
    cycle.
    """
    await keep_screenshot(database, caller, store, settings, data)


@get(
    "/sync/cycles",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.InvalidPayload),
)
async def list_cycles(
    caller: Caller,
    session: AsyncSession,
    page: Annotated[int, QueryParameter(ge=1, le=limits.PAGE_MOST)] = 1,
    per_page: Annotated[int, QueryParameter(ge=1, le=CYCLES_PER_PAGE_MOST)] = (
        limits.CYCLES_PER_PAGE
    ),
) -> Cycles:
    """Cycles as their agents logged them, newest first."""
    found = await past_cycles.page_of_cycles(session, caller, Paging(page, per_page))
    pictures = await past_cycles.screenshots_of(session, caller, [row.id for row in found.rows])
    shown = [cycle_body(row, pictures.get(row.id, [])) for row in found.rows]
    return Cycles(shown, *found.numbers)


@get(
    "/sync/cycles/{cycle_id:int}",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def read_cycle(caller: Caller, session: AsyncSession, cycle_id: int) -> Cycle:
    """One cycle with its steps, its screenshots, and the reports of its prices."""
    row = await past_cycles.cycle(session, caller, cycle_id)
    pictures = await past_cycles.screenshots_of(session, caller, [cycle_id])
    return cycle_body(row, pictures.get(cycle_id, []))


@get(
    "/sync/screenshots/{screenshot_id:int}",
    media_type="image/png",
    responses=problems(
        *BEHIND_A_KEY, errors.SessionRequired, errors.OwnerRequired, errors.NotFound
    ),
)
async def read_screenshot(
    caller: Caller,
    session: AsyncSession,
    store: Store,
    screenshot_id: int,
) -> Response[bytes]:
    """The PNG of a screenshot, for the owner alone."""
    png = await past_cycles.picture(session, caller, store, screenshot_id)
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
    }
    return Response(png, media_type="image/png", headers=headers)


router = Router(
    path="",
    route_handlers=[
        heartbeat,
        pending,
        status,
        request_sync,
        cancel_sync,
        clear_upload_approval,
        log_cycle,
        debug_cycle,
        list_cycles,
        read_cycle,
    ],
    tags=["sync"],
)
pictures = Router(path="", route_handlers=[read_screenshot], tags=["sync"])

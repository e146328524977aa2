"""Today: the sync as it stands, with its request and cancel, and the work that waits for somebody,
each line with its one next step.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from litestar import Response, get, post
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.agentwork.listing import page_of_tasks
from cardsync.dashboard.shell import PageRequest, field, read_form, see, show
from cardsync.inventory import reviews
from cardsync.plans.reads import page_of as page_of_plans
from cardsync.pricing.export.price_updates import run_waits
from cardsync.quick_add.settle import pending
from cardsync.seller_state.kinds import KINDS, read_kind
from cardsync.settings import Settings
from cardsync.sync import request as requests
from cardsync.sync.last_seen import LastSeen
from cardsync.sync.shown import status_body
from cardsync.sync.status import status_of


class Waiting(NamedTuple):
    """A line of the work list: `kind` is bad, warn or info."""

    kind: str
    text: str
    path: str
    label: str


@get("/", opt=BY_FORM)
async def home(caller: Caller) -> Response[str]:
    return see("/today")


@get("/today", opt=BY_FORM)
async def today_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> Template:
    now = clock.now()
    seen: LastSeen = request.app.state.last_seen
    current = await status_of(session, caller, run_waits, now, settings)
    status = status_body(current, caller.state.last_sync_at, await seen.at(session, caller))
    return show(
        request,
        caller,
        "today.html",
        status=status,
        kinds=[(kind, kind.title()) for kind in KINDS],
        waiting=await _waiting(session, caller),
        review_upload_id=caller.state.review_upload_id if caller.role == "owner" else None,
    )


async def _waiting(session: AsyncSession, caller: Caller) -> list[Waiting]:
    now = clock.now()
    lines: list[Waiting] = []
    if caller.role != "owner":
        return lines
    plans = await page_of_plans(session, caller, "pending_review", 1, 1, now)
    if plans.total:
        text = f"{plans.total} plans of assistants wait for your click."
        lines.append(Waiting("warn", text, "/activity", "See the plans"))
    failed = await page_of_tasks(session, caller, "failed", None, 1, 1, now)
    if failed.total:
        text = f"{failed.total} tasks of the agent have failed."
        lines.append(Waiting("bad", text, "/activity?action=task", "See them"))
    unanswered = await pending(session, caller)
    if unanswered:
        text = f"{len(unanswered)} new listings were sent and not answered yet."
        lines.append(Waiting("info", text, "/cards", "Compare with your stock"))
    return lines


@post("/today/sync", opt=BY_FORM)
async def request_sync(
    request: PageRequest, caller: Caller, session: AsyncSession, settings: Settings
) -> Response[str]:
    form = await read_form(request)
    kind = read_kind(field(form, "kind") or "full")
    await requests.request_sync(session, caller, kind, clock.now(), settings)
    return see(
        "/today", done=f"Requested: a sync of kind {kind}. The agent begins it at its next poll."
    )


@post("/today/review/{upload_id:int}", opt=BY_FORM)
async def settle_review(
    request: PageRequest, caller: Caller, session: AsyncSession, upload_id: int
) -> Response[str]:
    form = await read_form(request)
    decision: Literal["confirmed", "discarded"] = (
        "confirmed" if field(form, "decision") == "confirmed" else "discarded"
    )
    await reviews.settle_upload(session, caller, upload_id, decision, clock.now())
    return see("/today", done=f"The upload is {decision}.")

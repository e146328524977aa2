"""The page Today: the work that waits for somebody, each line with its one next step; the sync with
its request, its wait and its cancel; and the shop's figures.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Literal

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.sync import start_of
from cardsync.dashboard.shell import PageRequest, reader_of, see, show
from cardsync.inventory import reviews
from cardsync.plans.writer import Writer
from cardsync.seller_state.sync_kinds import KINDS
from cardsync.settings import Settings
from cardsync.sync.last_seen import LastSeen, is_offline
from cardsync.today import work_list
from cardsync.today.shown import TodayBody
from cardsync.web.request import reading

KIND_NAMES = {"full": "Everything", "pricing": "Inventory and prices"}
SHIPPING_NAMES = {"pwe": "Plain envelope", "tracked": "Tracked", "expedited": "Expedited"}
# The period of the chart, in days.
CHART_DAYS = 90
# Conditions that the page's own forms settle, and where these go.
REVIEWS = {"upload_in_review": "/today/review", "run_in_review": "/today/runs"}
# In these phases there is something to cancel.
RUNNING = ("collecting", "queued", "importing", "repricing")


@get("/", opt=BY_FORM)
async def home(caller: Caller) -> Response[str]:
    return see("/today")


@get("/today", opt=BY_FORM)
async def today_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    days: str = "7",
) -> Template:
    now = clock.now()
    period = 30 if days == "30" else 7
    seen: LastSeen = request.app.state.last_seen
    async with reading(request) as reads:
        days_listed = (
            (await work_list.listed_value(reads, caller, CHART_DAYS, now)).days
            if caller.sees_revenue
            else []
        )
        movers = await work_list.movers(reads, caller, period)
        today = await work_list.today_of(session, caller, reads, seen, now, settings)
    seen_at = clock.read_moment(today.sync.agent_last_seen_at)
    return show(
        request,
        caller,
        "today.html",
        today=today,
        movers=movers,
        kinds=[(kind, KIND_NAMES.get(kind, kind.title())) for kind in KINDS],
        shipping_names=SHIPPING_NAMES,
        points=[
            (f"{one.day}", {"Listed": one.value, "At market prices": one.market_value})
            for one in reversed(days_listed)
        ],
        reviews=[one for one in today.conditions if one.kind in REVIEWS],
        review_paths=REVIEWS,
        next_at_once=_is_due(today, now),
        offline=is_offline(seen_at, now) and not today.sync.in_progress,
        start=start_of(reader_of(request, caller), seen_at, in_progress=today.sync.in_progress),
        wait_words=_wait(today.sync.cooldown_seconds),
        can_cancel=caller.role == "owner" and today.sync.phase in RUNNING,
        # The form's own key: sent twice, it is charged once.
        wait_key=secrets.token_urlsafe(18) if _may_skip(caller, today) else "",
    )


def _is_due(today: TodayBody, now: datetime) -> bool:
    """Whether the agent's next poll begins a sync."""
    due = clock.read_moment(today.sync.next_sync_at)
    return due is not None and due <= now


def _wait(seconds: int) -> str:
    """Return how long the wait after the last sync still is, in words."""
    if seconds < 60:
        return f"{seconds} s until the next sync may be requested"
    return f"{-(-seconds // 60)} min until the next sync may be requested"


def _may_skip(caller: Caller, today: TodayBody) -> bool:
    return caller.role == "owner" and today.sync.cooldown == "metered"


@post_form("/today/review/{upload_id:int}", opt={})
async def settle_review(
    caller: Caller, form: Form, session: AsyncSession, upload_id: int
) -> Response[str]:
    decision = _decision(form)
    await reviews.settle_upload(session, caller, upload_id, decision, clock.now())
    return see("/today", done=message(f"upload_{decision}"))


@post_form("/today/runs/{run_id:int}", opt={})
async def settle_run(form: Form, writer: Writer, run_id: int) -> Response[str]:
    decision = _decision(form)
    await reviews.settle_run(writer, run_id, decision)
    return see("/today", done=message(f"run_{decision}"))


def _decision(form: Form) -> Literal["confirmed", "discarded"]:
    """Raises InvalidPayload."""
    given = form["decision"]
    if given == "confirmed":
        return "confirmed"
    if given == "discarded":
        return "discarded"
    raise errors.InvalidPayload("decision: must be confirmed or discarded")


ROUTES = [
    home,
    today_page,
    settle_review,
    settle_run,
]

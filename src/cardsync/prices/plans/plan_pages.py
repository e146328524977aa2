"""The page of a plan: the proposed actions, the size of the change, and two buttons. The buttons
are forms without scripts, and call the same operations as the JSON routes.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

from litestar import Router, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sessions, tokens
from cardsync.access.admission import (
    BY_SESSION,
    admitting,
    among_strangers,
    need_form_token,
    session_token,
)
from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.settings import Settings
from cardsync.prices.plans import decide_plan, reads
from cardsync.prices.plans.models import AgentPlan, Outcome
from cardsync.prices.plans.schemas import PlanShown
from cardsync.shop.activity import feed
from cardsync.shop.activity.entry_words import Names, actor_words
from cardsync.web.forms import Form, go, public_form, refused
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse, ApiRequest

SAID: Final[dict[Outcome, str]] = {
    "applied": "This plan has been applied.",
    "previewed": "This was a dry run; nothing was changed.",
    "pending_review": "An assistant asks for your approval. Nothing has changed yet.",
    "refused_by_grant": "This plan was blocked: the assistant does not have permission.",
    "refused_by_limit": "This plan was blocked because it exceeds a limit. You can override the limit.",
    "drifted": "Something changed since the plan was made. Check it again before you apply it.",
    "declined": "This plan was declined; nothing was changed.",
    "expired": "This plan waited too long and expired; nothing was changed.",
}
DOES: Final[dict[Outcome, str]] = {
    "applied": "What it did",
    "previewed": "What it would do",
    "pending_review": "What it will do",
    "refused_by_limit": "What it will do",
    "drifted": "What it will do",
}


@get("/plans/{plan_id:int}", middleware=[admitting], opt=BY_SESSION)
async def plan_page(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    plan_id: int,
) -> Template:
    plan = await reads.read(session, caller, plan_id)
    token = session_token(request.scope)
    assert token is not None
    actors = [plan.actor, plan.decided_by or ""]
    names = await feed.names_in(session, caller, actors)
    body = await reads.shown(session, plan, settings.origin, clock.now())
    return _page(plan, body, names, token)


def _page(plan: AgentPlan, body: PlanShown, names: Names, token: str) -> Template:
    return page(
        "plan.html",
        plan=body,
        asked_by=actor_words(plan.actor, names),
        decided_by=actor_words(plan.decided_by, names) if plan.decided_by else "",
        said=SAID[body.status],
        does=DOES.get(body.status, "What it would have done"),
        expires=plan.expires_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        form_token=tokens.csrf_token(token),
    )


@public_form("/plans/{plan_id:int}", middleware=[among_strangers])
async def decide_on_plan(
    request: ApiRequest,
    form: Form,
    database: Database,
    settings: Settings,
    plan_id: int,
) -> AnyResponse:
    """Confirm or decline the plan, at the revision that the member saw."""
    token = session_token(request.scope)
    if token is None:
        return go(f"/sign-in?then=/plans/{plan_id}")
    need_form_token(request.scope, form["csrf_token"])
    if plan_id > limits.LARGEST_ID:
        raise errors.NotFound(f"there is no plan {plan_id}")
    ring = request.app.state.session_ring
    caller = await sessions.caller_with(database, ring, token, settings)
    if caller.account.suspended:
        raise errors.AccountSuspended
    word, seen = form["word"], whole(form["revision"])
    if word not in ("confirm", "decline") or seen is None:
        raise errors.BadRequest("the form is not complete; go back and reload the page")
    now = clock.now()
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        if word == "confirm":
            await decide_plan.confirm(session, caller, settings, plan_id, seen, now)
        else:
            await decide_plan.decline(session, caller, plan_id, now)
    return go(f"/plans/{plan_id}")


def _refused(request: AnyRequest, exc: errors.Problem) -> AnyResponse:
    """Return the error page. A visitor without a session is sent to the sign-in, and from there
    back to the plan.
    """
    if isinstance(exc, errors.Unauthorized):
        return go(f"/sign-in?then={request.url.path}")
    return refused(request, exc)


router = Router(
    path="/",
    route_handlers=[plan_page, decide_on_plan],
    exception_handlers={errors.Problem: _refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)

"""The pages of recommendations: price reviews by expected money with their evidence, stale stock
and advice. A member accepts one or several after a look at the changes, snoozes or dismisses;
another page shows outcomes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import left, message, together
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.database.session import Database
from cardsync.orders.order_filter import read_page
from cardsync.plans.writer import Writer
from cardsync.recommendations.accept_recommendation import accept, settle
from cardsync.recommendations.outcomes import outcomes
from cardsync.recommendations.pending_list import chosen, recommendations
from cardsync.settings import Settings
from cardsync.web.request import reading

# A page reports at once everything that it showed, as much as one request may hold.
PER_PAGE: Final = 20
PATH: Final = "/recommendations"
NAMES: Final = {
    "depth_raise": "Others list it for more",
    "sales_anchor": "It sells for more",
    "generic_raise": "The market stands higher",
    "demand_pulse": "It sells faster",
    "stale_stock": "Nobody bought it for ninety days",
    "never_matching_rule": "A rule governs no card",
    "rule_scope_drift": "A rule governs other cards than before",
    "missing_floor": "A rule has no floor",
}
VERDICTS: Final = {
    "more": ("brought more", "good"),
    "less": ("brought less", "bad"),
    "no_difference": ("no difference shown", "plain"),
    "not_enough_sales": ("not enough sales to say", "plain"),
}


class Taken(NamedTuple):
    """A recommendation at the revision that the page showed."""

    id: int
    revision: str


@get(PATH, opt=BY_FORM)
async def queue_page(request: PageRequest, caller: Caller) -> Template:
    """Show what waits, those first that may bring the most."""
    page, _ = read_page(request.query_params.dict())
    async with reading(request) as reads:
        answer = await recommendations(reads, caller, page, PER_PAGE, clock.now())
    return show(request, caller, "recommendations.html", answer=answer, names=NAMES)


@get(f"{PATH}/accept", opt=BY_FORM)
async def diff_page(request: PageRequest, caller: Caller, database: Database) -> Template:
    """Show the chosen prices beside the present ones, before they are accepted."""
    caller.must_be_owner()
    asked = {_taken(text) for text in request.query_params.dict().get("take", [])[:PER_PAGE]}
    ids = {one.id for one in asked}
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        found = await chosen(session, caller, ids, clock.now())
    rows = [one for one in found if Taken(one.id, one.revision) in asked]
    gone = len(asked) - len(rows)
    return show(request, caller, "recommendations_diff.html", rows=rows, gone=gone, names=NAMES)


@post_form(f"{PATH}/accept")
async def accept_chosen(
    caller: Caller, form: Form, database: Database, settings: Settings
) -> Response[str]:
    """Accept each by itself: one whose evidence has changed keeps no other back."""
    caller.must_be_owner()
    taken = [_taken(text) for text in form.all("take")[:PER_PAGE]]
    accepted, refused = 0, list[errors.Problem]()
    for one in taken:
        try:
            accepted += await _accepted(database, caller, settings, one)
        except errors.Problem as problem:
            refused.append(problem)
    said = [message("prices_accepted", accepted)]
    waiting = len(taken) - accepted - len(refused)
    if waiting:
        said.append(message("left_changed", waiting))
    return see(PATH, done=together(*said, *left(refused)))


async def _accepted(database: Database, caller: Caller, settings: Settings, one: Taken) -> bool:
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        writer = Writer(session, caller, settings, clock.now())
        decided = await accept(writer, one.id, _moment(one.revision))
    return decided is not None and decided.status == "accepted"


@post_form(f"{PATH}/{{recommendation_id:int}}/settle")
async def settle_one(
    caller: Caller, form: Form, session: AsyncSession, recommendation_id: int
) -> Response[str]:
    """Snooze or dismiss."""
    dismissed = form["answer"] == "dismissed"
    await settle(
        session,
        caller,
        recommendation_id,
        _moment(form["revision"]),
        "dismissed" if dismissed else "snoozed",
        clock.now(),
    )
    return see(
        PATH,
        done=message("advice_dismissed" if dismissed else "advice_snoozed"),
    )


@get(f"{PATH}/outcomes", opt=BY_FORM)
async def outcomes_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Template:
    """Show what applied prices brought."""
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        answer = await outcomes(session, caller, clock.now())
    return show(
        request,
        caller,
        "recommendations_outcomes.html",
        answer=answer,
        names=NAMES,
        verdicts=VERDICTS,
    )


def _taken(text: str) -> Taken:
    """Raises InvalidPayload."""
    number, _, revision = text.partition("@")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise errors.InvalidPayload("take: must be a recommendation and its revision")
    return Taken(int(number), revision)


def _moment(revision: str) -> Any:
    """Raises InvalidPayload."""
    moment = clock.read_moment(revision)
    if moment is None:
        raise errors.InvalidPayload("revision: must be a time")
    return moment


ROUTES = [queue_page, diff_page, accept_chosen, settle_one, outcomes_page]

"""The pages of suggestions. Prices are sorted by expected gain, followed by stale stock and rules,
each with its evidence; a member approves, dismisses or snoozes one or several suggestions. Another
page shows the outcomes.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.proposal_rows import (
    KINDS,
    UNDER,
    Decision,
    read_decision,
    row_of_suggestion,
    said_of,
)
from cardsync.dashboard.search_of_ids import search_of_ids
from cardsync.dashboard.shell import PageRequest, paging_of, see, see_decided, show
from cardsync.platform import clock, errors
from cardsync.platform.settings import Settings
from cardsync.prices.plans.writer import Writer
from cardsync.prices.proposals.decide_proposals import Answer, Refused, SeenProposal
from cardsync.prices.recommendations.accept_recommendation import accept, settle
from cardsync.prices.recommendations.outcomes import outcomes
from cardsync.prices.recommendations.pending_list import (
    recommendations,
    suggestions_under,
    without_buy_outs,
)
from cardsync.web.forms import Form
from cardsync.web.request import opened, reading

# The most suggestions on a page: the page's script reports all shown suggestions in one request,
# which has a limit.
PER_PAGE: Final = 20
# The most prices that one click on "approve all" handles, because each price is checked against its
# evidence separately.
AT_ONCE: Final = 50
PATH: Final = "/recommendations"
VERDICTS: Final = {
    "more": ("earned more", "good"),
    "less": ("earned less", "bad"),
    "no_difference": ("no clear difference", "plain"),
    "not_enough_sales": ("not enough sales to tell", "plain"),
}


@get(PATH)
async def queue_page(request: PageRequest, caller: Caller) -> Template:
    """Show the suggestions that wait for a decision; those with the highest expected gain are
    first.
    """
    async with reading(request) as reads:
        answer = await recommendations(reads, caller, paging_of(request, PER_PAGE), clock.now())
    if answer.liquidation:
        async with opened(request, snapshot=True) as session:
            await without_buy_outs(session, caller, answer, clock.now())
    stale = [one.card.id for one in answer.liquidation if one.card]
    return show(
        request,
        caller,
        "recommendations.html",
        answer=answer,
        rows=[row_of_suggestion(one) for one in answer.recommendations],
        apart=[
            (title, [row_of_suggestion(one) for one in some])
            for title, some in (("Stale stock", answer.liquidation), ("Rules", answer.account))
            if some
        ],
        names=KINDS,
        under=UNDER,
        stale=search_of_ids(stale),
    )


@get(f"{PATH}/accept")
async def old_address() -> Response[str]:
    """Redirect from the address at which suggestions were once approved."""
    return see(PATH)


@post_form(PATH)
async def decide_chosen(
    request: PageRequest, caller: Caller, form: Form, settings: Settings
) -> Response[str]:
    """Decide about each chosen suggestion separately. A suggestion whose evidence has changed does
    not block the other suggestions.
    """
    decision = read_decision(form, PER_PAGE)
    if not decision.asked:
        return see(PATH, done=message("none_chosen"))
    return see_decided(PATH, *await _decide(request, caller, settings, decision))


@post_form(f"{PATH}/under", opt=WRITES)
async def approve_under(request: PageRequest, caller: Caller, settings: Settings) -> Response[str]:
    """Approve all suggested prices below `UNDER` dollars, also those on other pages. All of these
    suggestions raise a price.
    """
    caller.must_be_owner()
    async with reading(request) as reads:
        asked = await suggestions_under(reads, caller, UNDER, AT_ONCE, clock.now())
    if not asked:
        return see(PATH, done=message("none_under", int(100 * UNDER)))
    more = [message("again")] if len(asked) == AT_ONCE else []
    decision = Decision("accepted", asked)
    said, _ = await _decide(request, caller, settings, decision, *more)
    return see(PATH, said)


async def _decide(
    request: PageRequest, caller: Caller, settings: Settings, decision: Decision, *more: str
) -> tuple[str, list[SeenProposal]]:
    """Decide about each suggestion, and return the page's message and the decided suggestions.
    Raises OwnerRequired, and the reason of a refusal if only one suggestion was requested.
    """
    caller.must_be_owner()
    answer, asked = decision
    decided, refused = list[SeenProposal](), list[Refused]()
    for one in asked:
        try:
            if await _decided(request, caller, settings, answer, one):
                decided.append(one)
        except errors.Problem as problem:
            if len(asked) == 1:
                raise
            refused.append(Refused(one.key, problem))
    changed = len(asked) - len(decided) - len(refused)
    said = [message("left_changed", changed)] if changed else []
    shown = said_of(
        "prices" if answer == "accepted" else "suggestions",
        answer,
        len(decided),
        refused,
        *said,
        *more,
    )
    return shown, decided


async def _decided(
    request: PageRequest, caller: Caller, settings: Settings, answer: Answer, one: SeenProposal
) -> bool:
    """Decide about a suggestion. Return False if it was revised instead because its evidence
    changed.
    """
    now = clock.now()
    async with opened(request, long=True) as session:
        if answer == "accepted":
            done = await accept(Writer(session, caller, settings, now), one.key, one.revision)
            return done is not None and done.status == "accepted"
        await settle(session, caller, one.key, one.revision, answer, now)
        return True


@get(f"{PATH}/outcomes")
async def outcomes_page(request: PageRequest, caller: Caller) -> Template:
    """Show what the applied suggestions earned."""
    async with reading(request) as reads:
        answer = await outcomes(reads, caller, clock.now())
    return show(
        request,
        caller,
        "recommendations_outcomes.html",
        answer=answer,
        names=KINDS,
        verdicts=VERDICTS,
    )


ROUTES = [queue_page, old_address, decide_chosen, approve_under, outcomes_page]

"""The page Reviews, with every decision that waits for the owner: uploads, pricing runs, plans, and
prices that move beyond the limits. An owner decides about prices one by one or together.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.proposal_rows import (
    UNDER,
    ProposalRow,
    read_decision,
    row_of_review,
    said_of,
)
from cardsync.dashboard.shell import PageRequest, paging_of, see, see_decided, show
from cardsync.platform import clock
from cardsync.platform.concurrency import at_once
from cardsync.platform.money import UNITS_PER_DOLLAR, to_units
from cardsync.prices.decisions.accept_reviews import MOST
from cardsync.prices.decisions.review_list import reviews_of, reviews_under
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.sales.lots import profit
from cardsync.sales.lots.fee_schedule import FeeLevel, net, schedule_at
from cardsync.shop.waiting.all_waiting import whole_shop
from cardsync.shop.waiting.schemas import shown
from cardsync.stock.cards.columns_beside import markets_and_costs
from cardsync.stock.cards.market_trend import market_trends
from cardsync.web.forms import Form
from cardsync.web.request import reading

PER_PAGE: Final = 50
PATH: Final = "/pricing/reviews"


def after_fees(
    row: ProposalRow, cost: Decimal | None, level: FeeLevel, now: datetime
) -> Decimal | None:
    """Return the profit of one copy at the proposed price, after the marketplace's fees and the
    copy's cost; None if the cost is unknown. Pure.
    """
    if cost is None or row.proposed_price is None:
        return None
    units = to_units(Decimal(row.proposed_price))
    left = net(units, schedule_at(now), level, direct=False)
    return Decimal(left) / WHOLE_BP / UNITS_PER_DOLLAR - cost


@get(PATH)
async def reviews_page(request: PageRequest, caller: Caller) -> Template:
    """Show what waits for a decision; prices that move the most money are first."""
    paging = paging_of(request, PER_PAGE)
    now = clock.now()
    async with reading(request) as reads:
        first, waiting, settings = await at_once(
            whole_shop(reads, caller, PER_PAGE, now),
            reviews_of(reads, caller, paging, now),
            profit.settings(reads, caller),
        )
        rows = [row_of_review(one) for one in waiting.reviews]
        ids = [row.card_id for row in rows if row.card_id is not None]
        trends, cards = await at_once(
            market_trends(reads, caller, ids, now), markets_and_costs(reads, caller, ids)
        )
    reasons = {row.why for row in rows}
    return show(
        request,
        caller,
        "pricing_reviews.html",
        first=[shown(one, "") for one in first],
        waiting=waiting,
        rows=rows,
        reason=reasons.pop() if len(reasons) == 1 else "",
        trends=trends,
        markets={id: card.market for id, card in cards.items()},
        earned={
            row.card_id: earned
            for row in rows
            if row.card_id is not None and caller.sees_revenue
            if (card := cards.get(row.card_id)) is not None
            if (earned := after_fees(row, card.cost, settings["fee_level"], now)) is not None
        },
        under=UNDER,
    )


@post_form(PATH)
async def decide_chosen(form: Form, writer: Writer) -> Response[str]:
    """Decide about the chosen prices. A price that changed meanwhile is refused, and the others are
    decided.
    """
    answer, asked = read_decision(form, PER_PAGE)
    if not asked:
        return see(PATH, done=message("none_chosen"))
    done = await writes.decide_reviews(writer, asked, answer)
    refused = {one.key for one in done.refused}
    decided = [one for one in asked if one.key not in refused]
    return see_decided(PATH, said_of("prices", answer, done.decided, done.refused), decided)


@post_form(f"{PATH}/under")
async def approve_under(request: PageRequest, caller: Caller, writer: Writer) -> Response[str]:
    """Approve the prices below `UNDER`, also those on other pages. If the effect is large, the
    owner must first confirm its figures.
    """
    async with reading(request) as reads:
        asked = await reviews_under(reads, caller, UNDER, MOST, writer.now)
    if not asked:
        return see(PATH, done=message("none_under", int(100 * UNDER)))
    done = await writes.decide_reviews(writer, asked, "accepted", seen=False)
    more = [message("again")] if len(asked) == MOST else []
    return see(PATH, said_of("prices", "accepted", done.decided, done.refused, *more))


ROUTES = [reviews_page, decide_chosen, approve_under]

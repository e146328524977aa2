"""The page of a backtest: the prices that the live rules would have asked on each past day,
compared with the sales.
"""

from __future__ import annotations

from datetime import timedelta

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.access.patience import BACKTEST
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_rows import rule_of
from cardsync.prices.preview.asked import past_prices
from cardsync.prices.preview.backtest import PastAsked
from cardsync.prices.preview.schemas import Backtest
from cardsync.prices.rules import rule_sets
from cardsync.stock.cards.named_cards import NamedCard, named_cards
from cardsync.web.forms import sentence
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import opened, reading

DAYS = 30


@get("/pricing/backtest", opt=BACKTEST)
async def backtest_page(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Template:
    """Show a backtest of the rules, with the drafts if the address requests them."""
    caller.must_be_owner()
    now = clock.now()
    given = {name: str(request.query_params.get(name, "")).strip() for name in ("from", "to")}
    drafts = request.query_params.get("drafts") == "true"
    asked = any(given.values())
    today = caller.today(now)
    days = {
        "from": given["from"] or str(today - timedelta(days=DAYS)),
        "to": given["to"] or str(today),
    }
    found: Backtest | None = None
    problem, status = "", 200
    if asked:
        try:
            found = await _tested(request, caller, heavy, days, drafts=drafts)
        except (errors.InvalidPayload, errors.InvalidRule, errors.InvalidQuery) as e:
            problem, status = sentence(e), e.status
    cards: dict[int, NamedCard] = {}
    if found is not None:
        async with reading(request) as reads:
            sold = [line.marketplace_id for line in found.sold]
            cards = await named_cards(reads, caller, sold)
    return show_part(
        request,
        caller,
        "pricing_backtest.html",
        status,
        days=days,
        drafts=drafts,
        found=found,
        cards=cards,
        points=[(day.date, {"Listed value": day.listed_value}) for day in found.days]
        if found
        else [],
        changes=[(day.date, {"Changed": day.changed, "Cards": day.cards}) for day in found.days]
        if found
        else [],
        problem=problem,
    )


async def _tested(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
    days: dict[str, str],
    *,
    drafts: bool,
) -> Backtest:
    async with opened(request) as session:
        rows = await rule_sets.read_all(session, caller)
    rules = [rule_of(row) for row in rows]
    chosen = [rule for rule in rules if rule.state == "published" or drafts]
    given = PastAsked(days["from"], days["to"], [rule_json.to_json(rule) for rule in chosen])
    return await heavy.read(past_prices, caller, Work.PRICES_ALL, clock.now(), given)


ROUTES = [backtest_page]

"""Reads the amounts that the shop has promised today by each buy rule, and checks an offer against
the rest of the rules' budgets. An offer counts for the day on which it was made, unless it has been
declined or has expired.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.value_lines import NOTHING_SPENT, left_of
from cardsync.buying.engine.wanted_lines import Spent
from cardsync.buying.rules.value_offer import buy_rules_of
from cardsync.platform import errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.money import dollars, to_units

# A split, and an offer that is not answered yet, count in full for cash and for credit, so that no
# later choice of the way can exceed a budget.
_PROMISED: Final = queries_of(__package__)["promised"]


class Promise(NamedTuple):
    """The sums of all copies of a line, and the rule that priced it."""

    rule_id: int
    cash: Decimal
    credit: Decimal


async def spent_today(session: AsyncSession, caller: Caller, now: datetime) -> dict[int, Spent]:
    """Return the amounts that the shop has promised today, by the ID of the buy rule."""
    today = now.astimezone(ZoneInfo(caller.account.time_zone))
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = await session.execute(text(_PROMISED), {"seller": caller.seller_id, "since": midnight})
    return {row.rule_id: Spent(row.cash, row.credit) for row in rows}


async def need_budget(
    session: AsyncSession, caller: Caller, promises: Iterable[Promise], now: datetime
) -> None:
    """Check that an offer's lines do not exceed the rest of the budgets after today's other offers.
    The caller holds the shop's lock. Raises InvalidPayload.
    """
    asked: dict[int, Spent] = {}
    for rule_id, cash, credit in promises:
        had = asked.get(rule_id, NOTHING_SPENT)
        asked[rule_id] = Spent(had.cash + to_units(cash), had.credit + to_units(credit))
    spent = await spent_today(session, caller, now)
    for rule in await buy_rules_of(session, caller.seller_id):
        left = left_of(rule.budget, spent.get(rule.id, NOTHING_SPENT))
        needs = asked.get(rule.id, NOTHING_SPENT)
        for way, need, most in zip(("cash", "credit"), needs, left, strict=True):
            if most is not None and need > most:
                raise errors.InvalidPayload(
                    f"lines: the budget of the rule {rule.name} has ${dollars(most)} in {way} left;"
                    " price the cards again"
                )

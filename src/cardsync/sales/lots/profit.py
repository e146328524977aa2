"""Reads the profit of a range of days (by period, game or rule), of an order, of a card, and of a
customer's orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, Literal

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.value_types import Values
from cardsync.sales.limits import SALES_ITEMS_DAYS, SALES_SUMMARY_DAYS, SOLD_WITHOUT_COST
from cardsync.sales.lots.line_profit import NAMED, NO_RULE, SETTINGS, SUMMED, lines_of
from cardsync.sales.lots.profit_by_day import KEPT, LIVE_DAYS, live
from cardsync.sales.lots.schemas import (
    CardWithoutCost,
    LineProfit,
    PricedBy,
    Profit,
    ProfitBy,
    ProfitRow,
    ProfitSummary,
    RuleReturn,
    cents,
    profit_of,
)
from cardsync.sales.reports import span_values, summed, total

_OF_ORDER: Final = f"""
    SELECT item_id, is_reported, {NAMED}
      FROM ({lines_of("AND orders.id = :order")}) line
     WHERE item_id IS NOT NULL ORDER BY item_id
"""
_WITH_CARD: Final = """AND orders.id IN (
    SELECT x.order_id FROM order_item x WHERE x.seller_id = :seller AND x.sku_id = :card)"""
_OF_CARD: Final = Planned(
    "profit_of_card",
    f"""
    SELECT {SUMMED} FROM ({lines_of(_WITH_CARD)}) line WHERE sku_id = :card HAVING count(*) > 0
    """,
    {
        "seller": "bigint",
        "card": "bigint",
        **dict.fromkeys(("zone", "fee_level"), "text"),
        **dict.fromkeys(("letter_postage", "parcel_postage", "supplies"), "numeric"),
    },
)
_THESE: Final = "AND orders.id = ANY (CAST(:orders AS bigint[]))"
_OF_ORDERS: Final = f"SELECT {SUMMED} FROM ({lines_of(_THESE)}) line HAVING count(*) > 0"
# The sold cards with copies of unknown cost, sorted by the amount received for these copies.
_WITHOUT_COST: Final = f"""
    WITH missing AS (
        SELECT sku_id, sum(pieces - costed) AS copies, sum(received - counted_received) AS received,
               max(item_id) AS item_id
          FROM ({lines_of("AND orders.order_date BETWEEN :first_read AND :last_read")}) line
         WHERE day BETWEEN :first AND :last AND pieces > costed AND sku_id IS NOT NULL
         GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT :most
    )
    SELECT m.sku_id, i.product_name, i.set_name, i.condition, CAST(m.copies AS bigint), m.received
      FROM missing m JOIN order_item i ON i.seller_id = :seller AND i.id = m.item_id
     ORDER BY m.received DESC, m.sku_id
"""
# For each buy rule: the copies bought, and the profit of the order lines that took copies from
# these lots. A line counts for a rule in proportion to the copies from the rule's lots.
_OF_RULES: Final = queries_of(__package__)["profit_of_rules"].format(
    lines=lines_of(
        "AND orders.id IN (SELECT x.order_id FROM order_item x WHERE x.seller_id = :seller"
        " AND x.id IN (SELECT item_id FROM used))"
    )
)


_NAMES: Final = """
    SELECT id, name FROM pricing_rule
     WHERE seller_id = :seller AND id = ANY (CAST(:rules AS bigint[]))
"""
Key = Literal["day", "game", "rule_id"]
_KEYS: Final[dict[ProfitBy, Key]] = {"game": "game", "pricing_rule": "rule_id"}


async def profit(
    reading: Reading,
    caller: Caller,
    first: date,
    last: date,
    by: ProfitBy = "day",
) -> ProfitSummary:
    """Return the profit from `first` to `last`, grouped by `by`, and its total. Raises
    OwnerRequired, InvalidPayload.
    """
    values = span_values(caller, first, last, SALES_SUMMARY_DAYS)
    values |= await settings(reading, caller)
    if by == "rule":
        found = await reading.rows(_OF_RULES, values)
        return ProfitSummary(by, first, last, [], [_rule(*row) for row in found], None)
    sums = [*summed(await sums_by(reading, _KEYS.get(by, "day"), values), by).items()]
    names: dict[int, str] = {}
    if by == "pricing_rule":
        ids = {"rules": [key for key, _ in sums if key > NO_RULE]}
        names = dict([*map(tuple, await reading.rows(_NAMES, values | ids))])
        # Sort rules first, then no rule, then the unknown rule.
        sums.sort(key=lambda one: min(one[0], NO_RULE + 1), reverse=True)
    rows = [_row(by, key, profit_of(*one), names) for key, one in sums]
    whole = profit_of(*total([one for _, one in sums])) if sums else None
    return ProfitSummary(by, first, last, rows, [], whole)


async def sums_by(
    reading: Reading,
    by: Key,
    values: Mapping[str, object],
) -> list[TupleRow]:
    """Return the sums of each day, game or rule: stored sums of current days, and computed sums of
    outdated days.
    """
    kept, days = await reading.together([KEPT.format(by=by), LIVE_DAYS], values)
    counted = []
    if days:
        bound = {**values, "live": [row[0] for row in days]}
        counted = await reading.rows(live(by), bound)
    return sorted((key, *sums) for key, sums in summed((*kept, *counted)).items())


def _row(by: ProfitBy, key: Any, found: Profit, names: Mapping[int, str]) -> ProfitRow:
    if by == "game":
        return ProfitRow(None, key, found)
    if by != "pricing_rule":
        return ProfitRow(key, None, found)
    if key > NO_RULE:
        return ProfitRow(None, None, found, "rule", key, names.get(key))
    priced_by: PricedBy = "no_rule" if key == NO_RULE else "unknown"
    return ProfitRow(None, None, found, priced_by)


def _rule(
    rule_id: int,
    bought: int,
    paid: Decimal,
    sold: int,
    cost: Decimal,
    left: Decimal,
    days: float | None,
) -> RuleReturn:
    rate = None if not cost else (left / cost).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    shown = None if rate is None else str(rate)
    return RuleReturn(rule_id, bought, cents(paid), sold, cents(cost), cents(left), shown, days)


async def without_cost(
    reading: Reading, caller: Caller, first: date, last: date
) -> list[CardWithoutCost]:
    """Return the cards with copies of unknown cost that were sold from `first` to `last`. Raises
    OwnerRequired, InvalidPayload.
    """
    values = span_values(caller, first, last, SALES_ITEMS_DAYS)
    values |= await settings(reading, caller)
    values["most"] = SOLD_WITHOUT_COST
    found = await reading.rows(_WITHOUT_COST, values)
    return [
        CardWithoutCost(card, name, set_name, condition, copies, cents(received))
        for card, name, set_name, condition, copies, received in found
    ]


async def of_order(reading: Reading, caller: Caller, order_id: int) -> list[LineProfit]:
    """Return the profit of each line of an order. Raises OwnerRequired."""
    caller.must_see_revenue()
    values = await _values(reading, caller, order=order_id)
    found = await reading.rows(_OF_ORDER, values)
    return [LineProfit(item_id, told, profit_of(*sums)) for item_id, told, *sums in found]


async def of_card(reading: Reading, caller: Caller, marketplace_id: int) -> Profit | None:
    """Return the profit of all sold copies of a card; None if none was sold. Raises
    OwnerRequired.
    """
    caller.must_see_revenue()
    found = await reading.rows(_OF_CARD, await _values(reading, caller, card=marketplace_id))
    return profit_of(*found[0]) if found else None


async def of_orders(reading: Reading, caller: Caller, orders: Sequence[int]) -> Profit | None:
    """Return the total profit of `orders`; None if none of them is sold. Raises OwnerRequired."""
    caller.must_see_revenue()
    found = await reading.rows(_OF_ORDERS, await _values(reading, caller, orders=list(orders)))
    return profit_of(*found[0]) if found else None


async def _values(reading: Reading, caller: Caller, **named: object) -> dict[str, object]:
    return {"seller": caller.seller_id, **named, **await settings(reading, caller)}


async def settings(reading: Reading, caller: Caller) -> Values:
    """Return the account's settings that affect profit."""
    [row] = await reading.once(SETTINGS, {"seller": caller.seller_id})
    names = ("zone", "fee_level", "letter_postage", "parcel_postage", "supplies", "costing")
    return dict(zip(names, row, strict=True))

"""SQL for the profit of order lines. A line's profit is its share of the order's payment less
refund, fees, postage and supplies, minus the cost of its copies. Pure: constants and their
formatting.

- A line's share of an order's amounts is proportional to the line's price. If the prices of an
  order do not add up to the buyer's payment, they are scaled to it.
- Shares are whole cents, and the shares of an order's lines add up to the order's amount.
- Fees are those of the payments report; else the month's fee rate of the sales report times the
  order's total; else an estimate from the fee schedule (`fee_schedule.expected_fees`).
- Only copies with a known cost count. Copies of a line without a price do not count. An order
  without items has one line without an item, which has no copies.
- Copies back in stock are not copies of the line. A line of a fully refunded order has no copies,
  and its profit is its negative postage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.sales_by_day import DAY, PIECES, SOLD
from cardsync.platform.money import UNITS_PER_DOLLAR
from cardsync.sales.lots.fee_schedule import SCHEDULES, WHOLE_BP, FeeLevel, FeeSchedule

SETTINGS: Final = """
    SELECT time_zone AS zone, fee_level, letter_postage, parcel_postage, supplies, costing
      FROM account WHERE seller_id = :seller
"""


def _dated(value: Callable[[FeeSchedule], object]) -> str:
    """Return SQL for a value of the schedule in effect on the order's date."""
    found = [(one.since, value(one)) for one in SCHEDULES]
    while len(found) > 1 and found[-1][1] == found[-2][1]:
        found.pop()
    cases = " ".join(
        f"WHEN orders.order_date >= DATE '{since}' THEN {what}" for since, what in found[:0:-1]
    )
    return f"(CASE {cases} ELSE {found[0][1]} END)" if cases else str(found[0][1])


def _by_level(name: str) -> str:
    cases = " ".join(
        f"WHEN :fee_level = '{level}' THEN {_dated(lambda one: _part(getattr(one, name)[level]))}"  # noqa: B023
        for level in get_args(FeeLevel)
    )
    return f"(CASE {cases} END)"


def _part(bp: int) -> str:
    return f"{bp / WHOLE_BP:.4f}"


def _dollars(units: int) -> str:
    return f"{units / UNITS_PER_DOLLAR:.2f}"


_COMMISSION: Final = _by_level("commission_bp")
_PROCESSING: Final = _by_level("processing_bp")
_MOST: Final = _dated(lambda one: _dollars(one.commission_most))
_A_SALE: Final = _dated(lambda one: _dollars(one.a_sale))
# The fees as a share of gross sales, in the month's sales report `r`.
RATE: Final = "((r.total_fees - coalesce(r.refunded_fees, 0)) / nullif(r.gross_sales, 0))"
IN_FULL: Final = "(orders.refund_amt >= orders.total_amt) IS TRUE"
# One row for each item of the orders that match the condition `on`.
_LINES: Final = queries_of(__package__)["lines"].format(
    day=DAY,
    pieces=PIECES,
    in_full=IN_FULL,
    commission=_COMMISSION,
    processing=_PROCESSING,
    most=_MOST,
    a_sale=_A_SALE,
    sold=SOLD,
)
_WHOLES: Final = queries_of(__package__)["wholes"]
# A fully refunded order has no fees.
EXPECTED: Final = """
    CASE WHEN returned OR products + shipping <= 0 THEN 0 ELSE round(
        (kept + shipping * commission + (products + shipping) * processing)
        * greatest(0, products + shipping - refunded) / (products + shipping) + a_sale, 2) END
"""
# `OFFSET 0` here and below keeps the planner from merging a subquery, because it would compute the
# columns of the subquery again in each expression that uses them.
_SHARES: Final = f"""
    SELECT w.*, p.fees AS reported, {EXPECTED} AS expected,
           round(coalesce(total, products + shipping) * {RATE}, 2) AS of_month,
           (reached - weight) / whole AS begins, reached / whole AS ends
      FROM ({{wholes}}) w
      LEFT JOIN order_payment p ON p.seller_id = :seller AND p.order_number = w.order_number
      LEFT JOIN sales_report r ON r.seller_id = :seller
           AND r.month = CAST(date_trunc('month', w.day) AS date)
    OFFSET 0
"""


def _share(whole: str) -> str:
    """Return SQL for the line's share of an order's amount. An order's shares add up exactly."""
    return f"(round(({whole}) * ends, 2) - round(({whole}) * begins, 2))"


_COSTED: Final = queries_of(__package__)["costed"].format(
    paid=_share("coalesce(total, products + shipping) - refunded"),
    fees=_share("coalesce(reported, of_month, expected)"),
    expected=_share("expected"),
    spent=_share("spent"),
)
# `part` is the fraction of the line's copies that have a known cost.
_COUNTED: Final = """
    SELECT c.*, round(received * part, 2) AS counted_received,
      round(fees * part, 2) AS counted_fees,
           round(postage * part, 2) AS counted_postage
      FROM (SELECT k.*, CASE WHEN bare > 0 THEN 0 WHEN pieces = 0 THEN 1
                             ELSE least(1, costed / CAST(pieces AS numeric)) END AS part
              FROM ({costed} OFFSET 0) k) c
"""
_PROFIT: Final = """
    SELECT p.*, counted_received - counted_fees - counted_postage - cost AS profit
      FROM ({counted} OFFSET 0) p
"""
COLUMNS: Final = (
    "pieces", "costed", "bare", "received", "fees", "estimated", "postage", "cost",
    "counted_received", "counted_fees", "counted_postage", "profit",
)  # fmt: skip
NAMED: Final = ", ".join(COLUMNS)
_COUNTS: Final = ("pieces", "costed", "bare")
SUMMED: Final = ", ".join(
    f"CAST(sum({name}) AS bigint) AS {name}" if name in _COUNTS else f"sum({name}) AS {name}"
    for name in COLUMNS
)


def lines_of(on: str) -> str:
    """Return a query for the lines, with their profit, of the orders that match `on`."""
    wholes = _WHOLES.format(lines=_LINES.format(on=on))
    costed = _COSTED.format(shares=_SHARES.format(wholes=wholes))
    return _PROFIT.format(counted=_COUNTED.format(costed=costed))


# The `rule_id` of a line that no rule priced, and of a line whose card or price is unknown.
NO_RULE: Final = 0
UNKNOWN_RULE: Final = -1


def priced(lines: str) -> str:
    """Return a query that adds `rule_id` to the query `lines`: the pricing rule of the card's
    newest change to the sold price before the sale.
    """
    return queries_of(__package__)["with_rule"].format(
        unknown_rule=UNKNOWN_RULE, no_rule=NO_RULE, lines=lines
    )


def of_orders(on: str) -> str:
    """Return a query for the reported and expected fees of each order that matches `on`."""
    wholes = _WHOLES.format(lines=_LINES.format(on=on))
    return f"""
        SELECT DISTINCT order_id, ordered, day, reported, of_month, expected, products, shipping,
               refunded, order_number
          FROM ({_SHARES.format(wholes=wholes)}) f
    """

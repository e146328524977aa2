"""Stores each order's fees from the payments report, and compares them with the expected fees: by
month, and for each order whose fees differ by more than two cents.

Partly refunded orders are not compared, because the report does not name the returned fees.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.sales.limits import FEE_DIFFERENCES
from cardsync.sales.lots import profit
from cardsync.sales.lots.fee_schedule import FeeLevel, rule_of, schedule_on
from cardsync.sales.lots.line_profit import of_orders
from cardsync.sales.lots.payment_csv import Payments
from cardsync.sales.lots.schemas import FeeAudit, FeeDifference, FeeMonth, PaymentsAdded, cents
from cardsync.sales.reports import span_values

AUDIT_DAYS: Final = 366
TOLERANCE: Final = Decimal("0.02")
_KEEP: Final = queries_of(__package__)["keep_fees"]
_DAYS: Final = """
    SELECT DISTINCT order_date FROM orders
     WHERE seller_id = :seller AND order_number = ANY (CAST(:changed AS text[]))
"""
_SPAN: Final = """
    AND orders.order_date BETWEEN :first AND :last
    AND orders.order_number IN (SELECT x.order_number FROM order_payment x
                                 WHERE x.seller_id = :seller)
"""
_WHOLE: Final = "(refunded = 0 OR refunded >= products + shipping)"
_MONTHS: Final = f"""
    SELECT CAST(date_trunc('month', ordered) AS date), count(*) FILTER (WHERE {_WHOLE}),
           coalesce(sum(expected) FILTER (WHERE {_WHOLE}), 0),
           coalesce(sum(reported) FILTER (WHERE {_WHOLE}), 0),
           count(*) FILTER (WHERE NOT {_WHOLE})
      FROM ({of_orders(_SPAN)}) o GROUP BY 1 ORDER BY 1
"""
_REPORTED: Final = f"""
    SELECT CAST(date_trunc('month', day) AS date), count(*), sum(expected),
           sum(coalesce(reported, of_month)), 0
      FROM ({of_orders("AND orders.order_date BETWEEN :first_read AND :last_read")}) o
     WHERE day BETWEEN :first AND :last AND of_month IS NOT NULL GROUP BY 1 ORDER BY 1
"""
_DIFFERENCES: Final = f"""
    SELECT order_id, order_number, ordered, expected, reported
      FROM ({of_orders(_SPAN)}) o
     WHERE {_WHOLE} AND abs(reported - expected) > {TOLERANCE}
     ORDER BY reported - expected DESC, order_id LIMIT :most
"""


async def add_payments(
    session: AsyncSession,
    caller: Caller,
    payments: Payments,
    now: datetime,
) -> PaymentsAdded:
    """Store the fees of a payments report; they replace the earlier fees of its orders. Raises
    OwnerRequired.
    """
    caller.must_be_owner()
    paid = payments.paid
    values: dict[str, object] = {
        "seller": caller.seller_id,
        "now": now,
        "numbers": [one.order_number for one in paid],
        "days": [one.paid_on for one in paid],
        "amounts": [one.amount for one in paid],
        "fees": [one.fees for one in paid],
    }
    changed = list(await session.scalars(text(_KEEP), values)) if paid else []
    if changed:
        of = {"seller": caller.seller_id, "changed": changed}
        await mark_changed(session, _DAYS, of)
        await mark(session, caller.seller_id, Figure.SALES_SUMS)
        note(session, caller, "payments.received", f"orders: {len(changed)}", now)
    return PaymentsAdded(len(paid), len(changed), payments.rejected, payments.read_as)


async def audit(reading: Reading, caller: Caller, first: date, last: date) -> FeeAudit:
    """Compare the reported and expected fees of the orders from `first` to `last`. Raises
    OwnerRequired, InvalidPayload.
    """
    values = span_values(caller, first, last, AUDIT_DAYS) | await profit.settings(reading, caller)
    values["most"] = FEE_DIFFERENCES
    statements = [_MONTHS, _DIFFERENCES, _REPORTED]
    months, found, reports = await reading.together(statements, values, last=True)
    differences = [_difference(values["fee_level"], *row) for row in found]
    return FeeAudit(
        [_month(*row) for row in months],
        differences,
        sum(row[4] for row in months),
        claim_of(differences),
        [_month(*row) for row in reports],
    )


def _month(month: date, orders: int, expected: Decimal, taken: Decimal, _: int) -> FeeMonth:
    return FeeMonth(month, orders, cents(expected), cents(taken), cents(taken - expected))


def _difference(
    level: FeeLevel,
    order_id: int,
    number: str,
    ordered: date | None,
    expected: Decimal,
    taken: Decimal,
) -> FeeDifference:
    rule = rule_of(schedule_on(ordered), level)
    more = cents(taken - expected)
    return FeeDifference(order_id, number, ordered, cents(expected), cents(taken), more, rule)


def claim_of(differences: Sequence[FeeDifference]) -> str:
    """Return a text that lists the overcharged orders; empty if there are none. Pure."""
    over = [one for one in differences if Decimal(one.difference) > 0]
    if not over:
        return ""
    total = sum((Decimal(one.difference) for one in over), Decimal(0))
    lines = [
        f"{one.order_number} ({one.order_date}): expected ${one.expected}, charged ${one.taken},"
        f" ${one.difference} too much"
        for one in over
    ]
    first = f"The fees of these {len(over)} orders are higher than the fee schedule says"
    rules = list(dict.fromkeys(one.rule for one in over))
    return "\n".join(
        [
            f"{first}, by ${total} in total. Please check them.",
            *lines,
            *(f"Schedule: {rule}." for rule in rules),
        ]
    )

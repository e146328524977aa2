"""The orders that can be pulled: the rule as a function and as SQL are the same rule."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import text

from cardsync.sales.orders import pullable
from orders_builder import an_order

TO_SHIP = [
    "Completed - Paid",
    "Ready to Ship",
    "READY TO SHIP",
    "Processing",
    "processing",
    "Paid",
    " paid ",
]
NOT_TO_SHIP = [
    None, "", "Completed", "Shipped - In Transit", "Shipped - Delivered", "shipped", "Canceled",
    "Cancelled", "Refunded", "Pending",
    "Unpaid", "Not Paid", "Processing - Canceled", "Paid, partially shipped", "ſhipped", "PAİD",
]  # fmt: skip
MARKED = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize("status", TO_SHIP)
def test_paid_ready_and_processing_orders_are_to_be_shipped_unless_refunded(status):
    assert pullable.to_ship(status, None)
    assert not pullable.to_ship(status, Decimal(0))


@pytest.mark.parametrize("status", NOT_TO_SHIP)
def test_all_others_are_not(status):
    assert not pullable.to_ship(status, None)


@pytest.mark.parametrize(
    ("facts", "can"),
    [
        ({}, True),
        ({"to_ship": False}, False),
        ({"shipped_marked_at": MARKED}, False),
        ({"pull_dismissed_at": MARKED}, False),
        ({"in_open_session": True}, False),
        ({"pulled": True}, False),
        ({"missing": True}, False),
    ],
)
def test_each_fact_alone_keeps_an_order_from_being_pulled(facts, can):
    free = {
        "to_ship": True,
        "shipped_marked_at": None,
        "pull_dismissed_at": None,
        "in_open_session": False,
    }
    assert pullable.can_be_pulled(**free | facts) is can


@pytest.mark.parametrize(
    ("status", "marked", "pending"),
    [
        ("Ready to Ship", None, False),
        ("Ready to Ship", MARKED, True),
        (None, MARKED, True),
        ("Completed", MARKED, True),
        ("Shipped - In Transit", MARKED, False),
        ("Canceled", MARKED, False),
        ("Refunded", MARKED, False),
    ],
)
def test_a_mark_is_pending_until_the_synced_status_says_shipped_or_never(status, marked, pending):
    assert pullable.marked_shipped_pending(status, marked) is pending


@pytest.mark.parametrize(
    ("status", "marked", "review"),
    [
        ("Ready to Ship", None, False),
        ("Ready to Ship", MARKED, False),
        ("Shipped - In Transit", None, True),
        ("Shipped - In Transit", MARKED, False),
        ("Canceled", None, True),
        ("Canceled", MARKED, True),
        (None, None, True),
    ],
)
def test_what_changed_is_reviewed_but_a_shipment_that_was_marked_is_no_surprise(
    status, marked, review
):
    to_ship = pullable.to_ship(status, None)
    assert pullable.needs_review(status=status, to_ship=to_ship, shipped_marked_at=marked) is review


async def test_sql_decides_as_the_functions_do(a_seller):
    seller = await a_seller()
    for status in TO_SHIP + NOT_TO_SHIP:
        for refund in (None, Decimal(0), Decimal("1.50")):
            for marked in (None, MARKED):
                for dismissed in (None, MARKED):
                    columns = {
                        "refund_amt": refund,
                        "shipped_marked_at": marked,
                        "pull_dismissed_at": dismissed,
                    }
                    await an_order(seller, status=status, **columns)
    decided = (
        f"SELECT orders.*, {pullable.PULLABLE} AS pullable,"
        f" {pullable.MARKED_SHIPPED_PENDING} AS pending,"
        f" {pullable.STATES['on_the_way']} AS on_the_way,"
        f" {pullable.STATES['delivered']} AS delivered, {pullable.STATES['to_ship']} AS unshipped,"
        f" {pullable.NEEDS_REVIEW} AS review, {pullable.TO_SHIP} AS to_ship FROM orders"
        " WHERE seller_id = :seller"
    )
    async with seller.service.app.state.database.tenant(seller.id) as session:
        values = {"seller": seller.id}
        statuses = await session.scalars(text(pullable.TO_SHIP_STATUSES), values)
        values |= {"to_ship_statuses": statuses.all()}
        rows = (await session.execute(text(decided), values)).mappings().all()
    assert len(rows) == 12 * len(TO_SHIP + NOT_TO_SHIP)
    for row in rows:
        status, marked = row["status"], row["shipped_marked_at"]
        to_ship = pullable.to_ship(status, row["refund_amt"])
        dismissed = row["pull_dismissed_at"]
        assert row["to_ship"] is to_ship, row
        assert row["unshipped"] is (to_ship and marked is None), row
        assert row["on_the_way"] is pullable.on_the_way(status, row["refund_amt"], marked), row
        assert row["delivered"] is pullable.delivered(status, row["refund_amt"]), row
        places = [row["unshipped"], row["on_the_way"], row["delivered"]]
        assert sum(places) <= (row["refund_amt"] is None), row
        assert row["pending"] is pullable.marked_shipped_pending(status, marked), row
        assert row["review"] is pullable.needs_review(
            status=status, to_ship=to_ship, shipped_marked_at=marked
        ), row
        assert row["pullable"] is pullable.can_be_pulled(
            to_ship=to_ship,
            shipped_marked_at=marked,
            pull_dismissed_at=dismissed,
            in_open_session=False,
        ), row

"""An order's row as JSON: money in its own scale, what strangers wrote made readable, what is not
refunded said so.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.sales.orders.schemas import ItemRow, OrderRow, line_total, money, order_body, readable

AN_ORDER = OrderRow(
    id=1, order_number="A-1", buyer_name=None, order_date=None, order_placed_at=None, status=None,
    status_group="Unknown",
    product_amt=None, shipping_amt=None, total_amt=None, shipping_type="pwe",
    shipping_item_count=None, items_quantity=0,
    items_total=0, shipped_marked_at=None, pull_dismissed_at=None, pulled_at=None, missing_count=0, under_way=[4, 7], refund_type=None,
    refund_origin=None, refund_amt=None,
    refund_reason=None, refund_note=None, feedback_rating=None, feedback_comment=None,
    product_weight=None, refund_total_given=None,
)  # fmt: skip


def shown(items=(), **columns) -> dict:
    return msgspec.to_builtins(order_body(AN_ORDER._replace(**columns), items))


@pytest.mark.parametrize(
    ("amount", "text"),
    [("1", "1.00"), ("1.5", "1.50"), ("1.50", "1.50"), ("1.2300", "1.2300"), ("0", "0.00"),
     ("-3.1", "-3.10"), ("1E+3", "1000.00"),
     ("0.0001", "0.0001"), ("1E-7", "0.0000001")],
)  # fmt: skip
def test_money_keeps_its_scale_and_has_two_decimals_at_least(amount, text):
    assert money(Decimal(amount)) == text


def test_no_money_is_null():
    assert money(None) is None


@pytest.mark.parametrize(
    ("quantity", "price", "total"),
    [(3, "1.500", "4.50"), (1, "0.005", "0.01"), (1, "0.0049", "0.00"), (3, "0.335", "1.01"),
     (0, "5", "0.00"), (-1, "0.005", "-0.01"),
     (2**31 - 1, "99999999.9999", "214748364699785251.64")],
)  # fmt: skip
def test_line_totals_round_half_up(quantity, price, total):
    assert line_total(quantity, Decimal(price)) == total


@given(st.integers(0, 10**6), st.decimals(0, 10**6, places=4))
def test_a_line_total_is_never_more_than_half_a_cent_off(quantity, price):
    exact = quantity * Fraction(price)
    off = Fraction(line_total(quantity, price)) - exact
    assert -Fraction(1, 200) < off <= Fraction(1, 200)


@pytest.mark.parametrize(("quantity", "price"), [(None, Decimal(1)), (1, None), (None, None)])
def test_without_quantity_or_price_there_is_no_line_total(quantity, price):
    assert line_total(quantity, price) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("plain", "plain"), ("", ""), (None, None), ("a\nb\tc\x00d\x7f\x85e", "abcde"),
        ("a\u200bb\u200d\ufeff\u202ec\u00add", "abcd"),
        ("Ärger \N{NO-BREAK SPACE}— 東 🂡", "Ärger \N{NO-BREAK SPACE}— 東 🂡"), ("\U000e0041x", "x"),
    ],
)  # fmt: skip
def test_control_and_zero_width_characters_are_removed(text, read):
    assert readable(text) == read


def test_text_is_bounded_after_what_cannot_be_seen_is_gone():
    assert readable("\u200b" * 400 + "x" * 600) == "x" * 500


def test_an_order_of_which_little_is_known():
    assert shown() == {
        "id": 1, "order_number": "A-1", "buyer_name": None, "order_date": None,
        "order_placed_at": None, "status": "Unknown",
        "product_amt": None, "shipping_amt": None, "total_amt": None, "shipping_type": "pwe",
        "item_count": 0,
        "shipped_marked_at": None, "marked_shipped_pending": False, "pull_dismissed_at": None,
        "pulled_at": None, "missing_count": 0, "copies_pulled": 4, "copies_to_pull": 7,
        "refund_type": None,
        "refund_origin": None, "refund_amt": None, "refund_reason": None, "refund_note": None,
        "feedback_rating": None,
        "feedback_comment": None, "shipping_item_count": None, "product_weight": None,
        "refund_total_amt": None, "items": [], "items_truncated": False, "items_total_count": 0,
    }  # fmt: skip


def test_dates_and_moments():
    told = shown(order_date=date(2026, 7, 3), order_placed_at=datetime(2026, 7, 3, 4, tzinfo=UTC))
    assert (told["order_date"], told["order_placed_at"]) == ("2026-07-03", "2026-07-03T04:00:00Z")


REFUND = {
    "refund_type": "partial",
    "refund_origin": "seller",
    "refund_reason": "da\u200bmaged",
    "refund_note": "so\rrry",
}


def test_a_refund_of_zero_is_a_refund():
    told = shown(refund_amt=Decimal(0), **REFUND)
    assert [told[name] for name in ("refund_amt", *REFUND)] == [
        "0.00",
        "partial",
        "seller",
        "damaged",
        "sorry",
    ]


def test_without_an_amount_no_refund_is_told():
    told = shown(refund_amt=None, **REFUND)
    assert [told[name] for name in ("refund_amt", *REFUND)] == [None] * 5


def test_the_shipping_rows_count_goes_before_the_items():
    assert shown(items_quantity=4)["item_count"] == 4
    assert shown(items_quantity=4, shipping_item_count=0)["item_count"] == 0


def test_a_mark_is_pending_until_the_status_has_caught_up():
    marked = datetime(2026, 7, 3, tzinfo=UTC)
    assert shown(status="Ready to Ship", shipped_marked_at=marked)["marked_shipped_pending"] is True
    assert (
        shown(status="Shipped - In Transit", shipped_marked_at=marked)["marked_shipped_pending"]
        is False
    )


def test_items_and_whether_they_are_all():
    item = ItemRow(1, 7, "Snivy", "pokemon", None, 3, Decimal("1.500"))
    told = shown([item], items_total=2, items_quantity=9)
    assert told["items"] == [
        {"id": 7, "product_name": "Snivy", "product_line": "pokemon", "condition": None,
         "quantity": 3, "unit_price": "1.500", "line_total": "4.50"}
    ]  # fmt: skip
    assert (told["items_truncated"], told["items_total_count"]) == (True, 2)
    assert shown([item], items_total=1)["items_truncated"] is False
    assert shown([], items_total=1)["items_truncated"] is True

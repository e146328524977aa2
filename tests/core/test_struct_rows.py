"""A struct is filled from a row as its fields say."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform.kit.struct_rows import (
    Column,
    OfRow,
    Reads,
    ReadsFor,
    Usd,
    struct_of,
    struct_of_values,
)
from cardsync.platform.money import dollars, to_units, usd


class Step(msgspec.Struct):
    name: str
    done: bool = False


class Shown(msgspec.Struct):
    id: int
    game: Annotated[str, Column("product_line")]
    width: Annotated[str, Column("page.width"), Reads(str)]
    price: Usd | None
    note: Annotated[str, ReadsFor(lambda caller, text: text if caller == "owner" else "")]
    both: Annotated[str, OfRow(lambda row: f"{row.id} {row.note}")]
    steps: list[Step]
    seen_at: datetime | None
    more: str = "none"


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ROW = SimpleNamespace(
    id=7,
    product_line="magic",
    page=SimpleNamespace(width=Decimal("63.5")),
    price=Decimal("12.5000"),
    note="of a buyer",
    steps=[{"name": "log in", "done": True}],
    seen_at=NOON,
)


def test_a_row_becomes_the_struct_that_is_sent():
    assert msgspec.json.decode(msgspec.json.encode(struct_of(Shown, ROW, "owner"))) == {
        "id": 7,
        "game": "magic",
        "width": "63.5",
        "price": "12.50",
        "note": "of a buyer",
        "both": "7 of a buyer",
        "steps": [{"name": "log in", "done": True}],
        "seen_at": "2026-11-21T12:00:00Z",
        "more": "none",
    }


def test_the_caller_and_own_fields_decide():
    shown = struct_of(Shown, ROW, "staff", game="any", steps=[Step("by hand")])
    assert (shown.note, shown.game, shown.steps) == ("", "any", [Step("by hand")])


def test_a_row_that_is_not_there_is_null():
    shown = struct_of(Shown, None, id=1)
    assert (shown.id, shown.price, shown.seen_at, shown.more) == (1, None, None, "none")


def test_columns_have_the_order_of_the_fields():
    class Priced(msgspec.Struct):
        name: str
        price: Usd
        total: int

    assert struct_of_values(Priced, ("Opt", Decimal(3)), total=1) == Priced("Opt", "3.00", 1)
    with pytest.raises(ValueError, match="shorter"):
        struct_of_values(Priced, ("Opt",), total=1)


def test_a_field_without_a_column_is_no_null():
    with pytest.raises(AttributeError):
        struct_of(Shown, SimpleNamespace(id=1))


@given(
    st.decimals(-(10**8), 10**8, places=4)
    | st.decimals(-(10**8), 10**8, allow_nan=False)
    | st.integers(-(10**8), 10**8).map(Decimal)
)
def test_an_amount_is_the_text_of_its_ten_thousandths(amount):
    assert usd(amount) == dollars(to_units(amount))

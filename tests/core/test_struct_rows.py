"""A struct is filled from a row as its fields say."""

from __future__ import annotations

import builtins
import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from dis import get_instructions
from types import CodeType, FunctionType, SimpleNamespace
from typing import Annotated, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardsync
from cardsync.platform.kit.struct_rows import (
    Column,
    OfRow,
    Reads,
    ReadsFor,
    Usd,
    parts_of,
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
    assert (shown.id, shown.price, shown.note, shown.seen_at) == (1, None, None, None)


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


def _structs(kind: type = msgspec.Struct) -> set[type]:
    below = kind.__subclasses__()
    return {*below, *(one for each in below for one in _structs(each))}


def _globals_of(code: CodeType) -> Iterator[str]:
    yield from (one.argval for one in get_instructions(code) if one.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def test_the_functions_of_all_fields_find_their_names():
    """Imports every module: in an annotation, a lambda knows no name of its module, which no type
    checker sees.
    """
    for module in pkgutil.walk_packages(cardsync.__path__, "cardsync."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    unknown = [
        f"{struct.__module__}.{struct.__name__}.{field}: {name}"
        for struct in _structs()
        if struct.__module__.startswith("cardsync.")
        for field, hint in get_type_hints(struct, include_extras=True).items()
        for part in parts_of(hint)
        if isinstance(part, OfRow | Reads | ReadsFor) and isinstance(part.function, FunctionType)
        for name in _globals_of(part.function.__code__)
        if name not in part.function.__globals__ and not hasattr(builtins, name)
    ]
    assert unknown == []

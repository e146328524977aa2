"""The doors call operations in one way: `(session, reading or database, caller, …)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import cardsync

SOURCES = Path(cardsync.__file__).parent
DOORS = sorted(path for path in SOURCES.rglob("*.py") if path.stem.endswith(("routes", "pages")))
# An operator's command calls these as well, and has a seller's id in place of a caller.
TAKE_AN_ID = {"explain_card", "history"}


def names_the_caller(argument: ast.expr) -> bool:
    """Whether the argument is the caller, or a part of it such as `caller.seller_id`."""
    if isinstance(argument, ast.Attribute):
        return names_the_caller(argument.value)
    if isinstance(argument, ast.Call):
        return isinstance(argument.func, ast.Name) and argument.func.id == "provide_caller"
    return isinstance(argument, ast.Name) and argument.id == "caller"


def is_in_order(call: ast.Call) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    places = [place for place, argument in enumerate(call.args) if names_the_caller(argument)]
    whole = len(call.args) > 1 and not isinstance(call.args[1], ast.Attribute)
    return places == [1] and (whole or called in TAKE_AN_ID)


def calls_with_a_caller(source: str) -> Iterator[ast.Call]:
    """The awaited calls: what is pure is not awaited, nor is a transaction that is opened."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Await) and isinstance(call := node.value, ast.Call):
            named = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(names_the_caller(argument) for argument in named):
                yield call


def test_an_operation_takes_the_caller_second():
    found = [
        f"{door.relative_to(SOURCES)}:{call.lineno}: {ast.unparse(call)}"
        for door in DOORS
        for call in calls_with_a_caller(door.read_text())
        if not is_in_order(call)
    ]
    assert not found, "\n".join(found)


def test_the_check_finds_another_order_and_a_loose_id():
    for wrong in (
        "await operation(session, caller.seller_id, 1)",
        "await operation(session, store, caller)",
        "await operation(session, caller, caller.member_id)",
        "await operation(session, id=caller.seller_id)",
    ):
        [call] = calls_with_a_caller(wrong)
        assert not is_in_order(call), wrong
    for right in (
        "await lists.create_list(session, caller, name)",
        "await find_orders(reads, provide_caller(request), wanted)",
        "await ledger.history(session, caller.seller_id, 200)",
    ):
        [call] = calls_with_a_caller(right)
        assert is_in_order(call), right

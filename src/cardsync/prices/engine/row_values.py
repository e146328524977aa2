"""Computes the engine's expressions for the row of one card, without a frame. Pure.

A plan of Polars takes 10 ms for one card, most of it to optimize the plan; the same expressions on
plain values take less than one. The steps build their expressions by `col`, `lit`, `when`,
`coalesce`, `max_horizontal` and `min_horizontal`. These are the functions of Polars, but within
`of_row` they read the row, and the expression is a `Value`. As in Polars, null is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

if TYPE_CHECKING:
    from polars.expr.whenthen import When

Row = dict[str, Any]
_ROW: Final[ContextVar[Row | None]] = ContextVar("row", default=None)
_WORD: Final = 2**64 - 1
_A_DAY: Final = timedelta(days=1) // timedelta(microseconds=1)


@contextmanager
def of_row(row: Row) -> Iterator[None]:
    """Compute all expressions that this block builds with the values of `row`."""
    token = _ROW.set(row)
    try:
        yield
    finally:
        _ROW.reset(token)


def in_row() -> bool:
    return _ROW.get() is not None


def evaluated(made: Sequence[pl.Expr]) -> Row:
    """Return the values of expressions that were built within `of_row`, by their aliases."""
    values = cast(Sequence[Value], made)
    return {one.name: one.of for one in values}


def _plain(value: Any) -> Any:
    return value.of if isinstance(value, Value) else value


def _both(of: Callable[[Any, Any], Any]) -> Callable[[Value, Any], Value]:
    def made(left: Value, right: Any) -> Value:
        other = _plain(right)
        return Value(None if left.of is None or other is None else of(left.of, other))

    return made


def _turned(of: Callable[[Any, Any], Any]) -> Callable[[Value, Any], Value]:
    return _both(lambda left, right: of(right, left))


def _times(left: int, right: int) -> int:
    # Products of prices fit into 63 bits; those of a hold-out's draw are of unsigned words.
    return left * right & _WORD if left * right > _WORD else left * right


def _and(left: Value, right: Any) -> Value:
    other = _plain(right)
    if left.of is None or other is None:
        return Value(False if left.of is False or other is False else None)
    return Value(left.of & other)


def _or(left: Value, right: Any) -> Value:
    other = _plain(right)
    if left.of is None or other is None:
        return Value(True if left.of is True or other is True else None)
    return Value(left.of | other)


class Value:
    """A value of the row, or a value computed from it, with the methods of an expression."""

    __slots__ = ("name", "of")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, of: Any, name: str = "") -> None:
        self.of = of
        self.name = name

    def __bool__(self) -> bool:
        raise TypeError("a value of a row is computed by the steps, not by Python's if")

    __add__ = _both(operator.add)
    __radd__ = _turned(operator.add)
    __sub__ = _both(operator.sub)
    __rsub__ = _turned(operator.sub)
    __mul__ = _both(_times)
    __rmul__ = _turned(_times)
    __floordiv__ = _both(operator.floordiv)
    __mod__ = _both(operator.mod)
    __xor__ = _both(operator.xor)
    __lt__ = _both(operator.lt)
    __le__ = _both(operator.le)
    __gt__ = _both(operator.gt)
    __ge__ = _both(operator.ge)
    __eq__ = _both(operator.eq)  # type: ignore[assignment]
    __ne__ = _both(operator.ne)  # type: ignore[assignment]
    __and__ = _and
    __or__ = _or

    def __neg__(self) -> Value:
        return Value(None if self.of is None else -self.of)

    def __invert__(self) -> Value:
        return Value(None if self.of is None else not self.of)

    def alias(self, name: str) -> Value:
        return Value(self.of, name)

    def is_null(self) -> Value:
        return Value(self.of is None)

    def is_not_null(self) -> Value:
        return Value(self.of is not None)

    def is_in(self, known: Sequence[object]) -> Value:
        return Value(None if self.of is None else self.of in known)

    def ne_missing(self, other: Any) -> Value:
        return Value(self.of != _plain(other))

    def fill_null(self, other: Any) -> Value:
        return self if self.of is not None else Value(_plain(other))

    def abs(self) -> Value:
        return Value(None if self.of is None else abs(self.of))

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> Value:
        low, high = _plain(lower_bound), _plain(upper_bound)
        found = self.of
        if found is not None and low is not None:
            found = max(found, low)
        if found is not None and high is not None:
            found = min(found, high)
        return Value(found)

    def cast(self, _: pl.DataType | type[pl.DataType]) -> Value:
        """Convert a flag or a number to an integer type."""
        return Value(None if self.of is None else int(self.of))

    def reinterpret(self, *, signed: bool) -> Value:
        """Read the bits of an integer as those of an unsigned one."""
        assert not signed
        return Value(None if self.of is None else self.of & _WORD)

    @property
    def dt(self) -> Value:
        return self

    def total_days(self) -> Value:
        """Return the whole days of a duration, rounded toward zero."""
        if self.of is None:
            return self
        micros = self.of // timedelta(microseconds=1)
        return Value(micros // _A_DAY if micros >= 0 else -(-micros // _A_DAY))


class _Then(Value):
    """The value of the first condition that is true; null so far if none is."""

    __slots__ = ("_found",)

    def __init__(self, of: Any, *, found: bool) -> None:
        super().__init__(of)
        self._found = found

    def when(self, condition: Value) -> _When:
        return _When(condition, self if self._found else None)

    def otherwise(self, value: Any) -> Value:
        return Value(self.of) if self._found else _column(value)


class _When:
    __slots__ = ("_before", "_condition")

    def __init__(self, condition: Value, before: _Then | None = None) -> None:
        self._condition = condition
        self._before = before

    def then(self, value: Any) -> _Then:
        if self._before is not None:
            return self._before
        holds = self._condition.of is True
        return _Then(_column(value).of if holds else None, found=holds)


def _column(value: Any) -> Value:
    """Return an argument of a function as a value: a text names a column."""
    if isinstance(value, str):
        return _read(value)
    return value if isinstance(value, Value) else Value(value)


def _read(name: str) -> Value:
    row = _ROW.get()
    assert row is not None
    return Value(row[name], name)


def col(name: str) -> pl.Expr:
    return cast(pl.Expr, _read(name)) if in_row() else pl.col(name)


def lit(value: object, dtype: pl.DataType | type[pl.DataType] | None = None) -> pl.Expr:
    return cast(pl.Expr, Value(value)) if in_row() else pl.lit(value, dtype)


def when(condition: pl.Expr) -> When:
    return cast("When", _When(cast(Value, condition))) if in_row() else pl.when(condition)


def coalesce(*among: pl.Expr | str) -> pl.Expr:
    return _chosen(among, lambda known: known[0]) if in_row() else pl.coalesce(*among)


def max_horizontal(*among: pl.Expr | str) -> pl.Expr:
    return _chosen(among, max) if in_row() else pl.max_horizontal(*among)


def min_horizontal(*among: pl.Expr | str) -> pl.Expr:
    return _chosen(among, min) if in_row() else pl.min_horizontal(*among)


def _chosen(among: Sequence[pl.Expr | str], of: Callable[[list[Any]], Any]) -> pl.Expr:
    """Choose one of the values that are known; null if none is."""
    known = [value for one in among if (value := _column(one).of) is not None]
    return cast(pl.Expr, Value(of(known) if known else None))

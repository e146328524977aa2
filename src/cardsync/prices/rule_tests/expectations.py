"""Reads the expectation of a rule test, and writes the condition under which a priced card fails
it. Pure.

A card is judged by its present price and by its price under the rules. If no rule prices the card,
the second price is the present one. A card without any price fails no test.
"""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import ROUND_DOWN, Decimal
from typing import Final, Literal, NamedTuple

import polars as pl

from cardsync.platform.money import dollars, percent, read_amount, to_units
from cardsync.prices.engine.rules import WHOLE_BP

Kind = Literal["never moves", "never under", "never over", "equals", "at most"]
# A test cannot limit a move to more than 10,000 %.
_MOST_BP: Final = 100 * WHOLE_BP
_MONEY: Final = re.compile(
    r"(never under|never over|lands at|equals) \$?(\d{1,8}(?:\.\d{1,4})?)", re.ASCII
)
_MOVE: Final = re.compile(r"at most ([+-]) ?(\d{1,5}(?:\.\d{1,2})?) ?%", re.ASCII)


class BadExpectation(ValueError):
    """Error for a text that is no expectation."""


class Expectation(NamedTuple):
    """The expectation of a rule test. `amount` is a price in ten-thousandths of a dollar, or for
    `at most` a move in basis points: a positive amount limits rises, a negative one falls.
    """

    kind: Kind
    amount: int = 0

    @property
    def text(self) -> str:
        """Return the text from which `read_expectation` returns this expectation."""
        if self.kind == "never moves":
            return self.kind
        if self.kind != "at most":
            return f"{self.kind} {dollars(self.amount)}"
        return f"{self.kind} {'-' if self.amount < 0 else '+'}{percent(abs(self.amount))}"

    def failing(self) -> pl.Expr:
        """Return the condition under which a card fails, over `current_price` and `asks`, both in
        ten-thousandths.
        """
        now, then = pl.col("current_price"), pl.col("asks")
        failed = {
            "never moves": lambda: now.ne_missing(then),
            "never under": lambda: then < self.amount,
            "never over": lambda: then > self.amount,
            "equals": lambda: then != self.amount,
            "at most": lambda: _beyond(now, then, self.amount),
        }[self.kind]()
        return failed.fill_null(False)


def _beyond(now: pl.Expr, then: pl.Expr, bp: int) -> pl.Expr:
    bound = now * (WHOLE_BP + bp)
    return then * WHOLE_BP > bound if bp > 0 else then * WHOLE_BP < bound


def read_expectation(text: str) -> Expectation:
    """Read an expectation. Raises BadExpectation, whose sentence lists the accepted forms."""
    words = " ".join(text.lower().replace("\u2212", "-").split())
    if words == "never moves":
        return Expectation("never moves")
    if found := _MONEY.fullmatch(words):
        with suppress(ValueError):
            if amount := to_units(read_amount(found[2])):
                kind = "equals" if found[1] == "lands at" else found[1]
                return Expectation(kind, amount)  # type: ignore[arg-type]
    if found := _MOVE.fullmatch(words):
        bp = int((Decimal(found[2]) * 100).quantize(Decimal(1), ROUND_DOWN))
        least, most = (1, _MOST_BP) if found[1] == "+" else (1, WHOLE_BP)
        if least <= bp <= most:
            return Expectation("at most", bp if found[1] == "+" else -bp)
    raise BadExpectation(
        "must be one of: never moves, never under 20.00, never over 100.00, equals 4.99,"
        " at most +10%, at most -10%"
    )

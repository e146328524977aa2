"""Computes the sums of an offer's lines in cash, in credit and in a split. Pure.

Amounts are dollars in whole cents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from cardsync.buying.limits import STORE_CREDIT_MOST
from cardsync.buying.offers.models import State, Way
from cardsync.platform import errors

CENT: Final = Decimal("0.01")
ZERO: Final = Decimal(0)
# The weights of the conditions for lines that no rule has priced.
USUAL_GRADES: Final[Mapping[str, int]] = {
    "NM": 10_000,
    "LP": 8_500,
    "MP": 7_000,
    "HP": 5_000,
    "DMG": 3_000,
}
# The states that may follow each state.
NEXT: Final[Mapping[State, tuple[State, ...]]] = {
    "draft": ("offered", "expired"),
    "offered": ("accepted", "declined", "expired"),
    "accepted": ("received", "declined"),
    "received": ("received", "paid", "declined"),
    "paid": ("in_stock",),
    "in_stock": (),
    "declined": (),
    "expired": (),
}


class Priced(NamedTuple):
    """Copies with the same price. `cash` is None if they are not bought for cash, `credit` is None
    if they are not bought for credit.
    """

    copies: int
    cash: Decimal | None
    credit: Decimal | None


class Totals(NamedTuple):
    """The number of bought copies, their sums if paid in cash or in credit, and the number of lines
    that are not bought.
    """

    copies: int
    cash: Decimal
    credit: Decimal
    not_counted: int = 0


class Payment(NamedTuple):
    cash: Decimal
    credit: Decimal


def totals(lines: Iterable[Priced]) -> Totals:
    copies, cash, credit, not_counted = 0, ZERO, ZERO, 0
    for line in lines:
        if line.cash is None and line.credit is None:
            not_counted += line.copies > 0
            continue
        copies += line.copies
        cash += line.copies * (line.cash or ZERO)
        credit += line.copies * (line.credit or ZERO)
    return Totals(copies, cash, credit, not_counted)


def need_payable(lines: Iterable[Priced]) -> None:
    """Refuse lines whose sum in cash or in credit exceeds the limit. Raises InvalidPayload."""
    whole = totals(lines)
    if max(whole.cash, whole.credit) > STORE_CREDIT_MOST:
        raise errors.InvalidPayload(
            f"lines: an offer can pay at most {STORE_CREDIT_MOST:,} in cash or in credit"
        )


def payment(lines: Iterable[Priced], way: Way, cash_part: Decimal | None) -> Payment:
    """Return the payment in cash and in credit. In a split, `cash_part` is paid in cash and the
    rest in credit. Raises InvalidPayload.
    """
    lines = list(lines)
    whole = totals(lines)
    if way != "split":
        if cash_part is not None:
            raise errors.InvalidPayload("cash_part: only a split has it")
        return Payment(whole.cash, ZERO) if way == "cash" else Payment(ZERO, whole.credit)
    least = sum((x.copies * x.cash for x in lines if x.cash and x.credit is None), ZERO)
    if cash_part is None or not least <= cash_part <= whole.cash:
        raise errors.InvalidPayload(
            f"cash_part: in a split, {least:.2f} to {whole.cash:.2f} are paid in cash"
        )
    alone = sum((x.copies * x.credit for x in lines if x.credit and x.cash is None), ZERO)
    both = whole.cash - least
    left = (whole.cash - cash_part) / both if both else ZERO
    credit = alone + (whole.credit - alone) * left
    return Payment(cash_part, credit.quantize(CENT, ROUND_HALF_UP))


def cost_each(line: Priced, way: Way, share: Decimal) -> Decimal | None:
    """Return the shop's cost of a copy, or None if the copy is not bought in this way. `share` is
    the share of a split that is paid in cash.
    """
    if way == "cash" or (way == "split" and line.credit is None):
        return line.cash
    if way == "credit" or line.cash is None or line.credit is None:
        return line.credit
    mixed = line.cash * share + line.credit * (1 - share)
    return mixed.quantize(CENT, ROUND_HALF_UP)


def cash_share(lines: Iterable[Priced], cash_part: Decimal | None) -> Decimal:
    """Return the share of cash in a split's payment for the lines that are bought for cash and for
    credit.
    """
    both = least = ZERO
    for line in lines:
        if line.cash and line.credit is not None:
            both += line.copies * line.cash
        elif line.cash:
            least += line.copies * line.cash
    return ((cash_part or ZERO) - least) / both if both else ZERO


def regraded(each: Decimal | None, grades: Mapping[str, int], was: str, now: str) -> Decimal | None:
    """Return the price of a copy whose condition is `now` and not the offered condition `was`, by
    the weights of the rule that priced it. A condition that the rule does not buy has the price 0.
    """
    if each is None or was == now:
        return each
    of = grades or USUAL_GRADES
    before, after = of.get(was), of.get(now, 0)
    if not before:
        return ZERO
    return (each * after / before).quantize(CENT, ROUND_DOWN)


def need_next(state: State, to: State) -> None:
    """Refuse a change of the state that is not in `NEXT`. Raises OfferStateWrong."""
    if to not in NEXT[state]:
        words = state.replace("_", " ")
        raise errors.OfferStateWrong(
            f"the offer is {words}, so it can't become {to.replace('_', ' ')}"
        )

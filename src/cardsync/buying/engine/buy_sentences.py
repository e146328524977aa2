"""Writes the steps of a valued line as plain sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cardsync.buying.engine.wanted_lines import REASONS, ValuedLine, Why
from cardsync.catalog.condition import CODES
from cardsync.platform.money import dollars, percent

_BASES: Final = {
    "target": "Your own target",
    "market": "The market price",
    "low": "The lowest listing",
}
_GRADES: Final = {code: label.title() for label, code in CODES.items()}


def sentences(valued: ValuedLine) -> list[str]:
    """Return the steps of a line's price as sentences. If copies are not bought, the last sentence
    is the reason.
    """
    said = [_SAID[why.kind](*why.used) + _brings(why) for why in valued.why]
    if valued.reason is not None and valued.reason not in ("limit", "budget"):
        said.append(REASONS[valued.reason])
    return said


def _brings(why: Why) -> str:
    if why.cash is None or why.credit is None:
        return "."
    return f": ${dollars(why.cash)} in cash, ${dollars(why.credit)} in credit."


def _rule(name: str) -> str:
    return f"The buy rule “{name}” sets the price"


def _base(source: str, amount: int) -> str:
    return f"{_BASES[source]} of a Near Mint copy is ${dollars(amount)}"


def _other_base(base: str, source: str, grade: str, finish: str, amount: int) -> str:
    """Return the sentence about the price that was used in place of an unknown price."""
    whose = f"{_GRADES[grade]} copy"
    if finish:
        chosen = f"You chose the {finish} price: {_BASES[source].lower()} of a {whose}"
        return f"{chosen} is ${dollars(amount)}"
    unknown = f"{_BASES[base]} of a Near Mint copy is unknown"
    return f"{unknown}; {_BASES[source].lower()} of a {whose} is ${dollars(amount)}"


def _other_condition(grade: str, share: int, taken: str, of: int, amount: int) -> str:
    if grade == taken:
        return f"That is this copy's condition, ${dollars(amount)}"
    return (
        f"The rule counts {_GRADES[taken]} {percent(of)} and {_GRADES[grade]} {percent(share)}: "
        f"${dollars(amount)}"
    )


def _condition(grade: str, share: int, amount: int) -> str:
    return f"A {_GRADES[grade]} copy counts {percent(share)} of that, ${dollars(amount)}"


def _band(start: int, cash_bp: int, credit_bp: int) -> str:
    pays = f"the rule pays {percent(cash_bp)} in cash and {percent(credit_bp)} in credit"
    return f"From ${dollars(start)} on, {pays}" if start else f"T{pays[1:]}"


def _bulk(below: int, rarity: str, game: str) -> str:
    kind = " ".join(part for part in (rarity, game) if part)
    return f"Below ${dollars(below)} a card is bulk{f' ({kind})' if kind else ''}"


def _list(name: str, change_bp: int) -> str:
    more = "more" if change_bp >= 0 else "less"
    return f"It is on your list “{name}”, which pays {percent(abs(change_bp))} {more}"


def _days(days: int, start: int, less_bp: int) -> str:
    less = percent(less_bp)
    return (
        f"It takes {days} days to sell; the rule pays {less} less for cards that take {start} days"
        " or more"
    )


def _stock(held: int, start: int, less_bp: int) -> str:
    return (
        f"With {held} in stock, on order and in this offer, the rule pays {percent(less_bp)} less"
        f" for the next copy (from {start} copies)"
    )


def _limit(held: int, most: int) -> str:
    return f"With {held} in stock, on order and in this offer, the limit of {most} is reached"


def _budget() -> str:
    return "The budget is used up before the last copy"


_SAID: Final[dict[str, Callable[..., Any]]] = {
    "rule": _rule,
    "base": _base,
    "other_base": _other_base,
    "other_condition": _other_condition,
    "condition": _condition,
    "band": _band,
    "bulk": _bulk,
    "list": _list,
    "days": _days,
    "stock": _stock,
    "limit": _limit,
    "budget": _budget,
}

"""Parses the postage of a parcel by its value from a text such as `0:1.27,12:3.20`. Pure.

With this text, the postage of a parcel worth 11.99 is 1.27, and that of a parcel worth 12.00 is
3.20.
"""

from __future__ import annotations

from cardsync.platform.money import read_amount, to_units

MOST_STEPS = 10
_TAKES = "steps of value and postage like 0:1.27,12:3.20, the first from 0, or nothing"


def read_steps(value: str) -> list[tuple[int, int]]:
    """Return the steps as (value from, postage) in ten-thousandths. Raises ValueError."""
    steps = []
    for part in value.split(","):
        start, colon, postage = part.partition(":")
        if not colon:
            raise ValueError(_TAKES)
        steps.append((_amount(start), _amount(postage)))
    starts = [start for start, _ in steps]
    if len(steps) > MOST_STEPS or starts[0] != 0 or starts != sorted(set(starts)):
        raise ValueError(_TAKES)
    return steps


def postage_steps(value: str) -> str:
    """Return the text in its stored form. Raises ValueError with the accepted form."""
    read_steps(value)
    return ",".join(part.strip().replace(" ", "") for part in value.split(","))


def _amount(text: str) -> int:
    try:
        amount = read_amount(text)
    except ValueError as e:
        raise ValueError(_TAKES) from e
    if not 0 <= amount < 1_000_000:
        raise ValueError(_TAKES)
    return to_units(amount)

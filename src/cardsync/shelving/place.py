"""A place on the shelves: a box and a slot, with their code. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cardsync import errors, limits

_CODE: Final = re.compile(r"([0-9]{1,7}) *[-/ ] *([0-9]{1,7})", re.ASCII)


class Place(NamedTuple):
    box: int
    slot: int

    @property
    def code(self) -> str:
        return f"{self.box}-{self.slot}"


def copies(quantity: int) -> str:
    return "1 copy" if quantity == 1 else f"{quantity} copies"


def read_place(text: str) -> Place:
    """Read a code as a person writes it: 3-12, 3/12 or 3 12. Raises InvalidPayload."""
    written = _CODE.fullmatch(text.strip())
    place = Place(int(written[1]), int(written[2])) if written else None
    if place is None or not all(1 <= number <= limits.SHELF_NUMBER for number in place):
        raise errors.InvalidPayload(
            f"place: a box and a slot, like 3-12, each from 1 to {limits.SHELF_NUMBER:,}"
        )
    return place

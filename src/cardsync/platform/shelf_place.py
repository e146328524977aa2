"""A place on the shelves: a box and a slot, with their code, and the walking order of the boxes.
Pure.

A box has a number, or a label such as A1 or Binder 3. Labels that differ only in case, blanks or
leading zeros mean the same box. All tables identify a numbered box by its number. A labeled box has
an internal number, larger than the numbers that people write, in the table `shelf_box`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from cardsync.platform import errors, limits

Box: TypeAlias = int | str
"""A number from 1 to `limits.SHELF_NUMBER`, or a label"""
GivenBox: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=1, le=limits.SHELF_NUMBER)]
    | Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            # Blanks around a label and the number of blanks between its words do not count.
            max_length=limits.BOX_GIVEN,
            extra={"is": f"a label of 1 to {limits.BOX_LABEL} characters"},
        ),
    ]
)
Slot: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=limits.SHELF_NUMBER)]

# The box of a row `l` of card_location: the box's label, null if it has none, and its rank. A
# statement that uses these expressions binds `:seller`.
NAMED: Final = "LEFT JOIN shelf_box b ON b.seller_id = :seller AND b.box = l.box"
BOX: Final = "coalesce(to_jsonb(b.label), to_jsonb(l.box))"
WAY: Final = """coalesce(b.way, lpad(CAST(l.box AS text), 12, '0')) COLLATE "C" """

_DIGITS: Final = re.compile("[0-9]+")
_LAST_NUMBER: Final = re.compile("(.*?)([0-9]+)")
_CODE: Final = re.compile(r"(.+?) *[-/] *([0-9]{1,7})|([0-9]{1,7}) +([0-9]{1,7})", re.ASCII)


class Place(NamedTuple):
    box: Box
    slot: int

    @property
    def code(self) -> str:
        return f"{self.box}-{self.slot}"

    @property
    def way(self) -> tuple[str, int]:
        """The place's rank in walking order; two spellings of one place have the same rank."""
        return way_of(self.box), self.slot


def way_of(box: Box) -> str:
    """Return the rank of a box as a text that sorts letter by letter: labels that begin with a
    digit come first, digits compare as numbers, and case does not matter.
    """
    if isinstance(box, int):
        return f"{box:012}"
    ranked = _DIGITS.sub(lambda digits: digits[0].lstrip("0").zfill(12), box.casefold())
    return ranked if "0" <= ranked[:1] <= "9" else f":{ranked}"


def box_in(text: str) -> Box:
    """Parse a box as a person writes it. Raises ValueError with the reason."""
    label = unicodedata.normalize("NFKC", text).strip()
    kinds = set(map(unicodedata.category, label))
    if any(kind[0] == "C" for kind in kinds):
        raise ValueError("must have no invisible characters")
    label = " ".join(label.split())
    if not any(kind[0] in "LNS" for kind in kinds):
        raise ValueError("must have a letter or a digit, like A1")
    if len(label) > limits.BOX_LABEL:
        raise ValueError(f"must have at most {limits.BOX_LABEL} characters")
    if "/" in label:
        raise ValueError("must have no slash, which separates box and slot")
    if not (label.isascii() and label.isdigit()):
        return label
    number = int(label)
    if not number:
        raise ValueError("must be 1 or more, or have a letter")
    return number if number <= limits.SHELF_NUMBER else str(number)


def checked_box(given: Box, field: str = "box") -> Box:
    """Return the box in its stored form. Raises InvalidPayload."""
    try:
        return box_in(str(given))
    except ValueError as problem:
        raise errors.InvalidPayload(f"{field}: {problem}") from None


def boxes_between(first: Box, last: Box, most: int) -> list[Box]:
    """Return the boxes from one to another by their last numbers, such as A1 to A20, in the
    spelling of the first. The list is empty if the two differ in more than the last number, or if
    there are more than `most` boxes.
    """
    begins, ends = _LAST_NUMBER.fullmatch(str(first)), _LAST_NUMBER.fullmatch(str(last))
    if way_of(first) == way_of(last):
        return [first]
    if not begins or not ends or begins[1].lower() != ends[1].lower():
        return []
    low, high = int(begins[2]), int(ends[2])
    if not low <= high < low + most:
        return []
    width = len(begins[2])
    return [box_in(f"{begins[1]}{number:0{width}}") for number in range(low, high + 1)]


def place_in(text: str) -> Place:
    """Parse a code as a person writes it: 3-12, 3/12 or 3 12, A1-12, Binder 3-12. The slot follows
    the last hyphen. Raises ValueError with the reason.
    """
    written = _CODE.fullmatch(unicodedata.normalize("NFKC", text).strip())
    slot = int(written[2] or written[4]) if written else 0
    if not written or not 1 <= slot <= limits.SHELF_NUMBER:
        raise ValueError("must be a box and a slot, like 3-12 or A1-12")
    return Place(box_in(written[1] or written[3]), slot)


def read_place(text: str) -> Place:
    """Parse a code. Raises InvalidPayload."""
    try:
        return place_in(text)
    except ValueError as problem:
        raise errors.InvalidPayload(f"place: {problem}") from None

"""Checks an entry that a seller wants to list, and builds the columns of its draft from the entry
and its product. Pure.

Errors name the entry, its field and the reason.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.catalog.condition import CODES, LANGUAGES
from cardsync.catalog.printings import NORMAL, checked_printing
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.platform import errors, limits
from cardsync.platform.read_json import Amount, given_fields
from cardsync.platform.shelf_place import GivenBox, Slot, checked_box
from cardsync.platform.value_types import NamedRow, Values
from cardsync.stock.limits import CONTRIBUTION_CHARACTERS
from cardsync.stock.quick_add.models import QuickAdd

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTRIBUTION_CHARACTERS)]
Note = Annotated[str, msgspec.Meta(max_length=CONTRIBUTION_CHARACTERS)]
Id = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]
Quantity = Annotated[int, msgspec.Meta(ge=1, le=limits.SHELVED_QUANTITY)]

_LABELS = {code: name.title() for name, code in CODES.items()}
_CONDITIONS = {name: code for code in _LABELS for name in (code.lower(), _LABELS[code].lower())}
_LANGUAGES = {name.lower(): name for name in LANGUAGES}


class Wanted(msgspec.Struct):
    """A card to list, identified by `product_id`, by a member's `contribution_id`, or by `name` and
    `set` with `number` and `game`. `game` is needed unless the card is in the catalog of exactly
    one of the account's product lines.

    `marketplace_id` is the marketplace's own id of the card, if the seller knows it. A custom
    listing has both `title` and `photo_url`.
    """

    quantity: Quantity
    condition: Text | None = None
    printing: Text | None = None
    language: Text | None = None
    product_id: Id | None = None
    contribution_id: Id | None = None
    game: Text | None = None
    name: Text | None = None
    """The card's name"""
    set_name: Text | None = msgspec.field(default=None, name="set")
    number: Text | None = None
    marketplace_id: Id | None = None
    price: Amount | None = None
    cost: Amount | None = None
    """The cost of a copy, in USD"""
    source: Note = ""
    box: GivenBox | None = None
    slot: Slot | None = None
    title: Note = ""
    """The title of a custom listing"""
    photo_url: Note = ""


class Changes(msgspec.Struct):
    """Changes of a draft. Fields that are not sent keep their values; null removes a price, a cost,
    a place or the marketplace's id.
    """

    quantity: Quantity | UnsetType = UNSET
    condition: Text | UnsetType = UNSET
    printing: Text | UnsetType = UNSET
    language: Text | UnsetType = UNSET
    marketplace_id: Id | UnsetType | None = UNSET
    price: Amount | UnsetType | None = UNSET
    cost: Amount | UnsetType | None = UNSET
    source: Note | UnsetType = UNSET
    box: GivenBox | UnsetType | None = UNSET
    slot: Slot | UnsetType | None = UNSET
    title: Note | UnsetType = UNSET
    """The title of a custom listing"""
    photo_url: Note | UnsetType = UNSET


class Described(NamedTuple):
    """A product in the spelling of the marketplace's file. `condition` and `language` are None
    unless the product is from a contribution.
    """

    product_id: int
    product_line: str
    product_name: str
    set_name: str
    number: str
    rarity: str
    condition: str | None = None
    printing: str | None = None
    language: str | None = None


def columns_of(wanted: Wanted, product: Described, at: str) -> dict[str, object]:
    """Return the draft's columns; `at` is the entry's prefix in error messages. Raises
    InvalidPayload.
    """
    if wanted.condition is None and product.condition is None:
        raise errors.InvalidPayload(f"{at}condition: it is missing")
    return checked(
        {
            "product_id": product.product_id,
            "product_line": product.product_line,
            "product_line_label": LABEL_BY_NAME.get(product.product_line, product.product_line),
            "set_name": product.set_name,
            "product_name": product.product_name,
            "number": product.number,
            "rarity": product.rarity,
            "condition": wanted.condition or product.condition,
            "printing": wanted.printing or product.printing or NORMAL,
            "language": wanted.language or product.language or "English",
            "listing_id": wanted.marketplace_id,
            "contribution_id": wanted.contribution_id,
            "box": None if wanted.box is None else checked_box(wanted.box, f"{at}box"),
            **{
                name: getattr(wanted, name)
                for name in (
                    "quantity", "price", "cost", "source", "slot", "title", "photo_url",
                )
            },
        },
        at,
        product.printing,
    )  # fmt: skip


def changed_columns(changes: Changes) -> Values:
    given = given_fields(changes)
    if "marketplace_id" in given:
        given["listing_id"] = given.pop("marketplace_id")
    if given.get("box") is not None:
        given["box"] = checked_box(given["box"])
    return given


def checked(row: Values, at: str = "", own: str | None = None) -> Values:
    """Return the draft's columns in the marketplace's spelling; `own` is the printing of the
    draft's product. Raises InvalidPayload.
    """
    row = row | {
        "condition": _one_of(f"{at}condition", row["condition"], _CONDITIONS),
        "printing": checked_printing(f"{at}printing", row["printing"], row["product_line"], own),
        "language": _one_of(f"{at}language", row["language"], _LANGUAGES),
        "price": _amount(f"{at}price", row["price"]),
        "cost": _amount(f"{at}cost", row["cost"]),
        "title": row["title"].strip(),
        "photo_url": row["photo_url"].strip(),
    }
    if (row["box"] is None) != (row["slot"] is None):
        raise errors.InvalidPayload(f"{at}slot: a location needs a box and a slot")
    if row["contribution_id"] is not None and row["box"] is not None:
        raise errors.InvalidPayload(f"{at}box: a custom listing keeps its locations")
    if bool(row["title"]) != bool(row["photo_url"]):
        raise errors.InvalidPayload(f"{at}photo_url: a custom listing has a title and a photo")
    return row | {"condition_label": _label(row)}


def needs_before_listing(row: QuickAdd) -> str | None:
    """Return what a draft lacks to be listed on the marketplace, or None."""
    if row.price is None:
        return "needs a price before you publish"
    if row.price < Decimal("0.01"):
        return "needs a price of at least 0.01"
    return None


def _label(row: NamedRow) -> str:
    printing = "" if row["printing"] == NORMAL else f" {row['printing']}"
    language = "" if row["language"] == "English" else f" - {row['language']}"
    return f"{_LABELS[row['condition']]}{printing}{language}"


def _one_of(field: str, given: str, known: dict[str, str]) -> str:
    found = known.get(" ".join(given.lower().split()))
    if found is None:
        listed = ", ".join(dict.fromkeys(known.values()))
        raise errors.InvalidPayload(f"{field}: {given[:60]!r} is not one of {listed}")
    return found


def _amount(field: str, given: Decimal | None) -> Decimal | None:
    if given is None:
        return None
    if given < 0:
        raise errors.InvalidPayload(f"{field}: an amount like 1.50")
    return given

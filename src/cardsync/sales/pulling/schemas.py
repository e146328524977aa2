"""The JSON structs of queues, missing cards and links, and the functions that fill them from rows.
The structs for phones have no buyer's name or address. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from cardsync.access.caller import Buyer
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, Usd, struct_of
from cardsync.platform.shelf_place import Place
from cardsync.platform.value_types import JsonObject
from cardsync.sales.orders.pull_models import MissingReason
from cardsync.sales.pulling.progress import Outcome, State
from cardsync.sales.pulling.queue import Entry, PhoneLink, Queue


class PullLine(msgspec.Struct):
    """A line of the queue. `surplus` is the number of pulled copies beyond the wanted ones, which
    must be returned to the shelf. `changed` names the values of the order that an upload changed
    since the pull was opened. `claimed`: another phone shows the line.
    """

    item_id: int
    order_id: int
    order_number: str
    name: str
    set_name: str
    number: str
    printing: str
    condition: str
    rarity: str
    photo_url: str
    shipping_type: str
    place: Annotated[str | None, OfRow(lambda entry: entry.place and entry.place.code)]
    wanted: Annotated[int, Column("line.wanted")]
    pulled: Annotated[int, Column("line.pulled")]
    surplus: Annotated[int, Column("line.surplus")]
    state: Annotated[State, Column("line.state")]
    changed: list[str]
    claimed: bool
    last_mark: str


class OtherCopy(msgspec.Struct):
    """Another copy of a missing card. `same`: the copy is of the same listing, at another place."""

    card_id: int
    """The id of the copy's card"""
    condition_label: str
    price: str | None
    """The card's current price, in USD; null: none"""
    quantity: int
    """The copies in stock"""
    location_code: str | None
    same: bool
    """The copy is of the same listing, at another place"""


_FirstPlace = Annotated[
    str | None,
    OfRow(lambda row: None if row.box is None else Place(row.box, row.slot).code),
]


class MissingCard(msgspec.Struct):
    """A card that was not found in a pull and has no decision. `unit_price` is the item's price and
    `total_amt` the order's total, null if unknown; `location_code` is the place where the card
    should be.
    """

    order_id: int
    item_id: int
    session_id: int
    order_number: str
    buyer_name: Buyer
    product_name: str | None
    product_line: str | None
    set_name: str | None
    condition: str | None
    quantity: int
    missing_at: datetime
    """When the card was reported as missing"""
    missing_by: Annotated[str, Reads(lambda by: by or "")]
    """The person who reported it; empty: unnamed"""
    reason: Annotated[
        str,
        Like(MissingReason),
        Column("missing_reason"),
        Reads(lambda reason: reason or "not_there"),
    ]
    """not_there: its place is empty; damaged; other_card: another card is at its place"""
    unit_price: Usd | None
    """The price that the buyer paid for a copy, in USD"""
    total_amt: Usd | None
    card_id: int | None
    """The id of the item's card; null: the shop has no such card"""
    location_code: _FirstPlace
    other_copies: list[OtherCopy]
    """Copies that can be sent instead, the same listing first"""


class MissingCards(msgspec.Struct):
    cards: list[MissingCard]
    """The missing cards, the oldest first"""


class PullProgress(msgspec.Struct):
    """The numbers of copies. `by_person` has the key "" for phones without a name."""

    wanted: int
    pulled: int
    missing: int
    by_person: dict[str, int]


class PullQueue(msgspec.Struct):
    session_id: int
    product_line: str | None
    progress: PullProgress
    lines: list[PullLine]


class MarkOutcome(msgspec.Struct):
    """`put_back` copies of this mark are surplus."""

    id: str
    outcome: Outcome
    put_back: int


class PullMarks(PullQueue, kw_only=True):
    outcomes: list[MarkOutcome]


class PullLinkShown(msgspec.Struct):
    id: int
    session_id: int
    product_line: str | None
    """The game; null: all games"""
    made_by: str
    """The member who created the link"""
    created_at: datetime
    revoked_at: datetime | None
    ended: bool
    """The pull has ended, so the link no longer works"""


class PullLinks(msgspec.Struct):
    links: list[PullLinkShown]


class PullLinkMade(msgspec.Struct):
    """`url` opens the queue on a phone. The URL for one game is returned only this once."""

    id: int
    session_id: int
    product_line: str | None
    """The game; null: all games"""
    url: str


class PullLinksMade(msgspec.Struct):
    links: list[PullLinkMade]


def pull_queue(queue: Queue, link: PhoneLink, device: str) -> PullQueue:
    return PullQueue(**_queue_json(queue, link, device))


def pull_marks(
    queue: Queue, link: PhoneLink, device: str, outcomes: list[MarkOutcome]
) -> PullMarks:
    return PullMarks(**_queue_json(queue, link, device), outcomes=outcomes)


def _queue_json(queue: Queue, link: PhoneLink, device: str) -> JsonObject:
    line = link.product_line
    entries = queue.of_line(line)
    return {
        "session_id": link.session_id,
        "product_line": line,
        "progress": progress_of(queue, line),
        "lines": [pull_line(entry, device) for entry in entries],
    }


def progress_of(queue: Queue, product_line: str | None) -> PullProgress:
    entries = queue.of_line(product_line)
    return PullProgress(
        wanted=sum(entry.line.wanted for entry in entries),
        pulled=sum(entry.line.pulled for entry in entries),
        missing=sum(entry.line.state == "missing" for entry in entries),
        by_person=queue.by_person(product_line),
    )


def pull_line(entry: Entry, device: str) -> PullLine:
    return struct_of(PullLine, entry, claimed=entry.claimed_by not in ("", device))

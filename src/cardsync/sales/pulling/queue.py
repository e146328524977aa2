"""Reads the queue of an open session: the lines to pull in shelf order, each with its card, place
and state, but without the buyer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, found
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.shelf_place import Place
from cardsync.sales.orders.pull_changes import CHANGED
from cardsync.sales.orders.pull_models import MissingOutcome
from cardsync.sales.orders.pullable import NEEDS_REVIEW
from cardsync.sales.pulling.progress import Line, Mark, Progress, fold
from cardsync.stock.shelving.places import places_of_items

LINES = queries_of(__package__)["lines"].format(needs_review=NEEDS_REVIEW, changed=CHANGED)
MARKS = """
SELECT id, kind, item_id, device, person, quantity, undoes FROM pull_mark
 WHERE seller_id = :seller AND session_id = :session ORDER BY received
"""
CLAIMS = """
SELECT item_id, device FROM pull_claim
 WHERE seller_id = :seller AND session_id = :session AND until > :now
"""


# The condition for the items of a link's queue.
OF_LINK = "(CAST(:line AS text) IS NULL OR coalesce(product_line, '') = :line)"
_SKU = f"""
SELECT sku_id FROM pull_session_item
 WHERE seller_id = :seller AND session_id = :session AND item_id = :item AND {OF_LINK} LIMIT 1
"""


class PhoneLink(msgspec.Struct, frozen=True):
    """A phone's valid link, for the queue of one product line, or of all if it is None."""

    id: int
    session_id: int
    product_line: str | None


@dataclass
class Entry:
    """A line of an order in the queue. `last_mark` is the id of the line's newest mark that is not
    undone; `settled` is the decision about a missing card.
    """

    item_id: int
    order_id: int
    order_number: str
    product_line: str
    name: str
    set_name: str
    condition: str
    rarity: str
    wanted: int
    sku_id: int | None
    photo_url: str
    number: str
    printing: str
    stopped: bool
    changed: list[str]
    shipping_type: str
    settled: MissingOutcome | None
    place: Place | None
    line: Line
    claimed_by: str = ""
    last_mark: str = ""

    @property
    def open(self) -> bool:
        return self.line.state in ("waiting", "deferred") and self.settled is None

    @property
    def done(self) -> bool:
        """Return whether nothing is left to pull: all copies are pulled, or the order is sent
        without the missing card.
        """
        return self.line.state == "pulled" or self.settled in ("refund", "message")


@dataclass
class Queue:
    entries: list[Entry]
    progress: Progress
    marks: list[Mark] = field(default_factory=list)

    def of_line(self, product_line: str | None) -> list[Entry]:
        """Return the entries of a product line; for None, all entries."""
        every = product_line is None
        return [one for one in self.entries if every or one.product_line == product_line]

    def by_person(self, product_line: str | None) -> dict[str, int]:
        """Return the number of pulled copies of a product line, by person."""
        here = {entry.item_id for entry in self.of_line(product_line)}
        wanted = {id: line.wanted for id, line in self.progress.lines.items() if id in here}
        marks = [mark for mark in self.marks if mark.item_id in here or mark.kind == "undo"]
        stopped = [id for id in here if self.progress.lines[id].stopped]
        return fold(wanted, stopped, marks).by_person


async def read_queue(source: Source, caller: Caller, session_id: int, now: datetime) -> Queue:
    """Return all lines of the session, in the order for phones."""
    seller_id = caller.seller_id
    named = {"seller": seller_id, "session": session_id, "now": now}
    places, (rows, mark_rows, claim_rows) = await each_of(
        source,
        places_of_items(source, seller_id, session_id),
        in_one_message(source, [LINES, MARKS, CLAIMS], named),
    )
    marks = [Mark(**row._asdict()) for row in mark_rows]
    claims = dict(claim_rows)
    progress = fold(
        {row.item_id: row.wanted for row in rows},
        [row.item_id for row in rows if row.stopped],
        marks,
    )
    last = _last_marks(marks, progress)
    entries = [_entry(row, progress, places, claims, last) for row in rows]
    return Queue(sorted(entries, key=in_shelf_order), progress, marks)


def _entry(
    row: Any,
    progress: Progress,
    places: dict[int, Place],
    claims: dict[int, str],
    last: dict[int, str],
) -> Entry:
    item = row.item_id
    return Entry(
        **row._asdict(),
        place=places.get(item),
        line=progress.lines[item],
        claimed_by=claims.get(item, ""),
        last_mark=last.get(item, ""),
    )


def _last_marks(marks: Iterable[Mark], progress: Progress) -> dict[int, str]:
    counts = ("counted", "surplus")
    return {
        mark.item_id: mark.id
        for mark in marks
        if mark.kind != "undo" and progress.outcomes.get(mark.id) in counts
    }


def in_shelf_order(entry: Entry) -> tuple[object, ...]:
    """Return the sort key: place, set, number, name. Cards without a place are after cards with a
    place. Deferred cards are after all others, in the order in which they were deferred.
    """
    deferred = entry.line.deferred if entry.line.state == "deferred" else 0
    place = entry.place
    return (
        deferred,
        place is None,
        place.way if place else ("", 0),
        entry.set_name.casefold(),
        _number(entry.number),
        entry.name.casefold(),
        entry.order_id,
        entry.item_id,
    )


def _number(number: str) -> tuple[int, str]:
    """Return the sort key of a collector number, which sorts 9 before 10."""
    digits = "".join(sign for sign in number.partition("/")[0] if sign in "0123456789")
    return (int(digits) if digits else 0, number)


async def sku_of(session: AsyncSession, caller: Caller, link: PhoneLink, item_id: int) -> int:
    """Return the SKU of a line in the link's queue; for a line without a SKU 0, which no card has.
    Raises NotFound.
    """
    values = {
        "seller": caller.seller_id,
        "session": link.session_id,
        "line": link.product_line,
        "item": item_id,
    }
    for [sku_id] in await found(session, _SKU, values):
        return sku_id or 0
    raise errors.NotFound("there is no such card in this pull")

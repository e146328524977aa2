"""Authenticates requests of phones by the token in the URL, and reads the marks that they send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from litestar.response import Stream

from cardsync.access.link_tokens import LINK, admitting_links
from cardsync.platform import errors, limits
from cardsync.sales.limits import PULL_MARKS_AT_ONCE, PULL_QUANTITY
from cardsync.sales.orders.pull_models import MissingReason
from cardsync.sales.pulling.phone_links import caller_with_link
from cardsync.sales.pulling.progress import Mark
from cardsync.sales.pulling.queue import PhoneLink

NOT_KEPT = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_ID = r"^[A-Za-z0-9_-]{8,64}$"
MarkId = Annotated[str, msgspec.Meta(pattern=_ID)]
Device = Annotated[str, msgspec.Meta(pattern=_ID)]
ItemId = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]


class SentMark(msgspec.Struct):
    """A mark that a phone sends. The phone creates `id`; `sequence` numbers the phone's marks.
    `undoes` is the id of the mark that an undo removes. `reason` is why a card is missing.
    """

    id: MarkId
    kind: Literal["pulled", "defer", "missing", "undo"]
    item_id: ItemId
    sequence: Annotated[int, msgspec.Meta(ge=0, le=limits.LARGEST_ID)] = 0
    quantity: Annotated[int, msgspec.Meta(ge=1, le=PULL_QUANTITY)] = 1
    undoes: Annotated[str, msgspec.Meta(max_length=64)] = ""
    reason: MissingReason = "not_there"


class SentMarks(msgspec.Struct):
    device: Device
    marks: Annotated[list[SentMark], msgspec.Meta(min_length=1, max_length=PULL_MARKS_AT_ONCE)]
    person: Annotated[str, msgspec.Meta(max_length=limits.MEMBER_NAME_CHARACTERS)] = ""


class SentClaim(msgspec.Struct):
    device: Device
    item_id: ItemId


def marks_of(sent: SentMarks) -> list[tuple[Mark, int]]:
    """Return the marks with their sequence numbers. Raises InvalidPayload if an undo has no
    `undoes`, or another mark has it.
    """
    for mark in sent.marks:
        if (mark.kind == "undo") != bool(mark.undoes):
            raise errors.InvalidPayload(
                f"undoes: mark {mark.id} must name a mark if it is an undo, and only then"
            )
    return [
        (
            Mark(
                mark.id,
                mark.kind,
                mark.item_id,
                sent.device,
                sent.person.strip(),
                mark.quantity,
                mark.undoes,
                mark.reason,
            ),
            mark.sequence,
        )
        for mark in sent.marks
    ]


admitting_phones: Final = admitting_links(caller_with_link, "p")


def link_of(scope: Any) -> PhoneLink:
    return cast(PhoneLink, LINK.of(scope))


def event_stream(events: AsyncIterator[str]) -> Stream:
    return Stream(
        events,
        media_type="text/event-stream",
        headers=NOT_KEPT | {"X-Accel-Buffering": "no"},
    )

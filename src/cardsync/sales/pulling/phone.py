"""Admits a phone's request by the token in its address, and puts the caller and the link into the
request before the body is read. The token is the one credential; cookies are ignored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
from litestar.response import Stream

from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.platform import errors, limits
from cardsync.sales.limits import PULL_MARKS_AT_ONCE, PULL_QUANTITY
from cardsync.sales.orders.pull_models import MissingReason
from cardsync.sales.pulling.phone_links import caller_with_link
from cardsync.sales.pulling.progress import Mark
from cardsync.sales.pulling.queue import PhoneLink

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

NOT_KEPT = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_ID = r"^[A-Za-z0-9_-]{8,64}$"
MarkId = Annotated[str, msgspec.Meta(pattern=_ID)]
Device = Annotated[str, msgspec.Meta(pattern=_ID)]
ItemId = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]


class SentMark(msgspec.Struct):
    """A mark as a phone sends it. `id` is the phone's own, `sequence` counts the phone's marks, and
    `undoes` names the mark that an undo takes back, `reason` says why a card is missing.
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
    """Return the marks with their numbers. Raises InvalidPayload for an undo of nothing."""
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


def admitting_phones(app: ASGIApp) -> ASGIApp:
    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["litestar_app"].state
        limited: RateLimits = state.rate_limits
        token = str(scope["path_params"].get("token", ""))
        try:
            caller, link = await caller_with_link(state.database, token)
        except (errors.PullLinkEnded, errors.AccountSuspended):
            await limited.admit_anonymous(scope)
            raise
        await limited.admit_link(scope, link.id, scope["route_handler"].opt)
        scope["caller"] = caller  # type: ignore[typeddict-unknown-key]
        scope["pull_link"] = link  # type: ignore[typeddict-unknown-key]
        await app(scope, receive, send)

    return admitted


def link_of(scope: Any) -> PhoneLink:
    return cast(PhoneLink, scope["pull_link"])


def event_stream(events: AsyncIterator[str]) -> Stream:
    return Stream(
        events,
        media_type="text/event-stream",
        headers=NOT_KEPT | {"X-Accel-Buffering": "no"},
    )

"""Stores buyers' feedback with their orders, and counts the orders that received it.

The request itself applies the feedback, after all uploads that were accepted before.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.read_json import not_json
from cardsync.platform.work.jobs import Work
from cardsync.sales.errors import EmptyPayload, InvalidJson
from cardsync.sales.orders import ingest
from cardsync.sales.orders.cells import read_number
from cardsync.web import bodies

_ANY = msgspec.json.Decoder(Any, float_hook=str.encode)
_ABSENT = object()


class Feedback(NamedTuple):
    rating: int
    comment: str | None
    # True if the row contains a comment, even null.
    has_comment: bool


def read(body: bytes) -> dict[str, Feedback]:
    """Return the usable rows by order number; a later row of an order replaces an earlier row.

    Raises InvalidJson, InvalidPayload or EmptyPayload.
    """
    try:
        body.decode()
        rows = _ANY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InvalidJson(not_json(e, body)) from None
    if not isinstance(rows, list):
        raise errors.InvalidPayload("the body is not an array")
    if not rows:
        raise EmptyPayload
    given: dict[str, Feedback] = {}
    for row in rows:
        number = row.get("order_number") if isinstance(row, dict) else None
        rating = _rating(row.get("rating")) if isinstance(number, str) else None
        if not isinstance(number, str) or rating is None:
            continue
        number = number.replace("\0", "\ufffd")
        comment = row.get("comment", _ABSENT)
        if comment is None or isinstance(comment, str):
            given[number] = Feedback(rating, comment and comment.replace("\0", "\ufffd"), True)
        else:
            before = given.get(number)
            given[number] = Feedback(
                rating,
                before and before.comment,
                bool(before and before.has_comment),
            )
    return given


def _rating(value: object) -> int | None:
    number = read_number(value)
    return int(number) if number is not None and number in (1, 2, 3, 4, 5) else None


async def receive(work: Work, caller: Caller, body: bytes) -> int:
    """Apply feedback and return how many of the seller's orders received it.

    Raises the errors of `read`, and ServiceUnavailable if earlier uploads take too long.
    """
    seller_id = caller.seller_id
    given = await asyncio.to_thread(lambda: read(bodies.plain(body, limits.BODY_INFLATED_BYTES)))
    await ingest.work_off_pending(work, seller_id)
    async with work.database.tenant(seller_id) as session:
        sync_state.order_data_came(await sync_state.locked(session, seller_id), clock.now())
        if not given:
            return 0
        taken = await _store(session, seller_id, given)
        summary = f"feedback on {taken} of {len(given)} orders"
        note(session, caller, "feedback.received", summary, clock.now())
        return taken


async def _store(session: AsyncSession, seller_id: int, given: dict[str, Feedback]) -> int:
    values = {
        "seller": seller_id,
        "now": clock.now(),
        "numbers": list(given),
        "ratings": [one.rating for one in given.values()],
        "comments": [one.comment for one in given.values()],
        "carried": [one.has_comment for one in given.values()],
    }
    await run(session, UPDATE_SQL, values)
    return int(
        await session.scalar(
            text(
                "SELECT count(*) FROM orders"
                " WHERE seller_id = :seller AND order_number = ANY(CAST(:numbers AS text[]))"
            ),
            {"seller": seller_id, "numbers": list(given)},
        )
        or 0
    )


UPDATE_SQL = queries_of(__package__)["update_feedback"]

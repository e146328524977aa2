"""Sends webhooks: signs and posts each waiting delivery until its receiver accepts it.

A worker claims a delivery by setting the time of its next try, as if this try had failed. So two
workers do not send the same delivery, and if a worker is killed, the delivery is sent again later
with the same id. A turn sends to all receivers of a shop at the same time, so that a slow receiver
does not delay others. After a failure, a receiver gets nothing for a pause, which is longer after
each failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import procrastinate
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Values
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import SENDING, Work, jobs
from cardsync.platform.work.metrics import SENT
from cardsync.platform.work.streams import hold_mark, leave_mark
from cardsync.shop.notices.marked_streams import stream_of, while_quick
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.notices.next_times import next_try, rest
from cardsync.shop.notices.record_notices import WEBHOOKS, record
from cardsync.shop.notices.webhook_signature import Unsealed, signed_headers, unsealed
from cardsync.web.public_fetch import NotFetched, post

log = structlog.get_logger(__name__)

ROUNDS_A_TURN: Final = 20
_CLAIMED_FOR: Final = timedelta(minutes=1)
_GONE: Final = 410
_CLAIM: Final = queries_of(__package__)["claim_webhooks"]
# The condition that the delivery still has this worker's claim. A worker that took longer than its
# claim changes nothing.
_OWN: Final = "seller_id = :seller AND id = :id AND state = 'waiting' AND tries = :tries"
_SENT: Final = f"""
    UPDATE webhook_delivery SET state = 'sent', answer = :status, error = NULL, settled_at = :now
     WHERE {_OWN}
"""
_WELL: Final = """
    UPDATE webhook SET last_sent_at = :now, failures = 0, rests_until = NULL
     WHERE seller_id = :seller AND id = :webhook
"""
_LATER: Final = f"""
    UPDATE webhook_delivery SET next_at = :until, answer = :status, error = :error WHERE {_OWN}
"""
_FAILED: Final = f"""
    UPDATE webhook_delivery SET state = 'failed', answer = :status, error = :error,
           settled_at = :now
     WHERE {_OWN}
"""
_FAILS: Final = """
    UPDATE webhook SET failures = failures + 1
     WHERE seller_id = :seller AND id = :webhook RETURNING failures
"""
_RESTS: Final = """
    UPDATE webhook SET rests_until = :rests WHERE seller_id = :seller AND id = :webhook
"""
_SWITCH_OFF: Final = """
    UPDATE webhook SET off_at = :now, off_why = :why
     WHERE seller_id = :seller AND id = :webhook AND off_at IS NULL
       AND (:why = 'gone' OR last_sent_at IS NULL OR last_sent_at < :first_at)
"""
END_WAITING: Final = """
    UPDATE webhook_delivery SET state = 'failed', settled_at = :now, error = :error
     WHERE seller_id = :seller AND webhook_id = :webhook AND state = 'waiting'
"""
_SOONEST: Final = """
    SELECT min(greatest(d.next_at, w.rests_until)) FROM webhook_delivery d
      JOIN webhook w ON w.seller_id = :seller AND w.id = d.webhook_id
     WHERE d.seller_id = :seller AND d.state = 'waiting'
"""
SWITCHED_OFF: Final = "the webhook was turned off"


@dataclass(frozen=True)
class Claimed:
    """A delivery that this worker sends now, with the webhook's valid secrets, which are sealed."""

    seller_id: int
    id: int
    webhook_id: int
    message_id: str
    body: str
    tries: int
    first_at: datetime
    url: str
    secrets: tuple[bytes, ...]

    @property
    def values(self) -> Values:
        return {
            "seller": self.seller_id,
            "id": self.id,
            "webhook": self.webhook_id,
            "tries": self.tries,
            "first_at": self.first_at,
        }


@dataclass(frozen=True)
class Outcome:
    """The outcome of a try: the status of the answer, or the reason why there was no answer."""

    status: int | None
    error: str | None = None

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


async def claim(work: Work, seller_id: int) -> Sequence[Claimed]:
    """Claim one delivery for each receiver: the delivery that has waited longest."""
    now = clock.now()
    values = {"seller": seller_id, "now": now, "until": now + _CLAIMED_FOR}
    async with work.database.tenant(seller_id) as session:
        rows = (await session.execute(text(_CLAIM), values)).all()
    return [_claimed(seller_id, *row) for row in rows]


def _claimed(
    seller_id: int,
    id: int,
    webhook_id: int,
    message_id: str,
    body: str,
    tries: int,
    first_at: datetime,
    url: str,
    *kept: bytes | None,
) -> Claimed:
    secrets = tuple(bytes(one) for one in kept if one is not None)
    return Claimed(seller_id, id, webhook_id, message_id, body, tries, first_at, url, secrets)


async def send(settings: Settings, claimed: Claimed) -> Outcome:
    """Post a delivery once. Redirects are not followed, and count as failures."""
    try:
        valid = [unsealed(settings, claimed.seller_id, kept) for kept in claimed.secrets]
    except Unsealed:
        return Outcome(None, "the signing secret cannot be read on this computer; rotate it")
    body = claimed.body.encode()
    headers = {"Content-Type": "application/json"} | signed_headers(
        valid, claimed.message_id, int(clock.now().timestamp()), body
    )
    try:
        here, seconds = settings.development_clients, settings.webhook_seconds
        status = await post(claimed.url, body, headers, seconds, development=here)
    except NotFetched as e:
        return Outcome(None, str(e))
    outcome = Outcome(status)
    return (
        outcome if outcome.is_good else Outcome(status, f"the server answered with status {status}")
    )


async def settle(
    work: Work,
    claimed: Claimed,
    outcome: Outcome,
) -> None:
    """Record the outcome of a try: the delivery is sent, is tried again later, or is given up."""
    now = clock.now()
    values = claimed.values | {"now": now, "status": outcome.status, "error": outcome.error}
    bound = log.bind(seller_id=claimed.seller_id, webhook_id=claimed.webhook_id)
    SENT.labels("webhook", "sent" if outcome.is_good else "failed").inc()
    async with work.database.tenant(claimed.seller_id) as session:
        if outcome.is_good:
            if await run(session, _SENT, values):
                await run(session, _WELL, values)
            return
        until = next_try(claimed.tries, claimed.first_at, now, claimed.message_id)
        gone = outcome.status == _GONE
        if gone or until is None:
            bound.info("webhook_given_up", status=outcome.status, tries=claimed.tries)
            if await run(session, _FAILED, values):
                why = "gone" if gone else "failing"
                await _switch_off(session, work.settings, claimed, why, values)
            return
        bound.info("webhook_failed", status=outcome.status, tries=claimed.tries)
        if await run(session, _LATER, values | {"until": until}):
            failures = await session.scalar(text(_FAILS), values)
            await run(session, _RESTS, values | {"rests": now + rest(failures or 1)})


async def _switch_off(
    session: AsyncSession,
    settings: Settings,
    claimed: Claimed,
    why: str,
    values: Values,
) -> None:
    """Switch off a webhook whose receiver is gone or has failed for three days, and report that."""
    if not await run(session, _SWITCH_OFF, values | {"why": why}):
        return
    await run(session, END_WAITING, values | {"error": SWITCHED_OFF})
    reason = "its receiver answered “gone”" if why == "gone" else "it failed for three days"
    found = NewsItem(
        "webhook_disabled",
        f"webhook_disabled:{claimed.webhook_id}:{claimed.message_id}",
        "bad",
        f"Webhook {claimed.webhook_id} was turned off, because {reason}.",
        "See the webhook",
        f"/settings/webhooks/{claimed.webhook_id}",
        values["now"],
        subject=claimed.webhook_id,
        is_event=True,
    )
    await record(session, settings, claimed.seller_id, [found], values["now"])


async def send_due(work: Work, seller_id: int) -> None:
    """Send the due deliveries of a shop, and set the mark to the time of the next try."""

    async def try_one(claimed: Claimed) -> None:
        await settle(work, claimed, await send(work.settings, claimed))

    for _ in while_quick(ROUNDS_A_TURN):
        claimed = await claim(work, seller_id)
        if not claimed:
            break
        await asyncio.gather(*map(try_one, claimed))
    async with work.database.tenant(seller_id) as session:
        if await hold_mark(session, seller_id, WEBHOOKS):
            soonest = await session.scalar(text(_SOONEST), {"seller": seller_id})
            await leave_mark(session, seller_id, WEBHOOKS, soonest)


STREAM: Final = stream_of(WEBHOOKS, send_due)


@jobs.task(name="notices.webhooks", queue=SENDING, pass_context=True)
async def send_webhooks(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, send_webhooks, context, seller_id)

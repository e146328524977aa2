"""Asking for a rollback: one scope in; out the cards that go back, and the rollback that will
bring them back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.database.session import Database
from cardsync.pricing.models import PriceRollback
from cardsync.pricing.rollback import prepare, rollbacks
from cardsync.pricing.rollback.scope import Scope, diff_of, read_scope
from cardsync.settings import Settings

Requested = tuple[PriceRollback, bool]
Request = Callable[
    [AsyncSession, Caller, Scope, Callable[[], Awaitable[Requested]], datetime],
    Awaitable[Requested],
]


class Asked(NamedTuple):
    """`rollback` is None for a dry run; `diff` is the first of the cards."""

    rollback: PriceRollback | None
    scope: Scope
    cards: int
    diff: rollbacks.Diff


async def ask_for(
    database: Database,
    caller: Caller,
    settings: Settings,
    body: Mapping[str, Any],
    now: datetime,
    *,
    dry_run: bool,
    request: Request | None = None,
) -> Asked:
    """Asked again, it is the same rollback. `request` stands around the request, to limit it.

    Raises InvalidPayload, NotFound, MutexHeld, RollbackOpen.
    """
    # The cards are read before the seller's row is locked, so polls do not wait for them.
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        scope = await read_scope(session, caller, body)
        cards, diff = await diff_of(session, caller.seller_id, scope)
    if dry_run:
        return Asked(None, scope, cards, diff)
    lasts = timedelta(seconds=settings.rollback_seconds)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        do = partial(prepare.request, session, caller, scope, cards, now, lasts)
        asking = do() if request is None else request(session, caller, scope, do, now)
        rollback, is_new = await asking
        if not is_new and rollback.state != "requested":
            diff = await rollbacks.diff_shown(session, rollback)
    return Asked(rollback, scope, cards, diff)

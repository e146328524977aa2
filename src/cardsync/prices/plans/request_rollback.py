"""Requests a rollback of one scope, within the loss limits, and returns the cards whose earlier
prices it restores.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.models import PriceRollback
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.rollback import rollbacks
from cardsync.prices.rollback.scope import Scope, diff_of, read_scope


class RequestedRollback(NamedTuple):
    """`rollback` is None for a dry run; `diff` has the first of the cards."""

    rollback: PriceRollback | None
    scope: Scope
    cards: int
    diff: rollbacks.Diff


async def ask_for(
    database: Database,
    caller: Caller,
    settings: Settings,
    body: Mapping[str, object],
    now: datetime,
    *,
    dry_run: bool,
) -> RequestedRollback:
    """Request a rollback; a repeated request returns the same rollback. The loss limits apply only
    to keys and tokens, because a member has seen the diff.

    Raises InvalidPayload, NotFound, MutexHeld, RollbackOpen, NeedsReview.
    """
    # The cards are read before the seller's row is locked, so an agent's polls do not wait for this
    # read.
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        scope = await read_scope(session, caller, body)
        cards, diff = await diff_of(session, caller.seller_id, scope)
    if dry_run:
        return RequestedRollback(None, scope, cards, diff)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        writer = Writer(session, caller, settings, now)
        rollback, is_new = await writes.request_rollback(writer, scope, cards)
        if not is_new and rollback.state != "requested":
            diff = await rollbacks.diff_shown(session, rollback)
    return RequestedRollback(rollback, scope, cards, diff)

"""Writes prices for a route or a page, if the caller is allowed to.

A key or a token stays within the loss limits: a write beyond them changes nothing and becomes a
plan that waits for a member. A write by a grant also becomes a waiting plan if the owner wants to
confirm the grant's writes. A signed-in member must confirm a write that lowers a card's price by
more than half or the shop's value by more than a fifth, and a large promotion. The agent's own
routes do not use this module.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.money import dollars
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import ON_SALE
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.loss.decide import ASKS, By, Verdict, confirmation_of, decide
from cardsync.prices.loss.moves import has_moves
from cardsync.prices.loss.risk import Size, risk_of
from cardsync.prices.plans.actions import Actions, ActionType, kept_actions, kind_of
from cardsync.prices.plans.asked_data import Data, asked_of
from cardsync.prices.plans.attempt import attempt, count
from cardsync.prices.plans.largest_moves import largest_moves
from cardsync.prices.plans.new_plans import propose_write
from cardsync.prices.plans.permissions import who_writes
from cardsync.prices.plans.price_effect import Reach, reach_of

_NOTHING: Final = Actions((), frozenset())
_RUN: Final = kept_actions([{"type": "pricing.reprice", "op": "start"}])


class Waiting(NamedTuple):
    """An object that already waits for a member, with the page on which the member decides it."""

    id: int
    page: str
    reach: Reach = Reach(ON_SALE, {})
    # True if the write only sets the prices of the current rules, as a run does.
    by_rules: bool = False


class Writer(NamedTuple):
    """A caller who writes prices, with the transaction and the moment of the write. `confirmed` is
    true if a member has seen the figures of a large change.
    """

    session: AsyncSession
    caller: Caller
    settings: Settings
    now: datetime
    confirmed: bool = False

    def confirmed_by(self, body: Mapping[str, object]) -> Writer:
        """Return the writer, as confirmed if the body's `confirm` is true."""
        return self._replace(confirmed=True) if body.get("confirm") is True else self


async def _by(writer: Writer, action: JsonMapping | Waiting, *, weighed: bool) -> tuple[By, bool]:
    """Return the caller in the form that `decide` takes, and whether a member's moves are
    subtracted from the counted moves.
    """
    session, caller, settings, now, confirmed = writer
    by_member = caller.member_id is not None
    kind: ActionType = (
        "pricing.change_set" if isinstance(action, Waiting) else kind_of(action["type"])
    )
    by = await who_writes(session, caller, kind)
    limited = settings.price_write_limits and weighed
    free = caller.identity.own_script or (by_member and confirmed) or caller.role != "owner"
    takes_back = by_member and limited and records(action)
    return by._replace(limited=limited and not free, trusted=not weighed), (
        takes_back and await has_moves(session, caller.seller_id, now)
    )


@dataclass
class Write:
    """A write whose block is running. The block sets `source`: its moves count while this source is
    in effect (`loss/moves.py`). None means that the block changed nothing.
    """

    source: str | None = ""


@asynccontextmanager
async def write(
    writer: Writer, action: JsonMapping | Waiting, *, weighed: bool = True
) -> AsyncIterator[Write]:
    """Run the block, which writes prices; `action` is the write as an action of a plan. A write
    that is not `weighed` has no limits, but an owner may want to confirm it.

    Raises NeedsReview (a plan was stored), ConfirmationNeeded, and the errors of the block.
    """
    session, caller, _, now, _ = writer
    by_member, written = caller.member_id is not None, Write()
    by, takes_back = await _by(writer, action, weighed=weighed)
    if not (by.modes or by.limited or takes_back):
        yield written
        return
    await sync_state.locked(session, caller.seller_id)
    account, live = await live_run(session, caller.seller_id, now)
    actions, reach = await _meant(session, caller.seller_id, live, action)
    if reach is None and not by.modes:
        yield written
        return
    async with attempt(session, caller, account, live, actions, reach) as attempted:
        yield written
        effect = await attempted.effect()
        if not by_member:
            by = by._replace(limited=by.limited and written.source is not None)
        verdict = decide(effect.size, by)
        if verdict.answer == "apply":
            attempted.keep()
        elif by_member:
            raise confirmation_of(effect.size)
        else:
            cards = await largest_moves(session, caller.seller_id, effect, now)
    if not attempted.kept:
        asked = verdict if verdict.limit else ASKS
        raise await _wait(writer, action, asked, effect.size, cards)
    if takes_back or (by.limited and not by_member):
        await count(session, caller, effect, now, written.source or "")


@asynccontextmanager
async def write_beside(
    writer: Writer, data: frozenset[Data], action: JsonMapping | Waiting
) -> AsyncIterator[None]:
    """Run the block, which writes other data than prices. If a rule uses the data and the caller is
    a key or a token, the write is handled as a write of prices. Raises NeedsReview, and the errors
    of the block.
    """
    session, caller, _, now, _ = writer
    if caller.member_id is None:
        await sync_state.locked(session, caller.seller_id)
        _, live = await live_run(session, caller.seller_id, now)
        if data & asked_of(live):
            async with write(writer, action):
                yield
            return
    yield


async def _meant(
    session: AsyncSession,
    seller_id: int,
    live: Run,
    action: Mapping[str, object] | Waiting,
) -> tuple[Actions, Reach | None]:
    """Return the write as actions of a plan, and the cards that it affects, or None if it affects
    no cards.
    """
    if isinstance(action, Waiting):
        return _RUN if action.by_rules else _NOTHING, action.reach
    try:
        actions = kept_actions([action])
    except errors.InvalidPayload:
        # The write itself is refused or changes nothing; its effect is measured in any case.
        return _NOTHING, Reach(ON_SALE, {})
    return actions, await reach_of(session, seller_id, live, actions)


async def _wait(
    writer: Writer,
    action: Mapping[str, object] | Waiting,
    verdict: Verdict,
    size: Size,
    cards: list[dict[str, object]],
) -> errors.NeedsReview:
    """Store the write as a plan, unless it is about an object that already waits. Return the
    refusal.
    """
    session, caller, settings, now, _ = writer
    if isinstance(action, Waiting):
        proposal, page = action.id, action.page
    else:
        plan = await propose_write(session, caller, settings, [dict(action)], size, cards, now)
        proposal, page = plan.id, f"/plans/{plan.id}"
    # The plan is committed although the request is refused.
    await session.commit()
    return errors.NeedsReview(
        verdict.error or "",
        proposal_id=proposal,
        confirm_url=f"{settings.origin}{page}",
        risk=risk_of(size),
        limit=verdict.limit,
        cards_affected=size.cards,
        listed_value_change=dollars(size.after - size.before),
    )


def records(action: Mapping[str, object] | Waiting) -> bool:
    """Return whether the write counts as a move of prices. A run only sets the current rules'
    prices, so it does not count.
    """
    if isinstance(action, Waiting):
        return not action.by_rules
    return bool(action["type"] != "pricing.reprice")

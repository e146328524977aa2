"""Judges a save of rules by the seller's rule tests, and refuses the save if a test is red.

A save that changes the governing rules is a publish. If tests are red, the publish is refused
unless the owner gives a reason, which is recorded in the activity feed. A save of a draft is judged
as if the draft were live, but is never refused. An undo of `shop/activity/undo.py` is not judged:
it restores the former live rules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform import errors
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.rule_rows import all_rows, rule_of, run_of
from cardsync.prices.limits import OVERRIDE_REASON_CHARACTERS
from cardsync.prices.models import PricingRule, RuleTest
from cardsync.prices.rule_tests.check import judge
from cardsync.prices.rule_tests.rule_tests import tests_of, verdicts_of
from cardsync.prices.rule_tests.schemas import RuleTestVerdict
from cardsync.web.heavy_work import heavy_for

_NAMED = 3


@dataclass
class _Together:
    """Saves that are judged together. `was` has the rules that governed before the first save. With
    `beside`, the tests run outside the transaction.
    """

    beside: bool
    was: list[Rule] | None = None


_TOGETHER: ContextVar[_Together | None] = ContextVar("together", default=None)


def governing(rows: Iterable[PricingRule]) -> list[Rule]:
    """Return the rules that may govern prices, without their names, because a name affects no
    price.
    """
    rules = sorted((rule_of(row) for row in rows), key=lambda rule: (rule.priority, rule.id))
    return [replace(rule, name="") for rule in rules if rule.live]


async def judge_save(
    session: AsyncSession,
    caller: Caller,
    was: Sequence[Rule],
    now: datetime,
    *,
    override_reason: object = None,
    draft: int | None = None,
    beside: bool = True,
) -> list[RuleTestVerdict]:
    """Judge the rules after a save. `was` has the rules that governed before the save.

    Raises RuleTestsFailed, InvalidPayload.
    """
    together = _TOGETHER.get()
    if together is not None:
        together.was = list(was) if together.was is None else together.was
        return []
    reason = _read_reason(override_reason)
    tests = await tests_of(session, caller.seller_id)
    if not tests:
        return []
    live = await run_of(session, await session.get_one(Account, caller.seller_id), now)
    rules = [replace(rule, name="") for rule in live.rules if rule.live]
    publishes = sorted(rules, key=lambda rule: (rule.priority, rule.id)) != list(was)
    if not publishes:
        rules = [
            replace(rule, state="published", enabled=True) if rule.id == draft else rule
            for rule in live.rules
        ]
        return await _judged(session, caller, replace(live, rules=rules), tests, beside)
    verdicts = await _judged(session, caller, live, tests, beside)
    red = [verdict for verdict in verdicts if verdict.red]
    if red and (reason is None or caller.identity.credential == "token"):
        raise errors.RuleTestsFailed(_sentence(red))
    if red:
        note(
            session,
            caller,
            "pricing.rule_tests_overridden",
            f"{len(red)} failing rule tests overridden: {reason}",
            now,
            risk="high",
            after={
                "reason": reason,
                "rule_tests": [
                    {
                        "id": verdict.id,
                        "name": verdict.name,
                        "failing": verdict.failing,
                    }
                    for verdict in red
                ],
            },
        )
    return verdicts


@asynccontextmanager
async def judged_together(
    session: AsyncSession, caller: Caller, now: datetime, *, beside: bool
) -> AsyncIterator[None]:
    """Judge the saves of the block together, by the rules after all of them. With `beside`, the
    tests run outside the transaction, which must then write only rules. Raise RuleTestsFailed.
    """
    together = _Together(beside)
    token = _TOGETHER.set(together)
    try:
        yield
    finally:
        _TOGETHER.reset(token)
    if together.was is None:
        return
    await session.flush()
    if governing(await all_rows(session, PricingRule, caller.seller_id)) != together.was:
        await judge_save(session, caller, together.was, now, beside=beside)


async def _judged(
    session: AsyncSession, caller: Caller, run: Run, tests: Sequence[RuleTest], beside: bool
) -> list[RuleTestVerdict]:
    """Judge the tests. For a large shop this happens outside the transaction, because a save of
    rules changes no card.
    """
    heavy = await heavy_for(session, caller.seller_id) if beside else None
    if heavy is None:
        return await judge(session, caller.seller_id, run, tests)
    return await heavy.read_apart(verdicts_of, caller, None, run.now, run)


def _read_reason(value: object) -> str | None:
    if value is None:
        return None
    most = OVERRIDE_REASON_CHARACTERS
    kept = " ".join(value.split()) if isinstance(value, str) else ""
    if not kept or len(kept) > most:
        raise errors.InvalidPayload(f"override_reason: must have 1 to {most} characters")
    return kept


def _sentence(red: Sequence[RuleTestVerdict]) -> str:
    failures = "; ".join(_why(verdict) for verdict in red[:_NAMED])
    rest = f"; and {len(red) - _NAMED} more" if len(red) > _NAMED else ""
    count = "1 rule test is" if len(red) == 1 else f"{len(red)} rule tests are"
    return f"{count} failing: {failures}{rest}"


def _why(verdict: RuleTestVerdict) -> str:
    named = f"“{verdict.name}” ({verdict.expectation})"
    if verdict.unread is not None:
        return f"{named} cannot be checked: {verdict.unread}"
    card = verdict.first[0]
    before, after = (price or "no price" for price in (card.current_price, card.price))
    return (
        f"{named} fails for {verdict.failing} of {verdict.cards} cards, first"
        f" {card.product_name or card.marketplace_id}, {before} to {after}: {card.reason}"
    )

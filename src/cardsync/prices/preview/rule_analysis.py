"""Analyzes a seller's rules on the stored cards: one pass over the cards finds the cards that each
rule selects; `findings` interprets the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.prices.inputs import rule_rows as store
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of
from cardsync.prices.inputs.rule_findings import Finding, RuleFacts, findings
from cardsync.prices.inputs.rule_queries import selections


@dataclass(frozen=True, slots=True)
class Analysis:
    rules: list[Finding]
    unmatched: int


async def analyse(session: AsyncSession, caller: Caller, now: datetime) -> Analysis:
    """Analyze every rule, by priority. Drafts, disabled rules and guards select cards but govern
    none.
    """
    caller.must_be_owner()
    seller_id = caller.seller_id
    run = await store.run_of(session, await session.get_one(Account, seller_id), now)
    rules = sorted(run.rules, key=lambda rule: (rule.priority, rule.id))
    found = await selections(session, seller_id, [rule.query for rule in rules])
    bound: dict[str, object] = {"seller": seller_id, "now": now}
    broken = {
        rule.id for rule, selection in zip(rules, found, strict=True) if selection.where is None
    }
    picks = [
        f"CASE WHEN {condition_of(selection, bound, f'r{rule.id}')} THEN {int(rule.id)} END"
        for rule, selection in zip(rules, found, strict=True)
        if rule.id not in broken
    ]
    listed = f"array_remove(ARRAY[{', '.join(picks)}]::bigint[], NULL)"
    rows = await session.execute(
        text(
            f"SELECT selecting, count(*) FROM (SELECT {listed} AS selecting FROM card c"
            f" WHERE c.seller_id = :seller AND {ON_SALE}) found GROUP BY selecting"
        ),
        bound,
    )
    groups = [(list(selecting), count) for selecting, count in rows]
    guards = {rule.id for rule in rules if rule.guard}
    priced = [([id for id in ids if id not in guards], count) for ids, count in groups]
    live = [rule.id for rule in run.live]
    unmatched = sum(count for selecting, count in groups if not {*selecting, *broken} & set(live))
    governing = set(live)
    facts = []
    for place, rule in enumerate(rules):
        if rule.guard:
            held = sum(count for selecting, count in groups if rule.id in selecting)
            facts.append(RuleFacts(rule.id, held, 0, rule.id in broken, {}, {}))
            continue
        earlier = [other.id for other in rules[:place] if other.id in governing]
        facts.append(
            _facts(
                rule.id,
                priced,
                earlier,
                broken,
                live=rule.id in governing,
            )
        )
    return Analysis(findings(facts), unmatched)


def _facts(
    rule_id: int,
    groups: Sequence[tuple[list[int], int]],
    earlier: Sequence[int],
    broken: set[int],
    *,
    live: bool,
) -> RuleFacts:
    """Return a rule's facts; `earlier` holds the live rules before this rule, by priority."""
    shared: dict[int, int] = {}
    lost: dict[int, int] = {}
    selects = governs = 0
    for selecting, count in groups:
        if rule_id not in selecting:
            continue
        selects += count
        # A rule with an unreadable query governs the cards that no earlier rule governs.
        first = next((id for id in earlier if id in selecting or id in broken), None)
        governs += count if first is None and live else 0
        if first is not None:
            lost[first] = lost.get(first, 0) + count
        for other in selecting[: selecting.index(rule_id)]:
            shared[other] = shared.get(other, 0) + count
    return RuleFacts(rule_id, selects, governs, rule_id in broken, shared, lost)

"""Compares the presets on the seller's own cards: the preview of each, beside the seller's other
rules.

Nothing is written. Each preset is a preview of its own, so the figures are those of the preview.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.limits import DEFAULT_PRIORITY
from cardsync.pricing.engine.rules import PRESETS
from cardsync.pricing.inputs.rule_rows import all_rows, rule_of, run_of
from cardsync.pricing.models import PricingRule
from cardsync.pricing.preview import preview
from cardsync.pricing.preview.draft import UNSAVED
from cardsync.pricing.preview.shown import PresetShown

# The number of largest moves that are shown as examples.
EXAMPLES: Final = 10


async def compare(session: AsyncSession, caller: Caller, now: datetime) -> list[PresetShown]:
    """Preview every preset; the session is that of `preview.reading`. Raises OwnerRequired."""
    caller.must_be_owner()
    rows = await all_rows(session, PricingRule, caller.seller_id)
    live = {row.preset for row in rows}
    own = [
        rule_of(row)
        for row in rows
        if row.preset is None and row.priority != DEFAULT_PRIORITY and row.state == "published"
    ]
    account = await session.get_one(Account, caller.seller_id)
    run = await run_of(session, account, now)
    found = []
    for preset, rule in PRESETS.items():
        rules = [*own, replace(rule, id=UNSAVED)]
        stock, out = await preview.priced_by(session, account, replace(run, rules=rules))
        shown = await preview.figures(session, caller, stock, out)
        shown.largest = shown.largest[:EXAMPLES]
        found.append(PresetShown(preset, rule.name, preset in live, shown))
    return found

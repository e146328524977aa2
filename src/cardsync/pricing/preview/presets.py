"""Compares the presets on the seller's own cards: the preview of each, beside the seller's other
rules.

Nothing is written. Each preset is a preview of its own, so the figures are those of the preview.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.limits import DEFAULT_PRIORITY
from cardsync.pricing.engine.rules import PRESETS
from cardsync.pricing.inputs.rule_rows import all_rows, rule_of, run_of
from cardsync.pricing.models import PricingRule
from cardsync.pricing.preview import preview
from cardsync.pricing.preview.draft import UNSAVED

# The number of largest moves that are shown as examples.
EXAMPLES: Final = 10


class PresetPreview(NamedTuple):
    """`in_force` says that the live rules hold this preset's rule."""

    preset: str
    name: str
    in_force: bool
    preview: dict[str, Any]


async def compare(session: AsyncSession, caller: Caller, now: datetime) -> list[PresetPreview]:
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
        shown["largest"] = shown["largest"][:EXAMPLES]
        found.append(PresetPreview(preset, rule.name, preset in live, shown))
    return found

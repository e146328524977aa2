"""Compares the presets on the seller's own cards: each preset is previewed together with the
seller's other rules.

Nothing is written. The cards are read once, with the columns that any preset needs, and priced by
each preset in turn, so the figures equal the preview's. If a sample is requested and the shop has
many cards, it is the sample of a draft's first preview.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.catalog.market.of_cards import the_market
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.prices.engine.preset_rules import PRESETS
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import Stock, read_stock, simulate_stock
from cardsync.prices.inputs.rule_rows import (
    account_of,
    all_rows,
    rule_of,
    sales_of,
    seller_pricing,
)
from cardsync.prices.models import PricingRule
from cardsync.prices.preview import preview
from cardsync.prices.preview.draft import UNSAVED, one_in_of, sample_of_many, times
from cardsync.prices.preview.schemas import PresetShown

# The number of largest moves that are shown as examples.
EXAMPLES: Final = 10


class Compared(NamedTuple):
    """The presets with their previews. If `one_in` is above one, a sample was priced, and all
    counts and values are those of the sample times `one_in`.
    """

    presets: list[PresetShown]
    one_in: int


async def compare(
    source: Source,
    caller: Caller,
    now: datetime,
    *,
    sample: bool,
) -> Compared:
    """Preview every preset. With `sample`, only a sample of the cards is priced if there are many.
    Raise OwnerRequired.
    """
    caller.must_be_owner()
    seller_id = caller.seller_id
    # A preset undercuts, so it reads the market.
    rows, (account, sales), sampled, market = await each_of(
        source,
        all_rows(source, PricingRule, seller_id),
        each_of(source, account_of(source, seller_id), sales_of(source, seller_id)),
        sample_of_many(source, seller_id, asked=sample),
        the_market(source),
    )
    one_in = one_in_of(sampled)
    live = {row.preset for row in rows}
    own = [
        rule_of(row)
        for row in rows
        if row.preset is None and row.priority != DEFAULT_PRIORITY and row.state == "published"
    ]
    # All presets select the same cards, so their drafts share an id, which is the cards' `rule_id`.
    drafts = {preset: replace(rule, id=UNSAVED) for preset, rule in PRESETS.items()}
    every = Run([*own, *drafts.values()], seller_pricing(account), now, sales)
    read = await read_stock(source, account, every, card_ids=sampled, market=market)
    # Memory keeps the figures of each preset, not its cards.
    effects = [
        await preview.summed(await simulate_stock(_priced_by(read, draft)), EXAMPLES)
        for draft in drafts.values()
    ]
    shown = await preview.figures_of(source, caller, effects)
    return Compared(
        [
            PresetShown(preset, draft.name, preset in live, times(figures, one_in))
            for (preset, draft), figures in zip(drafts.items(), shown, strict=True)
        ],
        one_in,
    )


def _priced_by(read: Stock, draft: Rule) -> Stock:
    """Return the cards as read by a run whose only preset is this draft. Pure."""
    run = read.run
    rules = [rule for rule in run.rules if rule.id != UNSAVED] + [draft]
    return replace(read, chosen=replace(read.chosen, run=replace(run, rules=rules)))

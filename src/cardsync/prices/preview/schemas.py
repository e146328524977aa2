"""The JSON structs of previews and backtests. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from cardsync.prices.receipts.schemas import ExplainedBlocker, ExplainedCard, GoverningRule


class LargestMove(msgspec.Struct):
    marketplace_id: int
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition_label: str | None
    current_price: str | None
    target_price: str
    rule_id: int | None
    reason: str
    """The step that decides the price"""


class MoveBin(msgspec.Struct):
    """Moves of from_bp up to, not including, to_bp; the last bin is open."""

    from_bp: int
    to_bp: int | None
    count: int


class DifferingCard(msgspec.Struct):
    """`asked_price` is the target of the last run, and `target_price` that of the preview; null
    keeps the price.
    """

    marketplace_id: int
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition_label: str | None
    current_price: str | None
    asked_price: str | None
    """The price that the last run asked, in USD"""
    target_price: str | None


class Preview(msgspec.Struct):
    """A first price counts as a rise. `held` counts the cards that a cap limits: one of them that
    moves up to the limit is also a rise or a drop, and counts in `held_up` or `held_down`, too.
    `up_value` and `down_value` are those of the moves over all copies. `differs` counts the cards
    that would be asked for another price than the last run asked for: by other rules, or because
    stock, settings, sales or market evidence have changed since.
    """

    cards: int
    up: int
    down: int
    unchanged: int
    held: int
    held_up: int
    """The rises that a cap limits"""
    held_down: int
    """The drops that a cap limits"""
    reviewed: int
    blocked: dict[str, int]
    listed_value_before: str
    listed_value_after: str
    up_value: str
    down_value: str
    differs: int
    differing: list[DifferingCard]
    largest: list[LargestMove]
    histogram: list[MoveBin]
    warnings: list[str]


class DraftPreview(Preview):
    """`cards` are those that the draft selects, and those that it would no longer select. `selects`
    counts the first ones and `governs` those of them that no earlier rule takes; `shadowed_by`
    names the rules that take all of them. A draft that is no saved rule has the id -1. With
    `sample`, one card in `one_in` was priced if there are many, and the counts are estimates.
    """

    selects: int
    governs: int
    never_matches: bool
    shadowed_by: list[int]
    one_in: int
    """One card in so many was priced"""


class PromotionEffect(msgspec.Struct):
    """The effect of a promotion on the cards in stock that it selects, as if it were on now.
    `reduced` are listed lower than today; `full` ask no more than the cut leaves, and something
    stops those that are `limited`. No rule, or an earlier promotion, prices those that are
    `not_priced`.
    """

    cards: int
    copies: int
    reduced: int
    full: int
    limited: int
    not_priced: int
    below_cost: int
    unknown_cost: int
    """The cards whose cost is unknown, which a limit by cost does not protect"""
    never_lowered: int
    """The cards whose rule never lowers them, and that the full cut would lower"""
    below_never_lower: int
    """The cards of these that the promotion lowers"""
    listed_value_before: str
    listed_value_after: str
    deepest_fall_bp: int
    """The fall of the card that falls most, in basis points"""
    largest: list[LargestMove]


class PricedBy(msgspec.Struct):
    """The price that a set of rules asks for a card; null where something blocks it or nothing
    usable is there. The steps are those of an explanation. A draft that is no saved rule has the
    id -1.
    """

    target_price: str | None
    governing_rule: GoverningRule | None
    blockers: list[ExplainedBlocker]
    steps: list[dict[str, Any]]
    """Each step with its name, input, output and summary, in order"""


class DraftOnCard(msgspec.Struct):
    marketplace_id: int
    card: ExplainedCard
    current_price: str | None
    live: PricedBy
    """The price by the live rules"""
    draft: PricedBy
    """The price by the draft"""


class DraftOnCards(msgspec.Struct):
    """`truncated`: the search selects more cards than are shown."""

    cards: list[DraftOnCard]
    """The cards with their prices by the draft"""
    truncated: bool


class PresetShown(msgspec.Struct):
    """A preset with its preview; `in_force` says that the live rules hold its rule."""

    preset: str
    """The preset"""
    name: str
    in_force: bool
    """The live rules hold its rule"""
    preview: Preview
    """The changes that it would make"""


class PresetsShown(msgspec.Struct):
    presets: list[PresetShown]


class BacktestDay(msgspec.Struct):
    """A day that has a snapshot: what was in stock at its last one and what it would have been
    listed for; price changes of the day.
    """

    date: str
    """The day, as YYYY-MM-DD"""
    cards: int
    listed_value: str
    changed: int
    """The price changes of the day"""


class SoldLine(msgspec.Struct):
    """`asked_price` is null for what was sold before the first snapshot, and for cards that none
    knows.
    """

    marketplace_id: int
    sold_at: str
    sold_price: str | None
    asked_price: str | None
    """The price that the rules would have asked, in USD; null: not known"""


class BacktestSummary(msgspec.Struct):
    """Values of the lines that have both prices, `compared` of the `sold`; null if lines were sold
    and none has both. The price of a sale is unknown where no order file and no history has it.
    """

    snapshots: int
    """The days that have a snapshot"""
    changed: int
    """The price changes of all days"""
    blocked: dict[str, int]
    listed_value_before: str
    listed_value_after: str
    sold: int
    compared: int
    """Sold copies that have both prices"""
    without_sold_price: int
    """Sold copies whose price is unknown"""
    without_asked_price: int
    """Sold copies that the rules had no price for"""
    sold_value: str | None
    """The amount that the compared copies sold for, in USD"""
    asked_value: str | None
    """The amount that the rules would have asked for them, in USD"""


class Backtest(msgspec.Struct):
    days: list[BacktestDay]
    sold: list[SoldLine]
    """The copies that were sold in these days"""
    summary: BacktestSummary
    """The whole span"""

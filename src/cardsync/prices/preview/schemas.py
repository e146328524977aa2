"""The JSON structs of previews and backtests. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cardsync.platform.clock import rfc3339
from cardsync.platform.kit.struct_rows import DollarsOrNone, Reads
from cardsync.platform.value_types import JsonObject
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
    """`asked_price` is the target of the last run, and `target_price` is the target of the preview;
    null means that the price stays.
    """

    marketplace_id: int
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition_label: str | None
    current_price: str | None
    asked_price: str | None
    """The target of the last run, in USD"""
    target_price: str | None


class Preview(msgspec.Struct):
    """A first price counts as a rise. `held` counts the cards that a cap limits. A held card that
    moves to the limit also counts as a rise or a drop, and in `held_up` or `held_down`. `up_value`
    and `down_value` are the sums of the moves over all copies. `differs` counts the cards whose
    target differs from the target of the last run, because of other rules, or because stock,
    settings, sales or market evidence have changed since.
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
    """`cards` counts the cards that the draft selects and the cards that it would no longer select.
    `selects` counts only the former, and `governs` those of them that no earlier rule governs;
    `shadowed_by` names the earlier rules that govern all of them. An unsaved draft has the id -1.
    With `sample`, one card in `one_in` was priced if there are many cards, and the counts are
    estimates.
    """

    selects: int
    governs: int
    never_matches: bool
    shadowed_by: list[int]
    one_in: int
    """One card in this many was priced"""


class PromotionEffect(msgspec.Struct):
    """The effect of a promotion on the cards in stock that it selects, as if it were active now.
    `reduced` counts the cards whose price would fall; `full`, the cards with the full discount;
    `limited`, the cards whose discount a limit reduces; `not_priced`, the cards that no rule
    prices, or that an earlier promotion prices.
    """

    cards: int
    copies: int
    reduced: int
    full: int
    limited: int
    not_priced: int
    below_cost: int
    unknown_cost: int
    """The cards whose cost is unknown, so that a floor by cost does not protect them"""
    never_lowered: int
    """The cards whose rule never lowers prices, and that the full discount would lower"""
    below_never_lower: int
    """The cards of these that the promotion lowers"""
    listed_value_before: str
    listed_value_after: str
    deepest_fall_bp: int
    """The fall of the card that falls most, in basis points"""
    largest: list[LargestMove]


class PricedBy(msgspec.Struct):
    """The price of a card by a set of rules; null if something blocks it or no price source is
    usable. The steps are those of an explanation. An unsaved draft has the id -1.
    """

    target_price: str | None
    governing_rule: GoverningRule | None
    blockers: list[ExplainedBlocker]
    steps: list[JsonObject]
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
    """A preset with its preview; `in_force`: the live rules contain its rule."""

    preset: str
    """The preset"""
    name: str
    in_force: bool
    """Whether the live rules contain the preset's rule"""
    preview: Preview
    """The changes that the preset would make"""


class PresetsShown(msgspec.Struct):
    presets: list[PresetShown]


class BacktestDay(msgspec.Struct):
    """A day that has a snapshot: the cards in stock at its last snapshot, their listed value by the
    rules, and the price changes of the day.
    """

    date: str
    """The day, as YYYY-MM-DD"""
    cards: int
    listed_value: str
    changed: int
    """The price changes of the day"""


class SoldLine(msgspec.Struct):
    """`asked_price` is null for copies sold before the first snapshot, and for cards that are in no
    snapshot.
    """

    marketplace_id: int
    sold_at: Annotated[str, Reads(rfc3339)]
    sold_price: DollarsOrNone
    asked_price: DollarsOrNone
    """The price that the rules would have set, in USD; null if it is unknown"""


class BacktestSummary(msgspec.Struct):
    """`sold_value` and `asked_value` are those of the sold lines that have both prices, which
    `compared` counts; null if lines were sold and none has both prices. A sold price is unknown if
    neither an order file nor the history has it.
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
    """Sold copies for which the rules had no price"""
    sold_value: str | None
    """The amount that the compared copies sold for, in USD"""
    asked_value: str | None
    """The value of the compared copies at the rules' prices, in USD"""


class Backtest(msgspec.Struct):
    days: list[BacktestDay]
    sold: list[SoldLine]
    """The copies that were sold in these days"""
    summary: BacktestSummary
    """The figures of the whole span"""

"""Makes price reviews and finds stale stock from priced cards with their market evidence, with at
most one review per card. Pure.

A kind of review proposes the price that its evidence supports. The seller's own rules then price
the card with that proposal as its market price, so that the floor, the ceiling, the cap and every
other limit apply. The same cards in any order give the same reviews.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

import polars as pl

from cardsync.catalog.market.verdicts import (
    ANCHOR_SALES,
    BUY_OUT_WINDOW,
    LISTINGS_FRESH,
    SALES_FETCHED,
    SALES_WINDOW,
)
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.money import UNITS_PER_CENT, dollars
from cardsync.prices.engine import engine
from cardsync.prices.engine.expressions import cents, moment, scaled, true, within
from cardsync.prices.engine.rules import WHOLE_BP, ReviewLimits, Rule
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.simulate import simulate
from cardsync.sales.lots.fee_schedule import net

# If two kinds have the same expected value, the earlier one is used.
ReviewKind = Literal["depth_raise", "sales_anchor", "generic_raise", "demand_pulse"]
AdviceKind = Literal["stale_stock", "never_matching_rule", "rule_scope_drift", "missing_floor"]
KINDS: Final[tuple[ReviewKind, ...]] = get_args(ReviewKind)
SIGNALS_MOST: Final = 3
# With fewer listings, the lowest price may be only one seller's opinion.
DEPTH_LISTINGS: Final = 3
DEPTH_UNDERCUT_BP: Final = 100
PULSE_SALES: Final = 5
PULSE_RISE_BP: Final = 500
# A raise is proposed only if it is at least this amount and at least this percentage.
LEAST_RISE: Final = 500
LEAST_RISE_BP: Final = 300
STALE_CUT_BP: Final = 2_000
STALE_LASTS: Final = timedelta(days=14)

_KIND: Final = pl.Enum(KINDS)
_FIGURES: Final = (
    "listings_low", "listings_count", "listings_observed_at", "sales_median", "sales_count",
    "sales_newest_at", "sales_fetched_at", "sales_week", "market", "observed_at",
    "sales_of_network", "listings_of_network",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """The inputs of a generation: `run`, whose rules price each proposal, and `most`, the maximum
    number of reviews.
    """

    run: Run
    most: int


def eligible(priced: pl.DataFrame, stored_target: pl.Series) -> pl.DataFrame:
    """Return the cards that are eligible for recommendations. `asked_now` is the price that a card
    has or will soon have. `leaps` marks cards whose market price must not be proposed.

    A card that is blocked, pinned, on sale, waiting for review or without a price is omitted. A
    card of a hold-out is also omitted, because only the rule should cause the difference between
    the groups.
    """
    base = pl.max_horizontal("current_price", "target", "stored_target")
    return (
        priced.with_columns(stored_target=stored_target)
        .filter(
            (pl.col("blockers") == 0)
            & pl.col("pin").is_null()
            & pl.col("sale_id").is_null()
            # The card's rise already waits for the seller's decision.
            & pl.col("review").is_null()
            & pl.col("holdout").is_null()
            & pl.col("current_price").is_not_null()
            & (pl.col("quantity") > 0)
        )
        .with_columns(asked_now=base, leaps=pl.lit(False))
    )


def reviews(cards: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Return the best review of each card, ordered by expected value, highest first. `signals` are
    the card's other reviews.
    """
    now = limits.run.now
    kinds = [
        _depth(now),
        _anchor(now),
        _generic(now, limits.run.seller.max_age_hours),
        _pulse(now),
    ]
    calm = ~true(within(now - BUY_OUT_WINDOW, now, "buy_out_detected_at"))
    base = pl.col("asked_now")
    proposals = pl.concat(
        cards.filter(calm & one.holds)
        .with_columns(
            kind=pl.lit(one.kind, _KIND),
            wanted=one.wanted,
            expires_at=one.expires_at,
            confidence=one.confidence,
        )
        .filter(_worth_it(pl.col("wanted"), base))
        for one in kinds
    )
    if proposals.is_empty():
        return _best(_valued(proposals.with_columns(proposed=pl.col("wanted")), limits.run), limits)
    allowed = _allowed(proposals, limits.run)
    return _best(_valued(allowed, limits.run), limits)


def _worth_it(price: pl.Expr, base: pl.Expr) -> pl.Expr:
    least = pl.max_horizontal(base + LEAST_RISE, scaled(base, pl.lit(WHOLE_BP + LEAST_RISE_BP)))
    return true(price >= least)


@dataclass(frozen=True)
class _Kind:
    """A kind of review. `holds` is true if the evidence is fresh and sufficient; `wanted` is the
    price that the evidence supports.
    """

    kind: str
    holds: pl.Expr
    wanted: pl.Expr
    expires_at: pl.Expr
    confidence: pl.Expr


def _fresh(column: str, now: datetime, span: timedelta) -> pl.Expr:
    return true(within(now - span, now, column))


def _until(column: str, span: timedelta) -> pl.Expr:
    return (pl.col(column) + pl.lit(span)).cast(TIME)


def _confidence(count: pl.Expr) -> pl.Expr:
    return (
        pl.when(count >= 10)
        .then(pl.lit("high"))
        .when(count >= 5)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("low"))
    )


def _depth(now: datetime) -> _Kind:
    listed = pl.col("listings_count")
    return _Kind(
        "depth_raise",
        _fresh("listings_observed_at", now, LISTINGS_FRESH) & true(listed >= DEPTH_LISTINGS),
        scaled(pl.col("listings_low"), pl.lit(WHOLE_BP - DEPTH_UNDERCUT_BP)),
        _until("listings_observed_at", LISTINGS_FRESH),
        _confidence(listed),
    )


def _anchor(now: datetime) -> _Kind:
    sold = pl.col("sales_count")
    # The sales were counted when they were fetched, so the newest sale may be too old by now.
    recent = _fresh("sales_newest_at", now, SALES_WINDOW)
    return _Kind(
        "sales_anchor",
        _fresh("sales_fetched_at", now, SALES_FETCHED) & true(sold >= ANCHOR_SALES) & recent,
        pl.col("sales_median"),
        pl.min_horizontal(
            _until("sales_fetched_at", SALES_FETCHED), _until("sales_newest_at", SALES_WINDOW)
        ),
        _confidence(sold),
    )


def _generic(now: datetime, hours: int) -> _Kind:
    span = timedelta(hours=hours)
    return _Kind(
        "generic_raise",
        _fresh("observed_at", now, span) & pl.col("market").is_not_null() & ~pl.col("leaps"),
        pl.col("market"),
        _until("observed_at", span),
        pl.lit("low"),
    )


def _pulse(now: datetime) -> _Kind:
    """Propose a price that is 5 % higher if the last week sold at least as much as the 23 days
    before it.
    """
    week = pl.col("sales_week")
    quick = true(week >= PULSE_SALES) & true(week * 2 >= pl.col("sales_count"))
    return _Kind(
        "demand_pulse",
        _fresh("sales_fetched_at", now, SALES_FETCHED) & quick,
        scaled(pl.col("asked_now"), pl.lit(WHOLE_BP + PULSE_RISE_BP)),
        _until("sales_fetched_at", SALES_FETCHED),
        pl.when(week >= 2 * PULSE_SALES).then(pl.lit("medium")).otherwise(pl.lit("low")),
    )


def plain(rule: Rule, *, lowering: bool = False) -> Rule:
    """Return a rule that asks the market price itself, within the limits of `rule`. With
    `lowering`, omit the limits that only prevent a price from falling.
    """
    if rule.guard:
        return rule
    kept = replace(
        rule,
        price_source="market",
        fallback_sources=(),
        adjust_bp=0,
        adjust_amount=0,
        market_gate=None,
        undercut_up_bp=None,
        stale=None,
        # A person who accepts a price has reviewed it. Hold-outs still apply.
        review=ReviewLimits(),
    )
    return replace(kept, never_lower=False, cap=None) if lowering else kept


def _allowed(proposals: pl.DataFrame, run: Run, *, lowering: bool = False) -> pl.DataFrame:
    """Return the proposals with `proposed`, the price after the seller's limits. Proposals that a
    limit holds are omitted.
    """
    inputs = [name for name in engine.INPUT_COLUMNS if name in proposals.columns]
    allowing = replace(
        run,
        rules=[plain(rule, lowering=lowering) for rule in run.rules],
        seller=replace(run.seller, shipping_adder=None),
        sales=(),
    )
    out = simulate(
        allowing,
        proposals.select(
            *(name for name in inputs if name not in ("market", "observed_at")),
            "rule_id",
            *(name for name in ("guards",) if name in proposals.columns),
            market="wanted",
            observed_at=moment(run.now),
        ),
    ).cards
    proposed = proposals.with_columns(proposed=out["target"], held=out["held"])
    return proposed.filter(pl.col("proposed").is_not_null() & ~pl.col("held").fill_null(False))


def _nets(prices: pl.Expr, run: Run, priced: pl.DataFrame, name: str) -> pl.Series:
    """Return the net of each price after the fees, in ten-thousandths, rounded down."""
    asked = priced.select(price=prices, direct=pl.col("direct_low").is_not_null())
    distinct = asked.unique().sort("price", "direct")
    level = run.seller.fee_level
    left = [
        net(price, run.schedule, level, direct=direct and run.seller.direct_program) // WHOLE_BP
        for price, direct in distinct.iter_rows()
    ]
    known = distinct.with_columns(pl.Series(name, left, dtype=pl.Int64))
    return asked.join(known, on=["price", "direct"], how="left", maintain_order="left")[name]


def _valued(proposals: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Add `expected_value`: the net of the proposed price less the net of the current price, times
    the copies that thirty days may sell.

    The copies are the sales of the product in the card's condition, printing and language in thirty
    days, at most the stock. If sales are unknown, a quarter of a copy is assumed. The value is
    rounded half-up to cents.
    """
    raised = proposals.filter(_worth_it(pl.col("proposed"), pl.col("asked_now")))
    gains = _nets(pl.col("proposed"), run, raised, "net") - _nets(
        pl.col("asked_now"),
        run,
        raised,
        "net",
    )
    known = _fresh("sales_fetched_at", run.now, SALES_FETCHED)
    copies = pl.min_horizontal("quantity", "sales_count").cast(pl.Int64)
    quarters = pl.when(known).then(copies * 4).otherwise(pl.lit(1, pl.Int64))
    return raised.with_columns(
        gain=gains,
        sales_known=known,
    ).with_columns(
        expected_value=(pl.col("gain") * quarters + 2 * UNITS_PER_CENT)
        // (4 * UNITS_PER_CENT)
        * UNITS_PER_CENT,
    )


def _best(valued: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Return the best review of each card. `signals` are the card's other reviews."""
    ranked = valued.filter(pl.col("expected_value") > 0).sort(
        ["id", "expected_value", "kind"],
        descending=[False, True, False],
    )
    rivals = pl.struct("kind", "proposed", "expected_value")
    first = [
        "kind", "rule_id", "current_price", "proposed", "expected_value", "expires_at",
        "confidence", "sales_known", "asked_now", *_FIGURES,
    ]  # fmt: skip
    return (
        ranked.group_by("id", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in first),
            rivals.slice(1, SIGNALS_MOST).alias("signals"),
        )
        .sort(["expected_value", "id"], descending=[True, False])
        .head(limits.most)
    )


def stale_stock(cards: pl.DataFrame, unsold: Sequence[int], run: Run) -> pl.DataFrame:
    """Return the cards of `unsold` that may sell at a reduced price: the market price is fresh, the
    seller's floors allow a fifth less, and nobody has bought out the market lately.
    """
    bought_out = within(run.now - STALE_LASTS, run.now, "buy_out_detected_at")
    span = timedelta(hours=run.seller.max_age_hours)
    wanted = cents(scaled(pl.col("current_price"), pl.lit(WHOLE_BP - STALE_CUT_BP))) * 100
    old = cards.filter(
        pl.col("id").is_in(list(unsold))
        & _fresh("observed_at", run.now, span)
        & pl.col("market").is_not_null()
        & ~bought_out
    ).with_columns(
        wanted=wanted,
        expires_at=pl.min_horizontal(
            _until("observed_at", span),
            moment(run.now + STALE_LASTS),
        ),
    )
    if old.is_empty():
        return old.with_columns(proposed=pl.col("wanted"))
    allowed = _allowed(old, run, lowering=True)
    return allowed.filter(pl.col("proposed") < pl.col("current_price")).sort("id")


@dataclass(frozen=True)
class AccountSignal:
    """A suggestion about one rule; `figures` are its evidence."""

    kind: str
    rule_id: int
    name: str
    figures: dict[str, object]

    @property
    def evidence(self) -> dict[str, object]:
        """Return the figures with a sentence on the evidence and one on the remedy."""
        said, ends = _ADVICE[self.kind]
        return self.figures | {
            "reason": said.format(**self.figures),
            "would_change": ends,
        }


_ADVICE: Final = {
    "never_matching_rule": (
        "The rule prices no cards.",
        "Clears when its search matches cards that no earlier rule prices.",
    ),
    "rule_scope_drift": (
        "The rule prices {cards} cards, and priced {cards_before} at the last check.",
        "Clears with the next sync if the rule still prices this many cards.",
    ),
    "missing_floor": (
        "The rule prices {cards_below} cards under {below}, and has no minimum price.",
        "Clears when the rule or the shop has a minimum price.",
    ),
}
DRIFT_FROM_CARDS: Final = 20


def account_signals(
    run: Run,
    governed: dict[int, int],
    before: dict[int, int],
    cheap: dict[int, int],
) -> list[AccountSignal]:
    """Return the suggestions about rules: `governed` and `before` count each rule's cards now and
    at the last generation, and `cheap` counts the cards whose price is below CHEAP.

    A rule has drifted if it lost half of its cards or now has twice as many. A rule without cards
    never matches. A rule misses a floor if some of its prices are very low and neither the rule nor
    the shop has a floor.
    """
    found: list[AccountSignal] = []
    floor = run.seller.hard_floor
    for rule in run.live:
        cards, were = governed.get(rule.id, 0), before.get(rule.id)
        # The default rule governs the cards that no other rule selects, so it may govern no cards.
        if cards == 0 and rule.priority != DEFAULT_PRIORITY:
            found.append(AccountSignal("never_matching_rule", rule.id, rule.name, {}))
        elif were is not None and _drifted(were, cards):
            figures: dict[str, object] = {"cards": cards, "cards_before": were}
            found.append(AccountSignal("rule_scope_drift", rule.id, rule.name, figures))
        if cheap.get(rule.id) and rule.floor is None and floor is None:
            figures = {"cards_below": cheap[rule.id], "below": dollars(CHEAP)}
            found.append(AccountSignal("missing_floor", rule.id, rule.name, figures))
    return found


# Below this price, a sale's net is zero or less after its fixed fee.
CHEAP: Final = 3_500


def _drifted(before: int, now: int) -> bool:
    return max(before, now) >= DRIFT_FROM_CARDS and 2 * min(before, now) <= max(before, now)

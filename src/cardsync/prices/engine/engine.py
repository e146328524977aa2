"""The pricing engine: computes each card's target price and receipt from rules and a given time.
Pure: it uses neither a database nor a clock.

Sync, preview, explanation, backtest and replay all call `price`. Money is Int64 ten-thousandths of
a dollar throughout. A card's price depends only on its own row and the run, not on other rows or
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

import polars as pl
import polars.selectors as cs

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine import holdout, market_steps, review, rounding, sources, steps
from cardsync.prices.engine.expressions import cents, true, where
from cardsync.prices.engine.row_values import col, lit, when
from cardsync.prices.engine.rules import PRICE_SOURCES, Rule, Sale
from cardsync.prices.engine.run_inputs import TIME, Run, rule_parameters, sale_parameters
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.engine.steps import BLOCKER_BIT

REQUIRED_COLUMNS: Final[dict[str, pl.DataType]] = {
    "marketplace_id": pl.Int64(),
    "condition": pl.String(),
    "printing": pl.String(),
    "language": pl.String(),
    "quantity": pl.Int64(),
    "custom": pl.Boolean(),
    "current_price": pl.Int64(),
    "market": pl.Int64(),
    "low": pl.Int64(),
    "low_with_shipping": pl.Int64(),
    "direct_low": pl.Int64(),
    "observed_at": TIME,
}
OPTIONAL_COLUMNS: Final[dict[str, pl.DataType]] = {
    "stamped": pl.Boolean(),
    "product_line_enabled": pl.Boolean(),
    "game_has_rules": pl.Boolean(),
    "pin": pl.Int64(),
    "day_start_price": pl.Int64(),
    "week_start_price": pl.Int64(),
    "listed_since": TIME,
    "last_sold_at": TIME,
    "last_moved_at": TIME,
    "sales_median": pl.Int64(),
    "sales_count": pl.Int64(),
    "sales_newest_at": TIME,
    "sales_fetched_at": TIME,
    "listings_low": pl.Int64(),
    "listings_count": pl.Int64(),
    "listings_observed_at": TIME,
    "buy_out_detected_at": TIME,
    "sales_of_network": pl.Boolean(),
    "listings_of_network": pl.Boolean(),
    "approved_price": pl.Int64(),
    # The average cost of the copies in lots; unlike a price, it may be zero.
    "cost": pl.Int64(),
}
INPUT_COLUMNS: Final = REQUIRED_COLUMNS | OPTIONAL_COLUMNS
# In these columns, zero and negative values mean "no price".
PRICE_INPUTS: Final = (
    "current_price",
    "market",
    "low",
    "low_with_shipping",
    "direct_low",
    "day_start_price",
    "week_start_price",
    "sales_median",
    "listings_low",
    "approved_price",
)
# The columns of all steps, in the order of the steps. Columns of steps that the run skips are null.
RECEIPT_COLUMNS: Final[dict[str, pl.DataType]] = {
    "blockers": pl.UInt16(),
    "rule_id": pl.Int64(),
    "candidates": pl.List(pl.Int64()),
    "source": sources.SOURCE,
    "source_observed_at": TIME,
    **{f"refused_{source}": sources.REFUSAL for source in PRICE_SOURCES},
    "base": pl.Int64(),
    "after_formula": pl.Int64(),
    "after_shipping_adder": pl.Int64(),
    "after_market_gate": pl.Int64(),
    "aggressive_price": pl.Int64(),
    "gate_verdict": market_steps.VERDICT,
    "after_undercut": pl.Int64(),
    "undercut_listing": pl.Int64(),
    "undercut_source": market_steps.LISTING_SOURCE,
    "undercut_observed_at": TIME,
    "undercut_verdict": market_steps.UNDERCUT,
    "after_stale_reduction": pl.Int64(),
    "stale_days": pl.Int32(),
    "stale_spared": pl.Boolean(),
    "after_bounds": pl.Int64(),
    "bound": steps.BOUND,
    "period_start_price": pl.Int64(),
    "after_cap": pl.Int64(),
    "seller_limit": pl.Int64(),
    "held": pl.Boolean(),
    "after_sale": pl.Int64(),
    "sale_id": pl.Int64(),
    "sale_ends_at": TIME,
    "after_hard_floor": pl.Int64(),
    "after_direct_minimum": pl.Int64(),
    "after_fee_gap": pl.Int64(),
    "after_rounding": pl.Int64(),
    "after_holdout": pl.Int64(),
    "holdout": holdout.GROUP,
    # The guards that select the card, as bits in the order of `Run.guards`.
    "guards": pl.Int64(),
    "guard_floor": pl.Int64(),
    "guard_floor_id": pl.Int64(),
    "guard_ceiling": pl.Int64(),
    "guard_ceiling_id": pl.Int64(),
    # The guard whose daily cap limited the price.
    "guard_cap_id": pl.Int64(),
    "after_review": pl.Int64(),
    "review": review.REASON,
    "target": pl.Int64(),
    "changed": pl.Boolean(),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One of steps 4 to 13: the column of its price, its function, and a test whether a run needs
    it.
    """

    output: str
    of: Callable[[pl.Expr, Run], list[pl.Expr]]
    needed: Callable[[Run], object] = lambda run: True


PRICE_STEPS: Final = (
    Step("after_formula", steps.formula),
    Step("after_shipping_adder", steps.shipping_adder, lambda run: run.seller.shipping_adder),
    Step("after_market_gate", market_steps.market_gate, lambda run: run.gated),
    Step("after_undercut", market_steps.undercut, lambda run: run.undercut),
    Step("after_stale_reduction", market_steps.stale_reduction, lambda run: run.stale),
    Step("after_bounds", steps.bounds),
    Step("after_cap", steps.cap, lambda run: run.capped),
    Step("after_sale", steps.sale, lambda run: run.on_sale),
    Step("after_hard_floor", steps.hard_floor, lambda run: run.seller.hard_floor or run.guards),
    Step("after_direct_minimum", steps.direct_minimum, lambda run: run.seller.direct_program),
    Step("after_fee_gap", steps.fee_gap, lambda run: run.fee_gapped),
    Step("after_rounding", rounding.rounding),
    Step("after_holdout", holdout.holdout, lambda run: run.held_out),
    Step("after_review", review.review, lambda run: run.reviewed),
    Step("target", steps.change),
)
# Null columns are built once, because building them takes longer than pricing one card.
NOTHING: Final = {
    name: pl.lit(None, dtype).alias(name)
    for name, dtype in (INPUT_COLUMNS | RECEIPT_COLUMNS).items()
}
# The run fills these columns before it calls the engine, because SQL evaluates the queries. The
# engine uses only the columns that the frame has.
RESOLVED: Final = ("rule_id", "sale_id", "candidates", "guards")


def price(
    cards: pl.DataFrame,
    rules: Sequence[Rule],
    seller: SellerPricing,
    now: datetime,
    sales: Sequence[Sale] = (),
) -> pl.DataFrame:
    """Price the cards and return them in the same order, with RECEIPT_COLUMNS.

    The columns `rule_id` and `sale_id` name the rule and the sale of each card.
    """
    run = run_for(rules, seller, now, sales)
    inputs = _inputs(cards)
    frame = _on_sale(_governed(inputs, run), inputs, run)
    for made in stages(run, guards_known="guards" in cards.columns):
        frame = frame.with_columns(made)
    return _with_receipt(frame, inputs.columns, set(cards.columns))


def stages(run: Run, *, guards_known: bool) -> Iterator[list[pl.Expr]]:
    """Yield the columns of each stage. The columns of a stage are built after those of the stages
    before it were added.
    """
    # Eligibility is step 1 of the spec, but runs after steps 2 and 3, because their failures make
    # cards ineligible.
    if run.costed:
        yield steps.floors_by_cost()
    if run.guards:
        yield steps.guards(run, resolved=guards_known)
        yield steps.guarded(run)
    if run.periodic:
        yield sources.period_start(run)
    for stage in (
        sources.refusals,
        steps.price_source,
        steps.source_price,
        steps.eligibility,
        steps.hard_limits,
    ):
        yield stage(run)
    if run.capped:
        yield steps.cap_limits(run)
    if run.guard_capped:
        yield steps.guard_cap_limits(run)
    before: pl.Expr = when(col("blockers") == 0).then(col("base"))
    for step in PRICE_STEPS:
        if step.needed(run):
            yield step.of(before, run)
            before = col(step.output)


def run_for(
    rules: Sequence[Rule],
    seller: SellerPricing,
    now: datetime,
    sales: Sequence[Sale],
) -> Run:
    if now.tzinfo is None:
        raise ValueError("now must have a time zone")
    for kind, known in (("rules", rules), ("sales", sales)):
        if len({entry.id for entry in known}) != len(known):
            raise ValueError(f"two {kind} have the same id")
    return Run(rules, seller, now.astimezone(UTC), sales)


def _governed(inputs: pl.DataFrame, run: Run) -> pl.LazyFrame:
    """Run step 2 and join the governing rule's parameters to each card."""
    governed = inputs.with_columns(governing(run, inputs.columns))
    if "rule_id" in inputs.columns:
        need_known("rule_id", governed["rule_id"].unique(), run)
    return governed.lazy().join(
        rule_parameters(run).lazy(),
        on="rule_id",
        how="left",
        maintain_order="left",
        validate="m:1",
    )


def governing(run: Run, columns: Collection[str]) -> list[pl.Expr]:
    """Return step 2 for cards with these columns."""
    resolved = "rule_id" in columns
    if run.any(lambda rule: rule.query) and not resolved:
        raise ValueError("queries are resolved before the engine: the cards lack rule_id")
    return steps.governing_rule(run, resolved=resolved)


def _on_sale(frame: pl.LazyFrame, inputs: pl.DataFrame, run: Run) -> pl.LazyFrame:
    """Join to each governed card the parameters of its sale."""
    if not run.on_sale:
        return frame.drop("sale_id", strict=False)
    if "sale_id" in inputs.columns:
        need_known("sale_id", inputs["sale_id"].unique(), run)
    return frame.with_columns(sale_of(run, inputs.columns)).join(
        sale_parameters(run).lazy(),
        on="sale_id",
        how="left",
        maintain_order="left",
        validate="m:1",
    )


def sale_of(run: Run, columns: Collection[str]) -> pl.Expr:
    """Return the sale of a governed card with these columns. No rule governs pinned cards, so sales
    do not change them.
    """
    every_card = next((sale.id for sale in run.active_sales if not sale.query), None)
    sale = col("sale_id") if "sale_id" in columns else lit(every_card, pl.Int64())
    return where(col("rule_id").is_not_null(), sale).alias("sale_id")


def _inputs(cards: pl.DataFrame) -> pl.DataFrame:
    """Return the cards with every input column in its type. Prices of zero or less become null.

    Columns that are not inputs stay unchanged.
    """
    need_columns(cards.columns)
    # Receipt columns of an earlier run are not inputs of this run.
    stale = [name for name in RECEIPT_COLUMNS if name not in RESOLVED and name in cards.columns]
    schema = cards.schema
    return cards.drop(stale).with_columns(_input(schema, name) for name in INPUT_COLUMNS)


def need_columns(columns: Collection[str]) -> None:
    """Raise ValueError unless these are all required columns."""
    if missing := REQUIRED_COLUMNS.keys() - set(columns):
        raise ValueError(f"cards lack {', '.join(sorted(missing))}")


def _input(schema: pl.Schema, name: str) -> pl.Expr:
    dtype = INPUT_COLUMNS[name]
    given = schema.get(name)
    if given is None:
        return NOTHING[name]
    if given.is_float() or given.is_decimal():
        raise TypeError(f"{name} is {given}: prices must be whole ten-thousandths of a dollar")
    column = pl.col(name) if given == dtype else pl.col(name).cast(dtype)
    return pl.when(column > 0).then(column).alias(name) if name in PRICE_INPUTS else column


def need_known(column: Literal["rule_id", "sale_id"], ids: Iterable[int | None], run: Run) -> None:
    """Raise ValueError unless the ids are those of live rules, or of active sales."""
    of_rules = column == "rule_id"
    known = {one.id for one in (run.live if of_rules else run.active_sales)}
    if unknown := {id for id in ids if id is not None} - known:
        what = "rules that may not price cards" if of_rules else "promotions that are not active"
        raise ValueError(f"{column} names {what}: {sorted(unknown)}")


def _with_receipt(frame: pl.LazyFrame, inputs: Sequence[str], given: set[str]) -> pl.DataFrame:
    columns = [name for name in inputs if name not in RESOLVED]
    wanted = [name for name in columns if name in given and name not in RECEIPT_COLUMNS]
    # Skipped steps wrote no columns.
    priced = frame.select(cs.by_name(*wanted, *RECEIPT_COLUMNS, require_all=False)).collect()
    # Missing input columns and columns of skipped steps are added as null literals, which use no
    # memory.
    kept = set(priced.columns)
    return priced.with_columns(
        nothing for name, nothing in NOTHING.items() if name not in kept
    ).select(*columns, *RECEIPT_COLUMNS)


def limited(priced: pl.DataFrame) -> pl.DataFrame:
    """Return the cards that a cap limits: `marketplace_id`; `rule_id` of the rule or guard with the
    cap; `asked`, the rule's price without the cap; and `held`, whether the cap keeps the current
    price.
    """
    return priced.filter(is_limited()).select(
        "marketplace_id", pl.coalesce("guard_cap_id", "rule_id").alias("rule_id"), "held",
        asked=_asked(),
    )  # fmt: skip


def _asked() -> pl.Expr:
    return cents(pl.col("after_bounds")) * UNITS_PER_CENT


def is_limited() -> pl.Expr:
    """Return whether a cap makes a card's target differ from its rule's price. Cards that a
    promotion, a hold-out or a review priced are excluded, because their receipts name that step.
    """
    asked = _asked()
    limit = pl.col("seller_limit")
    below = (limit < pl.col("after_bounds")) & (pl.col("target") < asked)
    above = (limit > pl.col("after_bounds")) & (pl.col("target") > asked)
    own = pl.col("sale_id").is_null() & pl.col("review").is_null()
    return true((below | above) & own & pl.col("holdout").ne_missing(pl.lit("held", holdout.GROUP)))


def gated(priced: pl.DataFrame) -> pl.DataFrame:
    """Return the marketplace ids of the cards whose market gate did not pass, and its verdicts."""
    verdict = pl.col("gate_verdict").cast(pl.String)
    held = priced.filter(verdict.is_not_null() & ~verdict.is_in(market_steps.GATE_PASSED))
    return held.select("marketplace_id", verdict=verdict)


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a run's cards.

    priced = unchanged + changed; changed = up + down; a first price counts as a rise. `reviewed`
    counts the cards whose price waits for the seller's decision. `held` counts the cards that a cap
    limits, whether they move to the cap's limit or keep their price. `up_value` and `down_value`
    are the sums of rises and falls, each multiplied by the card's copies, in ten-thousandths of a
    dollar.
    """

    cards: int
    priced: int
    changed: int
    unchanged: int
    up: int
    down: int
    held: int
    reviewed: int
    up_value: int
    down_value: int
    blocked: dict[str, int]


def summary(priced: pl.DataFrame) -> Summary:
    target = pl.col("target")
    current = pl.col("current_price").fill_null(0)
    move = (target - current) * pl.col("quantity").cast(pl.Int128)
    blocked = {
        code: (pl.col("blockers") & pl.lit(bit, pl.UInt16)) != 0
        for code, bit in BLOCKER_BIT.items()
    }
    counts = priced.select(
        pl.len().alias("cards"),
        target.is_not_null().sum().alias("priced"),
        pl.col("changed").sum(),
        (target > current).sum().alias("up"),
        (target < current).sum().alias("down"),
        is_limited().sum().alias("held"),
        move.filter(target > current).sum().alias("up_value"),
        move.filter(target < current).sum().alias("down_value"),
        pl.col("review").is_not_null().sum().alias("reviewed"),
        **{code: flag.sum() for code, flag in blocked.items()},
    ).row(0, named=True)
    return Summary(
        cards=counts["cards"],
        priced=counts["priced"],
        changed=counts["changed"],
        unchanged=counts["priced"] - counts["changed"],
        up=counts["up"],
        down=counts["down"],
        held=counts["held"],
        reviewed=counts["reviewed"],
        up_value=int(counts["up_value"]),
        down_value=-int(counts["down_value"]),
        blocked={code: counts[code] for code in BLOCKER_BIT if counts[code]},
    )

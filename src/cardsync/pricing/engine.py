"""Prices: cards, rules and a moment in; one target and its receipt per card out. Pure: no database, no clock.

Sync, preview, explanation, backtest and replay all call `price`. Money is Int64 ten-thousandths of a dollar throughout.
Every row depends on itself and the run alone, so neither the order nor the company of the rows changes a price.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import polars as pl

from cardsync.clock import rfc3339
from cardsync.limits import BREAKER_MIN_CARDS
from cardsync.money import dollars
from cardsync.pricing import steps
from cardsync.pricing.rules import PRICE_SOURCES, Rule, SellerPricing
from cardsync.pricing.steps import BLOCKER_BIT, BLOCKERS, Run

_TIME: Final = pl.Datetime("us", "UTC")

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
    "observed_at": _TIME,
}
OPTIONAL_COLUMNS: Final[dict[str, pl.DataType]] = {
    "stamped": pl.Boolean(),
    "product_line_enabled": pl.Boolean(),
    "pin": pl.Int64(),
    "period_start_price": pl.Int64(),
    "sales_median": pl.Int64(),
    "sales_count": pl.Int64(),
    "sales_newest_at": _TIME,
    "sales_fetched_at": _TIME,
}
INPUT_COLUMNS: Final = REQUIRED_COLUMNS | OPTIONAL_COLUMNS
# Zero and negative mean "no price", never a price of zero.
PRICE_INPUTS: Final = (
    "current_price",
    "market",
    "low",
    "low_with_shipping",
    "direct_low",
    "period_start_price",
    "sales_median",
)

# Every step's columns, in the order of the steps; those of steps that do not run yet are null.
RECEIPT_COLUMNS: Final[dict[str, pl.DataType]] = {
    "blockers": pl.UInt16(),
    "rule_id": pl.Int64(),
    "candidates": pl.List(pl.Int64()),
    "source": steps.SOURCE,
    "source_observed_at": _TIME,
    **{f"refused_{source}": steps.REFUSAL for source in PRICE_SOURCES},
    "base": pl.Int64(),
    "after_formula": pl.Int64(),
    "after_market_gate": pl.Int64(),
    "aggressive_price": pl.Int64(),
    "gate_verdict": pl.String(),
    "after_stale_reduction": pl.Int64(),
    "stale_days": pl.Int64(),
    "stale_spared": pl.Boolean(),
    "after_bounds": pl.Int64(),
    "bound": steps.BOUND,
    "after_cap": pl.Int64(),
    "cap_reference": pl.Int64(),
    "seller_limit": pl.Int64(),
    "cap_mode": pl.String(),
    "held": pl.Boolean(),
    "after_sale": pl.Int64(),
    "sale_id": pl.Int64(),
    "sale_ends_at": _TIME,
    "after_direct_minimum": pl.Int64(),
    "after_fee_gap": pl.Int64(),
    "net_before": pl.Int64(),
    "net_after": pl.Int64(),
    "fee_schedule_date": pl.Date(),
    "after_rounding": pl.Int64(),
    "target": pl.Int64(),
    "changed": pl.Boolean(),
}

# Steps 4 to 13 that run. Each takes the price that the one before it left; a new step is one more line here.
PRICE_STEPS: Final[dict[str, Callable[[pl.Expr, Run], list[pl.Expr]]]] = {
    "after_formula": steps.formula,
    "after_bounds": steps.bounds,
    "after_rounding": steps.rounding,
    "target": steps.change,
}

BREAKER_MOVE_BP: Final = 5_000
BREAKER_SHARE_BP: Final = 2_000


def price(cards: pl.DataFrame, rules: Sequence[Rule], seller: SellerPricing, now: datetime) -> pl.DataFrame:
    """The cards in their order, with RECEIPT_COLUMNS. A column `rule_id` among them names the governing rules."""
    run = _run(rules, seller, now)
    resolved = "rule_id" in cards.columns
    inputs = _inputs(cards)
    governed = inputs.with_columns(steps.governing_rule(run, resolved=resolved))
    frame = governed.lazy().join(
        steps.rule_parameters(run).lazy(), on="rule_id", how="left", maintain_order="left", validate="m:1"
    )
    if resolved:
        _need_known(governed["rule_id"], run)
    # Eligibility is the first step, and reads what the second and third could not find.
    for stage in (steps.references, steps.price_source, steps.source_price, steps.eligibility, steps.hard_limits):
        frame = frame.with_columns(stage(run))
    before: pl.Expr = pl.when(pl.col("blockers") == 0).then(pl.col("base"))
    for output, step in PRICE_STEPS.items():
        frame = frame.with_columns(step(before, run))
        before = pl.col(output)
    return _with_receipt(frame, inputs.columns).collect()


def _run(rules: Sequence[Rule], seller: SellerPricing, now: datetime) -> Run:
    if now.tzinfo is None:
        raise ValueError("now must have a time zone")
    if len({rule.id for rule in rules}) != len(rules):
        raise ValueError("two rules have the same id")
    return Run(rules, seller, now.astimezone(UTC))


def _inputs(cards: pl.DataFrame) -> pl.DataFrame:
    """The cards with every input column, typed, and without prices that are none. Other columns pass through."""
    missing = REQUIRED_COLUMNS.keys() - set(cards.columns)
    if missing:
        raise ValueError(f"cards lack {', '.join(sorted(missing))}")
    # What an earlier run left in the frame is not an input of this one.
    stale = [name for name in RECEIPT_COLUMNS if name != "rule_id" and name in cards.columns]
    return cards.drop(stale).with_columns(_input(cards.schema, name) for name in INPUT_COLUMNS)


def _input(schema: pl.Schema, name: str) -> pl.Expr:
    dtype = INPUT_COLUMNS[name]
    given = schema.get(name)
    if given is None:
        return pl.lit(None, dtype).alias(name)
    if given.is_float() or given.is_decimal():
        raise TypeError(f"{name} is {given}: prices are whole ten-thousandths of a dollar")
    column = pl.col(name) if given == dtype else pl.col(name).cast(dtype)
    return pl.when(column > 0).then(column).alias(name) if name in PRICE_INPUTS else column


def _need_known(rule_ids: pl.Series, run: Run) -> None:
    unknown = set(rule_ids.unique().drop_nulls()) - {rule.id for rule in run.live}
    if unknown:
        raise ValueError(f"rule_id names rules that may not govern: {sorted(unknown)}")


def _with_receipt(frame: pl.LazyFrame, inputs: Sequence[str]) -> pl.LazyFrame:
    written = set(frame.collect_schema().names())
    receipt = [
        pl.col(name) if name in written else pl.lit(None, dtype).alias(name) for name, dtype in RECEIPT_COLUMNS.items()
    ]
    return frame.select(*(name for name in inputs if name != "rule_id"), *receipt)


def breaker(priced: pl.DataFrame) -> bool:
    """Whether the run has to stop for a look: too many cards would move too far, before caps soften it."""
    # A card without a price has nothing to move from: new cards must not dilute the share.
    movable = pl.col("after_bounds").is_not_null() & pl.col("current_price").is_not_null()
    distance = (pl.col("after_bounds") - pl.col("current_price")).abs()
    far = movable & (distance * 10_000 > pl.col("current_price") * BREAKER_MOVE_BP)
    cards, moving = priced.select(movable.sum().alias("cards"), far.sum().alias("far")).row(0)
    return bool(cards >= BREAKER_MIN_CARDS and moving * 10_000 > cards * BREAKER_SHARE_BP)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a run. priced = unchanged + changed; changed = up + down + cards that had no price."""

    cards: int
    priced: int
    changed: int
    unchanged: int
    up: int
    down: int
    held: int
    blocked: dict[str, int]


def summary(priced: pl.DataFrame) -> Summary:
    target, current = pl.col("target"), pl.col("current_price")
    blocked = {code: (pl.col("blockers") & pl.lit(bit, pl.UInt16)) != 0 for code, bit in BLOCKER_BIT.items()}
    counts = priced.select(
        pl.len().alias("cards"),
        target.is_not_null().sum().alias("priced"),
        pl.col("changed").sum(),
        (target > current).sum().alias("up"),
        (target < current).sum().alias("down"),
        pl.col("held").sum(),
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
        blocked={code: counts[code] for code in BLOCKER_BIT if counts[code]},
    )


def blocker_codes(bits: int) -> list[str]:
    return [code for code, bit in BLOCKER_BIT.items() if bits & bit]


def explain(priced_row: Mapping[str, Any], rules: Sequence[Rule]) -> list[dict[str, object]]:
    """The steps that ran for one card, as they go over the wire; `rules` are those that the run had.

    Each step's input is the output of the one before it; the steps before a base is found pass the current price on.
    """
    row = priced_row
    if row["pin"] is not None:
        return []
    rule = _rule_of(row, rules)
    told = [_tell_eligibility(row), _tell_rule(row, rule, rules)]
    if rule is None:
        return told
    told.append(_tell_source(row, rule))
    before = row["base"]
    for output, tell in _TELL.items():
        if row[output] is None:
            continue
        told.append(_step(output.removeprefix("after_"), before, row[output], *tell(row, rule, before)))
        before = row[output]
    return told


def _rule_of(row: Mapping[str, Any], rules: Sequence[Rule]) -> Rule | None:
    if row["rule_id"] is None:
        return None
    for rule in rules:
        if rule.id == row["rule_id"]:
            return rule
    raise ValueError(f"rule {row['rule_id']} is not among the run's rules")


def _step(name: str, before: int | None, after: int | None, said: str, own: dict[str, object]) -> dict[str, object]:
    name = "change" if name == "target" else name
    return {"name": name, "input": _money(before), "output": _money(after), "summary": said, **own}


def _money(units: int | None) -> str | None:
    return None if units is None else dollars(units)


def _tell_eligibility(row: Mapping[str, Any]) -> dict[str, object]:
    codes = blocker_codes(row["blockers"])
    reasons = "; ".join(BLOCKERS[code].removesuffix(".") for code in codes)
    said = f"The price is kept: {reasons}." if codes else "Nothing blocks the card."
    return _step("eligibility", row["current_price"], row["current_price"], said, {"blockers": codes})


def _tell_rule(row: Mapping[str, Any], rule: Rule | None, rules: Sequence[Rule]) -> dict[str, object]:
    losing = row["candidates"]
    if losing is None:
        # Without queries every live rule selects every card, so those after the governing one have lost.
        later = sorted((r for r in rules if r.live and not r.query), key=lambda r: (r.priority, r.id))
        losing = [r.id for r in later if rule and (r.priority, r.id) > (rule.priority, rule.id)]
    said = f"Rule “{rule.name}” is the first that selects the card." if rule else "No published rule selects the card."
    own: dict[str, object] = {"rule_id": row["rule_id"], "losing_candidates": losing}
    return _step("governing_rule", row["current_price"], row["current_price"], said, own)


def _tell_source(row: Mapping[str, Any], rule: Rule) -> dict[str, object]:
    source, seen = row["source"], row["source_observed_at"]
    earlier = rule.sources[: rule.sources.index(source)] if source else rule.sources
    unused: list[dict[str, str]] = [{"source": name, "reason": row[f"refused_{name}"]} for name in earlier]
    why = " and ".join(f"{entry['source']} is {_REASONS[entry['reason']]}" for entry in unused)
    said = f"The base is {source}, {_money(row['base'])}" if source else "No price source can be used"
    own: dict[str, object] = {
        "source": source,
        "observed_at": rfc3339(seen) if seen else None,
        "unused_sources": unused,
    }
    return _step("price_source", row["current_price"], row["base"], f"{said}{', because ' + why if why else ''}.", own)


_REASONS: Final = {
    "absent": "absent",
    "too_old": "too old",
    "too_few_sales": "based on too few sales",
    "sales_too_old": "based on sales too long ago",
    "evidence_too_old": "based on evidence fetched too long ago",
}

_Told = tuple[str, dict[str, object]]


def _tell_formula(row: Mapping[str, Any], rule: Rule, before: int) -> _Told:
    percent = f"{Decimal(rule.adjust_bp) / 100:+f} %"
    amount = f" and {'-' if rule.adjust_amount < 0 else '+'}{_money(abs(rule.adjust_amount))}"
    said = f"{_money(before)} {percent}{amount if rule.adjust_amount else ''} is {_money(row['after_formula'])}."
    return said, {"adjust_bp": rule.adjust_bp, "adjust_amount": _money(rule.adjust_amount)}


def _tell_bounds(row: Mapping[str, Any], rule: Rule, before: int) -> _Told:
    after, bound = _money(row["after_bounds"]), row["bound"]
    said = f"The bound {bound} makes it {after}." if bound else f"{after} is within the bounds."
    own = {"floor": _money(rule.floor), "ceiling": _money(rule.ceiling), "never_lower": rule.never_lower}
    return said, {"bound": bound, **own}


def _tell_rounding(row: Mapping[str, Any], rule: Rule, before: int) -> _Told:
    after = row["after_rounding"]
    said = f"{_money(before)} needs no rounding." if after == before else f"{_money(before)} becomes {_money(after)}."
    return said, {"rounding": rule.rounding}


def _tell_change(row: Mapping[str, Any], rule: Rule, before: int) -> _Told:
    current, target = _money(row["current_price"]), _money(row["target"])
    moved = f"The price changes from {current} to {target}." if current else f"The first price is {target}."
    kept = f"The price stays at {current}: {_money(before)} is no large enough move."
    same = f"The price is {current} already."
    said = moved if row["changed"] else same if before == row["target"] else kept
    return said, {"changed": row["changed"]}


_TELL: Final[dict[str, Callable[[Mapping[str, Any], Rule, int], _Told]]] = {
    "after_formula": _tell_formula,
    "after_bounds": _tell_bounds,
    "after_rounding": _tell_rounding,
    "target": _tell_change,
}

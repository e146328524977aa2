"""`python bench/engine.py [CARDS]`: the pricing engine against a plain Python loop of the same
steps.

The loop runs on a tenth of the cards and is scaled; both have to come to the same targets before
anything is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl

from cardsync.prices.engine.breaker import leaps, stops
from cardsync.prices.engine.engine import price, summary
from cardsync.prices.engine.preset_rules import PRESETS, preset_rule
from cardsync.prices.engine.rules import Cap, MarketGate, Rule, Sale, SmallCap, Stale
from cardsync.prices.engine.run_inputs import ENDING_CENTS, Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.engine.steps import LARGEST_PRICE
from ground import Report

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SELLER = SellerPricing(direct_program=True)
ROUNDS = 7


def make_cards(count: int) -> pl.DataFrame:
    """Prices spread over 0.05 to 200 dollars, some missing, the same on every run."""
    number = pl.int_range(count, dtype=pl.Int64)
    spread = number.hash(seed=1) % 2_000
    market = (spread.cast(pl.Int64) + 5) * 1_000
    moment = pl.lit(NOW, pl.Datetime("us", "UTC"))

    def some(column: pl.Expr, seed: int, percent: int) -> pl.Expr:
        return pl.when(number.hash(seed=seed) % 100 < percent).then(column)

    return pl.select(
        number.alias("marketplace_id"),
        pl.lit("Near Mint").alias("condition"),
        pl.lit("Normal").alias("printing"),
        pl.lit("English").alias("language"),
        (number % 5).alias("quantity"),
        pl.lit(False).alias("custom"),
        some(market + 500, 2, 95).alias("current_price"),
        some(market, 3, 90).alias("market"),
        some(market - 700, 4, 90).alias("low"),
        some(market + 12_300, 5, 80).alias("low_with_shipping"),
        some(market + 20_000, 6, 50).alias("direct_low"),
        pl.lit(NOW, pl.Datetime("us", "UTC")).alias("observed_at"),
        some(market + 300, 7, 80).alias("day_start_price"),
        some(market - 200, 8, 80).alias("week_start_price"),
        (moment - pl.duration(days=number.hash(seed=9) % 120)).alias("listed_since"),
        some(moment - pl.duration(days=number.hash(seed=10) % 30), 11, 50).alias("last_moved_at"),
        (number.hash(seed=12) % 9).cast(pl.Int64).alias("sales_count"),
        some(moment - pl.duration(hours=number.hash(seed=13) % 40), 14, 70).alias(
            "sales_fetched_at"
        ),
        some(market - 900, 15, 70).alias("listings_low"),
        (number.hash(seed=16) % 9).cast(pl.Int64).alias("listings_count"),
        some(moment - pl.duration(hours=number.hash(seed=17) % 40), 18, 70).alias(
            "listings_observed_at"
        ),
        some(moment - pl.duration(hours=1), 19, 5).alias("buy_out_detected_at"),
    )


def every_step() -> tuple[list[Rule], list[Sale]]:
    """20 rules that ask for all steps between them, most for most, and 3 sales."""
    presets, endings = list(PRESETS.values()), list(ENDING_CENTS)
    cap = Cap(2_000, 2_000, small=SmallCap(50_000, 1_500, 1_500))
    rules = [
        replace(
            presets[n % 4],
            id=n + 1,
            priority=n + 1,
            rounding=endings[n // 4 % 4],
            floor=n * 2_500,
            stale=Stale(60, 500, 7, 4_000) if n % 3 else None,
            velocity_boost_enabled=n % 2 == 0,
            market_gate=MarketGate(3, 3, 24, 100) if n % 4 else None,
            cap=replace(
                cap, period=("day", "week", "sync")[n % 3], mode="hold" if n % 5 == 0 else "clamp"
            ),
            fee_gap_adjustment=n % 2 == 0,
        )
        for n in range(20)
    ]
    day = timedelta(days=1)
    return rules, [
        Sale(n, f"Sale {n}", n, -500 * n, NOW - day, NOW + day, floor=1_000) for n in (1, 2, 3)
    ]


def plain_target(
    card: dict[str, Any], rules: dict[int, Rule], sales: dict[int, Sale], run: Run
) -> int | None:
    """The same steps for one card, as a program would go through them that does not know of
    columns.
    """
    seller, rule = run.seller, rules[card["rule_id"]]
    fresh = card["observed_at"] >= run.now - timedelta(hours=seller.max_age_hours)
    base = next((card[source] for source in rule.sources if card[source] and fresh), None)
    if base is None or card["quantity"] <= 0:
        return None
    current: int | None = card["current_price"]
    value: int = (base * (10_000 + rule.adjust_bp) + 5_000) // 10_000 + rule.adjust_amount
    value = plain_gate(value, card, rule, run)
    value = plain_stale(value, card, rule, run)
    low = max(rule.floor or 0, (current or 0) if rule.never_lower else 0, 100)
    high = min(rule.ceiling or LARGEST_PRICE, LARGEST_PRICE)
    bounded = min(max(value, low), high)
    bottom, top = plain_limits(card, rule, seller.minimum_cap_step)
    value, limit = bounded, None
    if top is not None and value > top:
        limit = top
    elif bottom is not None and value < bottom:
        limit = bottom
    held = limit is not None and rule.cap is not None and rule.cap.mode == "hold"
    value = stopped = (current or 0) if held else value if limit is None else limit
    sale = sales.get(card["sale_id"])
    if sale:
        value = max((value * (10_000 + sale.adjust_bp) + 5_000) // 10_000, sale.floor or 0)
    direct = seller.direct_program and card["direct_low"] is not None
    if direct:
        value = max(value, seller.direct_minimum)
    if (
        rule.fee_gap_adjustment
        and direct
        and run.fee_gap
        and run.fee_gap[0] <= value < run.fee_gap[1] <= high
    ):
        value = run.fee_gap[1]
    if not (held and value == current and value >= 100):
        under = max(rule.floor or 0, (current or 0) if rule.never_lower and not sale else 0)
        cents = (value + 50) // 100
        if bottom is not None and value >= bottom:
            cents = max(cents, -(-bottom // 100))
        if top is not None and value <= top:
            cents = min(cents, top // 100)
        lowest, highest = -(-under // 100), high // 100
        if limit is not None and limit < bounded:
            lowest = min(lowest, stopped // 100)
        if limit is not None and limit > bounded:
            highest = max(highest, -(-stopped // 100))
        last = highest if top is None else min(highest, max(top // 100, cents))
        raised = max(
            (sale.floor if sale else None) or 0, seller.direct_minimum if direct else 0, 100
        )
        cents = min(max(cents, lowest, -(-raised // 100)), highest)
        step = ENDING_CENTS[rule.rounding]
        ending = cents + step - 1 - cents % step
        value = (ending if ending <= last else cents) * 100
    return current if current is not None and abs(value - current) < seller.minimum_move else value


def plain_gate(value: int, card: dict[str, Any], rule: Rule, run: Run) -> int:
    gate = rule.market_gate
    if gate is None or card["market"] is None or card["listings_low"] is None:
        return value
    oldest = run.now - timedelta(hours=gate.max_age_hours)
    aggressive: int = (card["listings_low"] * (10_000 - gate.undercut_bp) + 5_000) // 10_000
    times = (card["observed_at"], card["listings_observed_at"], card["sales_fetched_at"])
    if any(time is None or not oldest <= time <= run.now for time in times):
        return value
    deep = card["listings_count"] >= gate.min_listings and card["sales_count"] >= gate.min_sales_30d
    return (
        aggressive if deep and card["buy_out_detected_at"] is None and aggressive < value else value
    )


def plain_stale(value: int, card: dict[str, Any], rule: Rule, run: Run) -> int:
    if rule.stale is None:
        return value
    days = (card["observed_at"] - card["listed_since"]).days
    if days < rule.stale.after_days:
        return value
    if (
        rule.velocity_boost_enabled
        and card["last_moved_at"]
        and card["last_moved_at"] >= run.now - timedelta(days=14)
    ):
        return value
    cuts = 1 + (days - rule.stale.after_days) // rule.stale.every_days
    off = min(cuts * rule.stale.step_bp, rule.stale.limit_bp)
    return (value * (10_000 - off) + 5_000) // 10_000


def plain_limits(card: dict[str, Any], rule: Rule, step: int) -> tuple[int | None, int | None]:
    cap, current = rule.cap, card["current_price"]
    if cap is None or current is None:
        return None, None
    begun = {"day": card["day_start_price"], "week": card["week_start_price"], "sync": None}[
        cap.period
    ]
    start = begun or current
    small = cap.small if cap.small and start < cap.small.below else cap
    assert small.up_bp is not None
    assert small.down_bp is not None
    bottom = -(-(start * (10_000 - small.down_bp)) // 10_000)
    top = start * (10_000 + small.up_bp) // 10_000
    return (
        min(bottom, current, start - step if small.down_bp else current),
        max(top, current, start + step if small.up_bp else current),
    )


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of the rounds after one to warm up."""
    work()
    taken = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return sorted(taken)[rounds // 2]


def measure(_data: Path, count: int) -> Report:
    report = Report("Engine")
    cards, preset = make_cards(count), preset_rule("competitive")
    rules, sales = every_step()
    resolved = cards.with_columns(
        rule_id=pl.col("marketplace_id") % 20 + 1,
        sale_id=pl.when(pl.col("marketplace_id") % 5 < 3).then(pl.col("marketplace_id") % 5 + 1),
    )
    part = resolved.head(count // 10)
    rows, run = part.to_dicts(), Run(rules, SELLER, NOW, sales)
    rule_of, sale_of = {rule.id: rule for rule in rules}, {sale.id: sale for sale in sales}

    def plain() -> list[int | None]:
        return [plain_target(row, rule_of, sale_of, run) for row in rows]

    assert price(part, rules, SELLER, NOW, sales)["target"].to_list() == plain()
    loop = seconds(plain, 3) * count / len(rows)
    one = seconds(lambda: price(cards, [preset], SELLER, NOW))
    every = seconds(lambda: price(resolved, rules, SELLER, NOW, sales))
    priced = price(cards, [preset], SELLER, NOW)
    counting = seconds(lambda: (summary(priced), stops(priced, leaps(priced))))
    report.note(f"{count:,} cards, milliseconds (median of {ROUNDS})")
    report.note(f"engine, one preset                     {one * 1000:8.1f}")
    report.note(
        "engine, 20 rules, 3 sales,"
        f" all steps   {every * 1000:8.1f}   {every / count * 1e6:.2f} µs a card"
    )
    report.note(f"summary and breaker                    {counting * 1000:8.1f}")
    report.note(
        f"plain Python loop of all steps         {loop * 1000:8.1f}   on {len(rows):,}"
        " cards, scaled"
    )
    report.note(f"ratio, all steps                       {loop / every:8.1f} x")
    report.figure(f"engine of all steps, {count:,} cards", every, "s")
    report.figure("the same, a card", every / count * 1e6, "µs")
    report.figure("plain Python loop / engine, all steps", loop / every)
    return report


if __name__ == "__main__":
    measure(Path(), int(sys.argv[1]) if len(sys.argv) > 1 else 300_000).show()

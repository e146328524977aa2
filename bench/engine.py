"""`python bench/engine.py [CARDS]`: the pricing engine against a plain Python loop of the same steps.

The loop runs on a tenth of the cards and is scaled; both have to come to the same targets before anything is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

import polars as pl

from cardsync.pricing.engine import breaker, price, summary
from cardsync.pricing.rules import PRESETS, Rule, SellerPricing, preset_rule
from cardsync.pricing.steps import ENDING_CENTS, LARGEST_PRICE

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SELLER = SellerPricing()
ROUNDS = 7


def make_cards(count: int) -> pl.DataFrame:
    """Prices spread over 0.05 to 200 dollars, some missing, the same on every run."""
    number = pl.int_range(count, dtype=pl.Int64)
    spread = number.hash(seed=1) % 2_000
    market = (spread.cast(pl.Int64) + 5) * 1_000

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
    )


def twenty_rules() -> list[Rule]:
    presets, endings = list(PRESETS.values()), list(ENDING_CENTS)
    return [
        replace(presets[n % 4], id=n + 1, priority=n + 1, rounding=endings[n // 4 % 4], floor=n * 2_500)
        for n in range(20)
    ]


def plain_target(card: dict[str, Any], rule: Rule) -> int | None:
    oldest = NOW - timedelta(hours=SELLER.max_age_hours)
    fresh = card["observed_at"] >= oldest
    base = next((card[source] for source in rule.sources if card[source] and fresh), None)
    if base is None or card["quantity"] <= 0:
        return None
    current: int | None = card["current_price"]
    value: int = (base * (10_000 + rule.adjust_bp) + 5_000) // 10_000 + rule.adjust_amount
    low = max(rule.floor or 0, (current or 0) if rule.never_lower else 0, 100)
    high = min(rule.ceiling or LARGEST_PRICE, LARGEST_PRICE)
    value = min(max(value, low), high)
    cents = min(max((value + 50) // 100, -(-low // 100)), high // 100)
    step = ENDING_CENTS[rule.rounding]
    ending = cents + step - 1 - cents % step
    value = (ending if ending <= high // 100 else cents) * 100
    return current if current is not None and abs(value - current) < SELLER.minimum_move else value


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of the rounds after one to warm up."""
    work()
    taken = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return sorted(taken)[rounds // 2]


def main(count: int) -> None:
    cards, rule = make_cards(count), preset_rule("competitive")
    part = cards.head(count // 10)
    rows = part.to_dicts()
    assert price(part, [rule], SELLER, NOW)["target"].to_list() == [plain_target(row, rule) for row in rows]
    loop = seconds(lambda: [plain_target(row, rule) for row in rows], 3) * count / len(rows)
    one = seconds(lambda: price(cards, [rule], SELLER, NOW))
    rules = twenty_rules()
    resolved = cards.with_columns((pl.col("marketplace_id") % 20 + 1).alias("rule_id"))
    twenty = seconds(lambda: price(resolved, rules, SELLER, NOW))
    priced = price(cards, [rule], SELLER, NOW)
    counting = seconds(lambda: (summary(priced), breaker(priced)))
    print(f"{count:,} cards, milliseconds (median of {ROUNDS})")
    print(f"  engine, one preset          {one * 1000:8.1f}")
    print(f"  engine, 20 rules resolved   {twenty * 1000:8.1f}")
    print(f"  summary and breaker         {counting * 1000:8.1f}")
    print(f"  plain Python loop           {loop * 1000:8.1f}   on {len(rows):,} cards, scaled")
    print(f"  ratio, one preset           {loop / one:8.1f} x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)

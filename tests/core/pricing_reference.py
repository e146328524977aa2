"""A slow second reading of pricing.md (steps 1-4, 7, 12, 13): one card, one step after the other, Decimal dollars.

Written from the specification alone; it shares nothing with the engine but the shape of a rule. In: a card as a dict of
engine units. Out: what `price` has to say about it. Below it, the random cards and rules that both are fed with.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, get_args

import polars as pl

from cardsync.pricing.engine import INPUT_COLUMNS
from cardsync.pricing.rules import PriceSource, Rounding, Rule, SellerPricing

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
CENT = Decimal("0.01")
HIGHEST = Decimal("99999999.99")
Card = dict[str, Any]


def dollars_of(units: int | None) -> Decimal | None:
    return None if units is None or units <= 0 else Decimal(units) / 10_000


def expected(card: Card, rules: Sequence[Rule], seller: SellerPricing, now: datetime) -> dict[str, Any]:
    current = dollars_of(card["current_price"])
    if card.get("pin") is not None:
        return result(target=Decimal(card["pin"]) / 10_000, current=current)
    rule = governing(rules, seller)
    source, base = usable_source(card, rule, seller, now) if rule else (None, None)
    blockers = blockers_of(card, rule, base, seller)
    if blockers or rule is None or base is None:
        return result(blockers=blockers, rule=rule, source=source, base=base)
    formula = (base * (1 + Decimal(rule.adjust_bp) / 10_000)).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    formula += Decimal(rule.adjust_amount) / 10_000
    lowest, highest = limits(rule, current)
    bounded = min(max(formula, lowest), highest)
    rounded = rounded_price(bounded, lowest, highest, rule.rounding)
    return result(
        rule=rule,
        source=source,
        base=base,
        after_formula=formula,
        after_bounds=bounded,
        after_rounding=rounded,
        target=changed_price(rounded, current, seller),
        current=current,
    )


def governing(rules: Sequence[Rule], seller: SellerPricing) -> Rule | None:
    for rule in sorted(rules, key=lambda r: r.priority):
        is_default = rule.priority == 1000
        if rule.enabled and rule.state == "published" and (seller.default_rule_enabled or not is_default):
            return rule
    return None


def usable_source(card: Card, rule: Rule, seller: SellerPricing, now: datetime) -> tuple[str | None, Decimal | None]:
    for source in (rule.price_source, *rule.fallback_sources):
        found = price_from(card, source, seller, now)
        if found is not None:
            return source, found
    return None, None


def price_from(card: Card, source: str, seller: SellerPricing, now: datetime) -> Decimal | None:
    if source == "current":
        return dollars_of(card.get("period_start_price")) or dollars_of(card["current_price"])
    if source == "sales_anchor":
        enough = (card.get("sales_count") or 0) >= 3
        fresh = young(card.get("sales_newest_at"), now, timedelta(days=30))
        fetched = young(card.get("sales_fetched_at"), now, timedelta(hours=24))
        return dollars_of(card.get("sales_median")) if enough and fresh and fetched else None
    return dollars_of(card[source]) if young(card["observed_at"], now, timedelta(hours=seller.max_age_hours)) else None


def young(moment: datetime | None, now: datetime, maximum: timedelta) -> bool:
    return moment is not None and now - moment <= maximum


def blockers_of(card: Card, rule: Rule | None, base: Decimal | None, seller: SellerPricing) -> set[str]:
    found = set()
    if seller.automatic_pricing_paused:
        found.add("automatic_pricing_paused")
    if card.get("product_line_enabled") is False:
        found.add("product_line_disabled")
    if rule is None:
        found.add("no_rule")
    elif base is None:
        found.add("custom_without_reference" if card["custom"] else "no_usable_reference")
    if not card["quantity"] or card["quantity"] < 1:
        found.add("out_of_stock")
    return found


def limits(rule: Rule, current: Decimal | None) -> tuple[Decimal, Decimal]:
    floor = Decimal(rule.floor or 0) / 10_000
    kept = current if rule.never_lower and current is not None else Decimal(0)
    ceiling = HIGHEST if rule.ceiling is None else Decimal(rule.ceiling) / 10_000
    return max(floor, kept, CENT), min(ceiling, HIGHEST)


def rounded_price(price: Decimal, lowest: Decimal, highest: Decimal, ending: str) -> Decimal:
    lowest, highest = lowest.quantize(CENT, ROUND_CEILING), highest.quantize(CENT, ROUND_FLOOR)
    cents = min(max(price.quantize(CENT, ROUND_HALF_UP), lowest), highest)
    wanted = {"cent": ("",), "x9": ("9",), "x99": (".99",), "x49_x99": (".49", ".99")}[ending]
    candidate = cents
    while not f"{candidate:.2f}".endswith(wanted):
        candidate += CENT
    return candidate if candidate <= highest else cents


def changed_price(price: Decimal, current: Decimal | None, seller: SellerPricing) -> Decimal:
    if current is None or current < CENT:
        return price
    move = abs(price - current)
    return current if move == 0 or move < Decimal(seller.minimum_move) / 10_000 else price


def result(
    *, blockers: set[str] | None = None, rule: Rule | None = None, current: Decimal | None = None, **found: Any
) -> dict[str, Any]:
    names = ("base", "after_formula", "after_bounds", "after_rounding", "target")
    units = {name: None if found.get(name) is None else int(found[name] * 10_000) for name in names}
    return {
        "blockers": blockers or set(),
        "rule_id": rule.id if rule else None,
        "source": found.get("source"),
        "changed": found.get("target") is not None and found["target"] != current,
        **units,
    }


def a_card(**given: Any) -> Card:
    """A card that every preset prices, at 10.00, with whatever the test says otherwise."""
    card: Card = dict.fromkeys(INPUT_COLUMNS) | {
        "marketplace_id": 1,
        "condition": "Near Mint",
        "printing": "Normal",
        "language": "English",
        "quantity": 1,
        "custom": False,
        "current_price": 100_000,
        "market": 100_000,
        "low": 90_000,
        "low_with_shipping": 95_000,
        "direct_low": 110_000,
        "observed_at": NOW,
    }
    return card | given


def frame_of(cards: Sequence[Card]) -> pl.DataFrame:
    return pl.DataFrame(cards, schema=INPUT_COLUMNS)


def random_price(rng: random.Random) -> int | None:
    """Mostly cents near one another, so that bounds and minimum moves bind; some fractions, extremes and no-prices."""
    kind = rng.random()
    if kind < 0.12:
        return None
    if kind < 0.16:
        return rng.choice([0, -100, 1, 49, 50, 99, 100, 150])
    if kind < 0.20:
        return rng.randrange(1, 10**12)
    if kind < 0.40:
        return rng.randrange(1, 200_000)
    return rng.randrange(1, 2_000) * 100


def random_time(rng: random.Random, maximum: timedelta) -> datetime | None:
    edge = rng.choice([-1, 0, 0, 1]) * timedelta(microseconds=1)
    return rng.choice([None, NOW, NOW - maximum + edge, NOW - maximum * rng.random(), NOW - maximum * 2])


def random_card(rng: random.Random, number: int, seller: SellerPricing) -> Card:
    prices = ("current_price", "market", "low", "low_with_shipping", "direct_low", "period_start_price", "sales_median")
    return a_card(
        marketplace_id=number,
        quantity=rng.choice([0, 1, 1, 1, 2, 40]),
        custom=rng.random() < 0.1,
        stamped=rng.choice([None, True, False]),
        product_line_enabled=rng.choice([None, True, True, True, True, True, False]),
        pin=rng.randrange(1, 5_000) * 100 if rng.random() < 0.03 else None,
        observed_at=random_time(rng, timedelta(hours=seller.max_age_hours)) if rng.random() < 0.4 else NOW,
        sales_count=rng.choice([None, 0, 2, 3, 9]),
        sales_newest_at=random_time(rng, timedelta(days=30)),
        sales_fetched_at=random_time(rng, timedelta(hours=24)),
        **{name: random_price(rng) for name in prices},
    )


def random_rule(rng: random.Random, number: int = 1) -> Rule:
    floor = rng.choice([None, None, rng.randrange(0, 150_000), rng.randrange(0, 1_500) * 100])
    ceiling = rng.choice([None, None, (floor or 0) + rng.randrange(100, 150_000)])
    return Rule(
        id=number,
        name=f"Rule {number}",
        priority=rng.choice([number, number, 1_000]),
        enabled=rng.random() < 0.95,
        state="published" if rng.random() < 0.95 else "draft",
        price_source=rng.choice(get_args(PriceSource)),
        fallback_sources=tuple(rng.sample(get_args(PriceSource), rng.randrange(4))),
        adjust_bp=rng.choice([0, -100, 500, rng.randrange(-10_000, 20_000), rng.randrange(-10_000, 1_000_001)]),
        adjust_amount=rng.choice([0, 0, rng.randrange(-50_000, 50_000)]),
        floor=floor,
        ceiling=ceiling,
        never_lower=rng.random() < 0.4,
        rounding=rng.choice(get_args(Rounding)),
    )


def random_seller(rng: random.Random) -> SellerPricing:
    return SellerPricing(
        default_rule_enabled=rng.random() < 0.9,
        minimum_move=rng.choice([0, 100, 100, 101, 5_000, 20_000]),
        max_age_hours=rng.choice([1, 24, 168]),
        automatic_pricing_paused=rng.random() < 0.03,
    )

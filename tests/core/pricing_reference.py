"""A slow second reading of pricing.md: one card, one step after the other, Decimal dollars.

Written from the specification alone; it shares nothing with the engine but the shape of a rule.
In: a card as a dict of engine units. Out: what `price` has to say about it. Below it, the random
cards and rules that both are fed with.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, get_args

import polars as pl

from cardsync.prices.engine.engine import INPUT_COLUMNS
from cardsync.prices.engine.rules import (
    Cap,
    MarketGate,
    PriceSource,
    ReviewLimits,
    Rounding,
    Rule,
    Sale,
    SmallCap,
    Stale,
)
from cardsync.prices.engine.seller_pricing import SellerPricing

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
CENT = Decimal("0.01")
HIGHEST = Decimal("99999999.99")
Card = dict[str, Any]


def dollars_of(units: int | None) -> Decimal | None:
    return None if units is None or units <= 0 else Decimal(units) / 10_000


def expected(
    card: Card,
    rules: Sequence[Rule],
    seller: SellerPricing,
    now: datetime,
    sales: Sequence[Sale] = (),
) -> dict[str, Any]:
    """Every column that the steps leave, as the engine names them; a step that no rule asks for
    leaves the price.
    """
    current = dollars_of(card["current_price"])
    if card.get("pin") is not None:
        return result(target=Decimal(card["pin"]) / 10_000, current=current)
    rule = governing(rules, seller)
    start = period_start(card, rule, current) if rule else None
    source, base = (
        usable_source(card, rule, seller, now, start) if rule and not rule.broken else (None, None)
    )
    # Rules without a query select cards of every game.
    own = [r for r in rules if r.enabled and r.state == "published" and r.priority != 1000]
    in_scope = any(not r.query or card.get("game_has_rules") is not False for r in own)
    blockers = blockers_of(card, rule, base, seller, in_scope=in_scope)
    if blockers or rule is None or base is None:
        return result(blockers=blockers, rule=rule, source=source, base=base)
    price = (
        tenths(base * (1 + Decimal(rule.adjust_bp) / 10_000)) + Decimal(rule.adjust_amount) / 10_000
    )
    found = {"after_formula": price}
    if seller.shipping_adder and price >= Decimal(seller.tracking_threshold) / 10_000:
        price += Decimal(seller.shipping_adder) / 10_000
    found["after_shipping_adder"] = price
    price, found["aggressive_price"] = gated(card, rule, price, now)
    found["after_market_gate"] = price
    price, found["undercut_listing"] = raised_to_undercut(card, rule, seller, price, now)
    found["after_undercut"] = price
    found["after_stale_reduction"] = price = reduced(card, rule, price, now)
    hard = cents_up(Decimal(seller.hard_floor or 0) / 10_000)
    lowest, highest = limits(card, rule, current)
    lowest, highest = max(lowest, hard), max(highest, hard)
    found["after_bounds"] = price = min(max(price, lowest), highest)
    down, up = cap_limits(rule, seller, start, current)
    price, limit, held = capped(rule, price, down, up, current)
    found |= {"after_cap": price, "seller_limit": limit}
    sale = next((sale for sale in sorted(sales, key=lambda s: s.priority) if on(sale, now)), None)
    found["after_sale"] = price = on_sale(sale, price, card, rule)
    found["after_hard_floor"] = price = max(price, hard)
    direct = seller.direct_program and dollars_of(card["direct_low"]) is not None
    direct_minimum = Decimal(seller.direct_minimum) / 10_000 if direct else Decimal(0)
    found["after_direct_minimum"] = price = max(price, direct_minimum)
    found["after_fee_gap"] = price = out_of_the_gap(rule, price, highest, seller, now, direct)
    if not (held and price == current and price >= CENT):
        floor = floor_of(card, rule)
        if rule.never_lower and current is not None and (not sale or sale.keep_never_lower):
            floor = max(floor, current)
        ceiling = highest
        if limit is not None and found["after_bounds"] > limit:
            floor = min(floor, cents_down(found["after_cap"]))
        if limit is not None and found["after_bounds"] < limit:
            ceiling = max(ceiling, cents_up(found["after_cap"]))
        raised = [CENT, hard, direct_minimum, Decimal((sale.floor if sale else None) or 0) / 10_000]
        price = rounded_price(price, floor, raised, ceiling, down, up, rule.rounding)
    found["after_rounding"] = price
    kept = (lowest, highest, direct_minimum)
    group = hold_out(card, rule, price, kept, sale, now)
    found["after_holdout"] = price = current if group == "held" and current is not None else price
    review = waits(card, rule, seller, price, sale)
    found["after_review"] = price = stays_at(card, price, kept, sale) if review else price
    return result(
        rule=rule,
        source=source,
        base=base,
        sale=sale,
        held=held,
        holdout=group,
        review=review,
        **found,
        target=changed_price(price, current, seller),
        current=current,
    )


def tenths(amount: Decimal) -> Decimal:
    # A half goes up, also under zero, where a later step raises the price anyway.
    return (amount * 10_000 + Decimal("0.5")).to_integral_value(ROUND_FLOOR) / 10_000


def cents_down(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_FLOOR)


def cents_up(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_CEILING)


def period_start(card: Card, rule: Rule, current: Decimal | None) -> Decimal | None:
    period = rule.cap.period if rule.cap else "day"
    known = None if period == "sync" else dollars_of(card.get(f"{period}_start_price"))
    return known or current


def gated(card: Card, rule: Rule, price: Decimal, now: datetime) -> tuple[Decimal, Decimal | None]:
    gate = rule.market_gate
    if gate is None:
        return price, None

    def fresh(name: str) -> bool:
        return young(card.get(name), now, timedelta(hours=gate.max_age_hours)) and card[name] <= now

    if dollars_of(card["market"]) is None or not fresh("observed_at"):
        return price, None
    lowest = dollars_of(card.get("listings_low"))
    if lowest is None:
        return price, None
    aggressive = tenths(lowest * (1 - Decimal(gate.undercut_bp) / 10_000))
    deep = (card.get("listings_count") or 0) >= gate.min_listings and (
        (card.get("sales_count") or 0) >= gate.min_sales_30d
    )
    bought_out = bought_out_lately(card, now)
    allowed = (
        deep and fresh("listings_observed_at") and fresh("sales_fetched_at") and not bought_out
    )
    return (aggressive if allowed and aggressive < price else price), aggressive


def bought_out_lately(card: Card, now: datetime) -> bool:
    seen = card.get("buy_out_detected_at")
    return seen is not None and now - timedelta(hours=4) <= seen <= now


def raised_to_undercut(
    card: Card, rule: Rule, seller: SellerPricing, price: Decimal, now: datetime
) -> tuple[Decimal, Decimal | None]:
    if rule.undercut_up_bp is None:
        return price, None
    hours = rule.market_gate.max_age_hours if rule.market_gate else 24
    listing = dollars_of(card.get("listings_low"))
    seen = card.get("listings_observed_at")
    if listing is None or not young(seen, now, timedelta(hours=hours)) or seen > now:
        listing = dollars_of(card["low"])
        if not young(card["observed_at"], now, timedelta(hours=seller.max_age_hours)):
            listing = None
    if listing is None or listing <= price or bought_out_lately(card, now):
        return price, listing
    return max(price, tenths(listing * (1 - Decimal(rule.undercut_up_bp) / 10_000))), listing


def reduced(card: Card, rule: Rule, price: Decimal, now: datetime) -> Decimal:
    since = [card[name] for name in ("listed_since", "last_sold_at") if card.get(name) is not None]
    if rule.stale is None or not since:
        return price
    days = int(((card["observed_at"] or now) - max(since)) / timedelta(days=1))
    recent_mover = young(card.get("last_moved_at"), now, timedelta(days=14))
    if days < rule.stale.after_days or (rule.velocity_boost_enabled and recent_mover):
        return price
    cuts = 1 + (days - rule.stale.after_days) // rule.stale.every_days
    off = min(cuts * rule.stale.step_bp, rule.stale.limit_bp)
    return tenths(price * (1 - Decimal(off) / 10_000))


def cap_limits(
    rule: Rule, seller: SellerPricing, start: Decimal | None, current: Decimal | None
) -> tuple[Decimal | None, Decimal | None]:
    cap = rule.cap
    if cap is None or start is None or current is None:
        return None, None
    shares = cap.small if cap.small and start < Decimal(cap.small.below) / 10_000 else cap
    down = up = None
    step = Decimal(seller.minimum_cap_step) / 10_000
    if shares.down_bp is not None:
        lowest = (start * (1 - Decimal(shares.down_bp) / 10_000)).quantize(
            Decimal("0.0001"), ROUND_CEILING
        )
        down = min(lowest, current, start - step if shares.down_bp else current)
    if shares.up_bp is not None:
        highest = (start * (1 + Decimal(shares.up_bp) / 10_000)).quantize(
            Decimal("0.0001"), ROUND_FLOOR
        )
        up = max(highest, current, start + step if shares.up_bp else current)
    return down, up


def capped(
    rule: Rule, price: Decimal, down: Decimal | None, up: Decimal | None, current: Decimal | None
) -> tuple[Decimal, Decimal | None, bool]:
    limit = (
        up if up is not None and price > up else down if down is not None and price < down else None
    )
    if limit is None:
        return price, None, False
    assert rule.cap is not None
    assert current is not None
    return (current, limit, True) if rule.cap.mode == "hold" else (limit, limit, False)


def on(sale: Sale, now: datetime) -> bool:
    return sale.enabled and sale.starts_at <= now < sale.ends_at


def on_sale(sale: Sale | None, price: Decimal, card: Card, rule: Rule) -> Decimal:
    """The reduced price. What the sale keeps stops the cut, but raises no price."""
    if sale is None:
        return price
    stops = [Decimal(0)]
    if sale.floor_cost_bp is not None and (cost := dollars_of(card.get("cost"))) is not None:
        stops.append(cents_up(cost * (1 + Decimal(sale.floor_cost_bp) / 10_000)))
    current = dollars_of(card["current_price"])
    if sale.keep_never_lower and rule.never_lower and current is not None:
        stops.append(current)
    cut = tenths(price * (1 + Decimal(sale.adjust_bp) / 10_000))
    return max(cut, Decimal(sale.floor or 0) / 10_000, min(price, max(stops)))


def net(price: Decimal, level: str, now: datetime) -> Decimal:
    """The net price of a Direct card, after the fees since 2026-06-18."""
    if price < Decimal("2.49"):
        return price / 2
    commission = min(
        price * (Decimal("0.0925") if level == "pro" else Decimal("0.1075")), Decimal(75)
    )
    processing = price * (Decimal("0.05") if level == "pro" else Decimal("0.025"))
    return price - commission - processing - Decimal("1.12")


def out_of_the_gap(
    rule: Rule, price: Decimal, highest: Decimal, seller: SellerPricing, now: datetime, direct: bool
) -> Decimal:
    if not rule.fee_gap_adjustment or not direct or now < datetime(2026, 6, 18, 4, tzinfo=UTC):
        return price
    lower_tier = net(Decimal("2.48"), seller.fee_level, now)
    end = Decimal("2.49")
    while net(end, seller.fee_level, now) < lower_tier:
        end += CENT
    return end if Decimal("2.49") <= price < end <= highest else price


def governing(rules: Sequence[Rule], seller: SellerPricing) -> Rule | None:
    for rule in sorted(rules, key=lambda r: r.priority):
        is_default = rule.priority == 1000
        if (
            rule.enabled
            and rule.state == "published"
            and (seller.default_rule_enabled or not is_default)
        ):
            return rule
    return None


def usable_source(
    card: Card, rule: Rule, seller: SellerPricing, now: datetime, start: Decimal | None
) -> tuple[str | None, Decimal | None]:
    for source in (rule.price_source, *rule.fallback_sources):
        found = start if source == "current" else price_from(card, source, seller, now)
        if found is not None:
            return source, found
    return None, None


def price_from(card: Card, source: str, seller: SellerPricing, now: datetime) -> Decimal | None:
    if source == "sales_anchor":
        enough = (card.get("sales_count") or 0) >= 3
        fresh = young(card.get("sales_newest_at"), now, timedelta(days=30))
        fetched = young(card.get("sales_fetched_at"), now, timedelta(hours=24))
        fetched = fetched and card["sales_fetched_at"] <= now
        return dollars_of(card.get("sales_median")) if enough and fresh and fetched else None
    return (
        dollars_of(card[source])
        if young(card["observed_at"], now, timedelta(hours=seller.max_age_hours))
        else None
    )


def young(moment: datetime | None, now: datetime, maximum: timedelta) -> bool:
    return moment is not None and now - moment <= maximum


def blockers_of(
    card: Card, rule: Rule | None, base: Decimal | None, seller: SellerPricing, *, in_scope: bool
) -> set[str]:
    found = set()
    if seller.automatic_pricing_paused:
        found.add("automatic_pricing_paused")
    if seller.awaiting_review:
        found.add("awaiting_review")
    if card.get("product_line_enabled") is False:
        found.add("product_line_disabled")
    if rule is None:
        found.add("no_rule")
    elif rule.broken:
        found.add("rule_broken")
    elif base is None:
        found.add("custom_without_reference" if card["custom"] else "no_usable_reference")
    if seller.repricing_scope == "games_with_rules" and not in_scope:
        found.add("game_without_rules")
    if not card["quantity"] or card["quantity"] < 1:
        found.add("out_of_stock")
    return found


def floor_of(card: Card, rule: Rule) -> Decimal:
    """The rule's floor, or what the card cost and so much more, up to the next cent."""
    floor = Decimal(rule.floor or 0) / 10_000
    if rule.floor_cost_bp is None or card.get("cost") is None:
        return floor
    factor = 1 + Decimal(rule.floor_cost_bp) / 10_000
    return max(floor, cents_up(Decimal(card["cost"]) / 10_000 * factor))


def limits(card: Card, rule: Rule, current: Decimal | None) -> tuple[Decimal, Decimal]:
    floor = floor_of(card, rule)
    kept = current if rule.never_lower and current is not None else Decimal(0)
    ceiling = HIGHEST if rule.ceiling is None else Decimal(rule.ceiling) / 10_000
    return max(floor, kept, CENT), min(ceiling, HIGHEST)


def rounded_price(
    price: Decimal,
    floor: Decimal,
    raised: list[Decimal],
    ceiling: Decimal,
    down: Decimal | None,
    up: Decimal | None,
    ending: str,
) -> Decimal:
    """To the inside of the cap unless a later step went past it, then floor, then ceiling;
    endings stay inside all of them.
    """
    cents = price.quantize(CENT, ROUND_HALF_UP)
    if down is not None and price >= down:
        cents = max(cents, cents_up(down))
    if up is not None and price <= up:
        cents = min(cents, cents_down(up))
    inside = max(cents, cents_down(up)) if up is not None else HIGHEST
    cents = min(max(cents, *(cents_up(low) for low in (floor, *raised))), cents_down(ceiling))
    wanted = {"cent": ("",), "x9": ("9",), "x99": (".99",), "x49_x99": (".49", ".99")}[ending]
    candidate = cents
    while not f"{candidate:.2f}".endswith(wanted):
        candidate += CENT
    return candidate if candidate <= min(cents_down(ceiling), inside) else cents


def hold_out(
    card: Card,
    rule: Rule,
    price: Decimal,
    kept: tuple[Decimal, Decimal, Decimal],
    sale: Sale | None,
    now: datetime,
) -> str | None:
    """The part of a rule's hold-out that draws the card: murmur's last step over 64 bits."""
    current = dollars_of(card["current_price"])
    if rule.holdout_bp is None or current is None or sale is not None:
        return None
    if not keeps_limits(current, kept):
        return None
    days = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(days=30)
    mixed = int.from_bytes(hashlib.sha256(f"{rule.id}:{days}".encode()).digest()[:8], "big")
    mixed ^= card["marketplace_id"] % 2**64
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed ^= mixed >> 33
        mixed = mixed * factor % 2**64
    part = (mixed ^ mixed >> 33) % 10_000
    held = part < rule.holdout_bp
    return "held" if held else "twin" if part < 2 * rule.holdout_bp else None


def waits(
    card: Card, rule: Rule, seller: SellerPricing, price: Decimal, sale: Sale | None
) -> str | None:
    """Why a price waits for the seller's word, None if it does not."""
    limits = rule.review or ReviewLimits(
        seller.review_up_bp, seller.review_down_bp, seller.review_first_price
    )
    current, approved = dollars_of(card["current_price"]), accepted(card, sale)
    not_above = approved is not None and price <= approved * Decimal("1.1")
    not_below = approved is not None and price >= approved * Decimal("0.9")
    if current is None:
        near = not_above and not_below
        return "first_price" if limits.first_price and not near else None
    if current < CENT or abs(price - current) < max(
        Decimal(seller.minimum_move) / 10_000, Decimal("0.0001")
    ):
        return None
    if limits.up_bp is not None and price > current * (1 + Decimal(limits.up_bp) / 10_000):
        return None if not_above else "rise"
    if limits.down_bp is None:
        return None
    regular = current
    if sale is not None:
        cut = 1 + Decimal(sale.adjust_bp) / 10_000
        known = dollars_of(card.get("approved_price"))
        # The card stands at the sale's price if it is nearer to that than to the regular price.
        if known is not None and current < (known + known * cut) / 2:
            regular = known
    lowest = regular * (1 - Decimal(limits.down_bp) / 10_000)
    if sale is not None:
        lowest = tenths(tenths(lowest) * cut)
    return "drop" if price < min(lowest, current) and not not_below else None


def accepted(card: Card, sale: Sale | None) -> Decimal | None:
    """The price that the seller accepted; during a sale the regular one, with the sale's cut."""
    price = dollars_of(card.get("approved_price"))
    if price is None or sale is None:
        return price
    return tenths(price * (1 + Decimal(sale.adjust_bp) / 10_000))


def stays_at(
    card: Card,
    price: Decimal,
    kept: tuple[Decimal, Decimal, Decimal],
    sale: Sale | None,
) -> Decimal | None:
    """The price now, or the accepted one if the move goes beyond it."""
    current, approved = dollars_of(card["current_price"]), dollars_of(card.get("approved_price"))
    if approved is None or sale is not None or not keeps_limits(approved, kept):
        return current
    if current is None or min(current, price) < approved < max(current, price):
        return approved
    return current


def keeps_limits(price: Decimal, kept: tuple[Decimal, Decimal, Decimal]) -> bool:
    lowest, highest, direct_minimum = kept
    return max(lowest, direct_minimum) <= price <= highest and not price % CENT


def changed_price(
    price: Decimal | None, current: Decimal | None, seller: SellerPricing
) -> Decimal | None:
    if price is None:
        return None
    if current is None or current < CENT:
        return price
    move = abs(price - current)
    return current if move == 0 or move < Decimal(seller.minimum_move) / 10_000 else price


STEP_COLUMNS = (
    "base", "after_formula", "after_shipping_adder", "after_market_gate", "aggressive_price",
    "after_undercut", "undercut_listing", "after_stale_reduction",
    "after_bounds", "after_cap",
    "seller_limit", "after_sale", "after_hard_floor", "after_direct_minimum", "after_fee_gap", "after_rounding",
    "after_holdout", "after_review", "target",
)  # fmt: skip


def result(
    *,
    blockers: set[str] | None = None,
    rule: Rule | None = None,
    current: Decimal | None = None,
    **found: Any,
) -> dict[str, Any]:
    units = {
        name: None if found.get(name) is None else int(found[name] * 10_000)
        for name in STEP_COLUMNS
    }
    return {
        "blockers": blockers or set(),
        "rule_id": rule.id if rule else None,
        "source": found.get("source"),
        "sale_id": found["sale"].id if found.get("sale") else None,
        "held": found.get("held", False),
        "holdout": found.get("holdout"),
        "review": found.get("review"),
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
    """Mostly cents near one another, so that bounds and minimum moves bind; some fractions,
    extremes and no-prices.
    """
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
    return rng.choice(
        [None, NOW, NOW - maximum + edge, NOW - maximum * rng.random(), NOW - maximum * 2]
    )


def random_card(rng: random.Random, number: int, seller: SellerPricing) -> Card:
    prices = (
        "current_price", "market", "low", "low_with_shipping", "direct_low", "day_start_price",
        "week_start_price",
        "sales_median", "listings_low", "approved_price",
    )  # fmt: skip
    return a_card(
        # The ids of custom listings are below zero.
        marketplace_id=-number if number % 9 == 8 else number,
        quantity=rng.choice([0, 1, 1, 1, 2, 40]),
        custom=rng.random() < 0.1,
        stamped=rng.choice([None, True, False]),
        product_line_enabled=rng.choice([None, True, True, True, True, True, False]),
        game_has_rules=rng.choice([None, True, True, True, False]),
        pin=rng.randrange(1, 5_000) * 100 if rng.random() < 0.03 else None,
        observed_at=random_time(rng, timedelta(hours=seller.max_age_hours))
        if rng.random() < 0.4
        else NOW,
        sales_count=rng.choice([None, 0, 2, 3, 9]),
        sales_newest_at=random_time(rng, timedelta(days=30)),
        sales_fetched_at=rng.choice(
            [random_time(rng, timedelta(hours=24)), NOW + timedelta(seconds=1)]
        ),
        listings_count=rng.choice([None, 0, 2, 3, 9]),
        listings_observed_at=rng.choice(
            [NOW, NOW, random_time(rng, timedelta(hours=24)), NOW + timedelta(seconds=1)]
        ),
        buy_out_detected_at=rng.choice(
            [random_time(rng, timedelta(hours=4)), NOW + timedelta(seconds=1)]
        )
        if rng.random() < 0.2
        else None,
        listed_since=random_time(rng, timedelta(days=rng.choice([3, 60, 67, 400]))),
        last_sold_at=random_time(rng, timedelta(days=rng.choice([3, 60, 67, 400])))
        if rng.random() < 0.3
        else None,
        last_moved_at=random_time(rng, timedelta(days=14)),
        cost=rng.choice([None, None, 0, rng.randrange(0, 150_000)]),
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
        adjust_bp=rng.choice(
            [0, -100, 500, rng.randrange(-10_000, 20_000), rng.randrange(-10_000, 1_000_001)]
        ),
        adjust_amount=rng.choice([0, 0, rng.randrange(-50_000, 50_000)]),
        floor=floor,
        floor_cost_bp=rng.choice([None, None, 0, 2_000, -1_000, rng.randrange(0, 30_000)]),
        ceiling=ceiling,
        never_lower=rng.random() < 0.4,
        stale=rng.choice([None, random_stale(rng)]),
        velocity_boost_enabled=rng.random() < 0.5,
        cap=rng.choice([None, random_cap(rng), random_cap(rng)]),
        market_gate=rng.choice([None, random_gate(rng)]),
        undercut_up_bp=rng.choice([None, None, 0, 100, 500, 5_000]),
        fee_gap_adjustment=rng.random() < 0.5,
        rounding=rng.choice(get_args(Rounding)),
        broken=rng.random() < 0.03,
        review=rng.choice([None, None, random_review(rng)]),
        holdout_bp=rng.choice([None, None, None, 1_000, 2_000]),
    )


def random_review(rng: random.Random) -> ReviewLimits:
    return ReviewLimits(random_share(rng, 20_000), random_share(rng, 10_000), rng.random() < 0.3)


def random_share(rng: random.Random, most: int) -> int | None:
    return rng.choice([None, 0, 1_000, 1_500, 2_000, rng.randrange(0, most + 1)])


def random_cap(rng: random.Random) -> Cap:
    small = SmallCap(
        rng.choice([50_000, 100_000, 1]), random_share(rng, 50_000), random_share(rng, 10_000)
    )
    return Cap(
        up_bp=random_share(rng, 1_000_000),
        down_bp=random_share(rng, 10_000),
        period=rng.choice(["sync", "day", "day", "week"]),
        mode=rng.choice(["clamp", "clamp", "hold"]),
        small=rng.choice([None, small]),
    )


def random_stale(rng: random.Random) -> Stale:
    return Stale(
        rng.choice([0, 3, 60]),
        rng.choice([0, 500, 10_000]),
        rng.choice([1, 7]),
        rng.choice([4_000, 10_000]),
    )


def random_gate(rng: random.Random) -> MarketGate:
    return MarketGate(
        rng.choice([0, 3]), rng.choice([0, 3]), rng.choice([24, 168]), rng.choice([0, 100, 10_000])
    )


def random_sale(rng: random.Random, number: int) -> Sale:
    begins = NOW + rng.choice([-1, -1, 0, 0, 1]) * timedelta(seconds=1)
    return Sale(
        id=number,
        name=f"Sale {number}",
        priority=number,
        adjust_bp=rng.choice([-1_000, -5_000, -rng.randrange(1, 10_001)]),
        starts_at=begins,
        ends_at=begins + rng.choice([1, 2, 60]) * timedelta(seconds=1),
        floor=rng.choice([None, rng.randrange(0, 200_000)]),
        enabled=rng.random() < 0.9,
        floor_cost_bp=rng.choice([None, None, 0, rng.randrange(-2_000, 5_000)]),
        keep_never_lower=rng.random() < 0.3,
    )


def random_seller(rng: random.Random) -> SellerPricing:
    return SellerPricing(
        default_rule_enabled=rng.random() < 0.9,
        minimum_move=rng.choice([0, 100, 100, 101, 5_000, 20_000]),
        minimum_cap_step=rng.choice([0, 1, 100, 500, 500, 550, 20_000]),
        max_age_hours=rng.choice([1, 24, 168]),
        automatic_pricing_paused=rng.random() < 0.03,
        awaiting_review=rng.random() < 0.02,
        direct_program=rng.random() < 0.5,
        direct_minimum=rng.choice([4_000, 4_050, 100_000]),
        fee_level=rng.choice(["1-4", "pro"]),
        hard_floor=rng.choice([None, None, 100, 4_950, rng.randrange(100, 120_000)]),
        repricing_scope=rng.choice(["all_games", "all_games", "games_with_rules"]),
        shipping_adder=rng.choice([None, None, 12_700, rng.randrange(1, 50_000)]),
        tracking_threshold=rng.choice([500_000, 100_000, 0]),
        review_up_bp=rng.choice([None, None, 0, 2_000, 5_000]),
        review_down_bp=rng.choice([None, None, 0, 2_000, 10_000]),
        review_first_price=rng.random() < 0.1,
    )

"""Collects the parameters of a pricing run that all its cards share: rules, sales, settings and the
time.

The engine joins the parameters of rules and sales, which are small frames, to the cards. Columns
whose names begin with `_` are temporary: receipts do not contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import polars as pl

from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.prices.engine.holdout_draw import seed
from cardsync.prices.engine.rules import (
    PRICE_SOURCES,
    WHOLE_BP,
    CapPeriod,
    PriceSource,
    Rounding,
    Rule,
    Sale,
    active_sales,
    live_guards,
)
from cardsync.prices.engine.seller_pricing import SellerPricing, live_rules
from cardsync.sales.lots.fee_schedule import FeeSchedule, gap, schedule_at

TIME: Final = pl.Datetime("us", "UTC")
# A price has the ending if its cents plus one are divisible by this number.
ENDING_CENTS: Final[dict[Rounding, int]] = {"cent": 1, "x9": 10, "x99": 100, "x49_x99": 50}
# Maximum age of other sellers' listings for rules without a market gate, which names an age.
LISTINGS_MAX_AGE_HOURS: Final = 24


@dataclass(frozen=True)
class Run:
    """The inputs of a pricing run: a seller's rules, settings and sales, and the time of the
    prices.
    """

    rules: Sequence[Rule]
    seller: SellerPricing
    now: datetime
    sales: Sequence[Sale] = ()
    # True if an API key changed rules, promotions or settings: the importer then compares the run's
    # prices with the previous targets.
    watched: bool = False

    @cached_property
    def live(self) -> list[Rule]:
        return live_rules(self.rules, self.seller)

    @cached_property
    def guards(self) -> list[Rule]:
        """Return the live guards. A guard's index is its bit in the column `guards`."""
        return live_guards(self.rules)

    @cached_property
    def active_sales(self) -> list[Sale]:
        return active_sales(self.sales, self.now)

    @cached_property
    def orders(self) -> list[tuple[PriceSource, ...]]:
        """Return the distinct orders in which the rules try sources. There are far fewer orders
        than rules, so the engine evaluates each order once.
        """
        return list(dict.fromkeys(rule.sources for rule in self.live))

    @property
    def sources(self) -> list[PriceSource]:
        return [source for source in PRICE_SOURCES if any(source in order for order in self.orders)]

    @cached_property
    def schedule(self) -> FeeSchedule:
        return schedule_at(self.now)

    @cached_property
    def fee_gap(self) -> tuple[int, int] | None:
        return gap(self.schedule, self.seller.fee_level)

    def any(self, asks: Callable[[Rule], object]) -> bool:
        """Return whether the condition is true of some live rule. The engine skips steps that no
        live rule uses.
        """
        return any(asks(rule) for rule in self.live)

    @property
    def queried(self) -> bool:
        """Return whether a rule, guard or sale has a query, which only PostgreSQL can evaluate."""
        things: list[Rule | Sale] = [*self.live, *self.guards, *self.active_sales]
        return any(thing.query for thing in things)

    @property
    def own_rules(self) -> list[Rule]:
        """Return the live rules except the default rule."""
        return [rule for rule in self.live if rule.priority != DEFAULT_PRIORITY]

    @property
    def every_game(self) -> bool:
        """Return whether the run prices cards of every game: the scope is all games, or a rule
        without a query selects all cards.
        """
        all_games = self.seller.repricing_scope == "all_games"
        return all_games or any(not rule.query for rule in self.own_rules)

    @property
    def evidenced(self) -> bool:
        """Return whether some rule requires market evidence."""
        return self.gated or "sales_anchor" in self.sources

    @property
    def reads_market(self) -> bool:
        """Return whether some step reads market evidence. The undercut reads market evidence if
        there is any, and otherwise the upload's low price.
        """
        return self.evidenced or self.undercut

    @property
    def asks_database(self) -> bool:
        """Return whether pricing needs the database: to evaluate queries, to read market evidence
        or to check changes by API keys.
        """
        return self.queried or self.evidenced or self.watched

    @property
    def gated(self) -> bool:
        return self.any(lambda rule: rule.market_gate)

    @property
    def undercut(self) -> bool:
        return self.any(lambda rule: rule.undercut_up_bp is not None)

    @property
    def costed(self) -> bool:
        """Return whether the floor of some rule, guard or sale depends on the cards' cost."""
        asking = (*self.live, *self.guards)
        return self.sale_costed or any(rule.floor_cost_bp is not None for rule in asking)

    @property
    def sale_costed(self) -> bool:
        """Return whether the floor of some sale depends on the cards' cost."""
        return any(sale.floor_cost_bp is not None for sale in self.active_sales)

    @property
    def stale(self) -> bool:
        return self.any(lambda rule: rule.stale)

    @property
    def capped(self) -> bool:
        return self.any(lambda rule: rule.cap) or self.guard_capped

    @property
    def guard_capped(self) -> bool:
        """Return whether some guard has a daily cap."""
        return any(guard.cap for guard in self.guards)

    @property
    def periodic(self) -> bool:
        """Return whether the run needs each card's price at the beginning of its cap period."""
        return self.capped or "current" in self.sources

    @property
    def periods(self) -> set[CapPeriod]:
        """Return the periods whose first prices the run needs. For a rule without a cap, the source
        `current` is the day's first price.
        """
        asking = [rule for rule in self.live if rule.cap or "current" in rule.sources]
        found: set[CapPeriod] = {rule.cap.period if rule.cap else "day" for rule in asking}
        return found - {"sync"} | ({"day"} if self.guard_capped else set())

    @property
    def fee_gapped(self) -> bool:
        return (
            self.any(lambda rule: rule.fee_gap_adjustment)
            and self.seller.direct_program
            and self.fee_gap is not None
        )

    @property
    def on_sale(self) -> bool:
        return bool(self.active_sales)

    @property
    def reviewed(self) -> bool:
        """Return whether some rule's cards have review limits."""
        return self.any(lambda rule: (rule.review or self.seller.review).asked)

    @property
    def held_out(self) -> bool:
        return self.any(lambda rule: rule.holdout_bp)


_PARAMETERS: Final[dict[str, pl.DataType]] = {
    "rule_id": pl.Int64(),
    "_broken": pl.Boolean(),
    "_order": pl.Int16(),
    "_factor": pl.Int64(),
    "_amount": pl.Int64(),
    "_gate_since": TIME,
    "_gate_listings": pl.Int64(),
    "_gate_sales": pl.Int64(),
    "_gate_factor": pl.Int64(),
    "_up_since": TIME,
    "_up_factor": pl.Int64(),
    "_stale_after": pl.Int64(),
    "_stale_every": pl.Int64(),
    "_stale_step": pl.Int64(),
    "_stale_limit": pl.Int64(),
    "_velocity": pl.Boolean(),
    "_floor": pl.Int64(),
    "_cost_factor": pl.Int64(),
    "_ceiling": pl.Int64(),
    "_never_lower": pl.Boolean(),
    "_cap_period": pl.String(),
    "_cap_hold": pl.Boolean(),
    "_cap_up": pl.Int64(),
    "_cap_down": pl.Int64(),
    "_small_below": pl.Int64(),
    "_small_up": pl.Int64(),
    "_small_down": pl.Int64(),
    "_fee_gap": pl.Boolean(),
    "_ending": pl.Int64(),
    "_review_up": pl.Int64(),
    "_review_down": pl.Int64(),
    "_review_first": pl.Boolean(),
    "_holdout": pl.Int64(),
    "_holdout_seed": pl.UInt64(),
}


def rule_parameters(run: Run) -> pl.DataFrame:
    """Return the parameters that the steps read from rules, one row per live rule, to be joined to
    the cards by `rule_id`.
    """
    return pl.DataFrame([_parameters(rule, run) for rule in run.live], schema=_PARAMETERS)


def parameters_of(run: Run, rule_id: int | None, sale_id: int | None) -> dict[str, object]:
    """Return the parameters of one card's rule and sale; those of a missing one are null."""
    found: dict[str, object] = dict.fromkeys((*_PARAMETERS, *_SALE_PARAMETERS))
    for rule in run.live:
        if rule.id == rule_id:
            found |= _parameters(rule, run)
    for sale in run.active_sales:
        if sale.id == sale_id:
            found |= _of_sale(sale)
    return found


def _parameters(rule: Rule, run: Run) -> dict[str, object]:
    return {
        "rule_id": rule.id,
        "_broken": rule.broken,
        "_order": run.orders.index(rule.sources),
        "_factor": WHOLE_BP + rule.adjust_bp,
        "_amount": rule.adjust_amount,
        "_velocity": rule.velocity_boost_enabled,
        "_floor": rule.floor,
        "_cost_factor": None if rule.floor_cost_bp is None else WHOLE_BP + rule.floor_cost_bp,
        "_ceiling": rule.ceiling,
        "_never_lower": rule.never_lower,
        "_fee_gap": rule.fee_gap_adjustment,
        "_ending": ENDING_CENTS[rule.rounding],
        **_gate_parameters(rule, run),
        **_undercut_parameters(rule, run),
        **_stale_parameters(rule),
        **_cap_parameters(rule),
        **_review_parameters(rule, run),
        **_holdout_parameters(rule, run),
    }


def _gate_parameters(rule: Rule, run: Run) -> dict[str, object]:
    gate = rule.market_gate
    if gate is None:
        return {}
    return {
        "_gate_since": run.now - timedelta(hours=gate.max_age_hours),
        "_gate_listings": gate.min_listings,
        "_gate_sales": gate.min_sales_30d,
        "_gate_factor": WHOLE_BP - gate.undercut_bp,
    }


def _undercut_parameters(rule: Rule, run: Run) -> dict[str, object]:
    if rule.undercut_up_bp is None:
        return {}
    gate = rule.market_gate
    hours = gate.max_age_hours if gate else LISTINGS_MAX_AGE_HOURS
    return {
        "_up_since": run.now - timedelta(hours=hours),
        "_up_factor": WHOLE_BP - rule.undercut_up_bp,
    }


def _stale_parameters(rule: Rule) -> dict[str, object]:
    stale = rule.stale
    if stale is None:
        return {}
    return {
        "_stale_after": stale.after_days,
        "_stale_every": stale.every_days,
        "_stale_step": stale.step_bp,
        "_stale_limit": stale.limit_bp,
    }


def _cap_parameters(rule: Rule) -> dict[str, object]:
    cap = rule.cap
    if cap is None:
        return {}
    small = cap.small
    return {
        "_cap_period": cap.period,
        "_cap_hold": cap.mode == "hold",
        "_cap_up": cap.up_bp,
        "_cap_down": cap.down_bp,
        "_small_below": small and small.below,
        "_small_up": small and small.up_bp,
        "_small_down": small and small.down_bp,
    }


def _review_parameters(rule: Rule, run: Run) -> dict[str, object]:
    limits = rule.review or run.seller.review
    return {
        "_review_up": limits.up_bp,
        "_review_down": limits.down_bp,
        "_review_first": limits.first_price,
    }


def _holdout_parameters(rule: Rule, run: Run) -> dict[str, object]:
    if not rule.holdout_bp:
        return {}
    return {"_holdout": rule.holdout_bp, "_holdout_seed": seed(rule.id, run.now)}


_SALE_PARAMETERS: Final[dict[str, pl.DataType]] = {
    "sale_id": pl.Int64(),
    "sale_ends_at": TIME,
    "_sale_factor": pl.Int64(),
    "_sale_floor": pl.Int64(),
    "_sale_cost_factor": pl.Int64(),
    "_sale_keeps": pl.Boolean(),
}


def sale_parameters(run: Run) -> pl.DataFrame:
    """Return the parameters that the steps read from sales, one row per active sale, to be joined
    to the cards by `sale_id`.
    """
    return pl.DataFrame([_of_sale(sale) for sale in run.active_sales], schema=_SALE_PARAMETERS)


def _of_sale(sale: Sale) -> dict[str, object]:
    by_cost = sale.floor_cost_bp
    return {
        "sale_id": sale.id,
        "sale_ends_at": sale.ends_at,
        "_sale_factor": WHOLE_BP + sale.adjust_bp,
        "_sale_floor": sale.floor,
        "_sale_cost_factor": None if by_cost is None else WHOLE_BP + by_cost,
        "_sale_keeps": sale.keep_never_lower,
    }

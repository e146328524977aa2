"""Writes a receipt as steps, each with one sentence. Pure.

Each step's input is the output of the one before it; the steps before a base is found pass the
current price on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from cardsync.clock import rfc3339
from cardsync.money import UNITS_PER_CENT, dollars
from cardsync.pricing.engine.engine import PRICE_INPUTS, PRICE_STEPS
from cardsync.pricing.engine.fees import net
from cardsync.pricing.engine.rules import Rule, Sale
from cardsync.pricing.engine.run_inputs import ENDING_CENTS, Run
from cardsync.pricing.engine.steps import BLOCKER_BIT, BLOCKERS

Row = Mapping[str, Any]
_Step = tuple[str, dict[str, object]]


def blocker_codes(bits: int) -> list[str]:
    return [code for code, bit in BLOCKER_BIT.items() if bits & bit]


def explain(row: Row, run: Run) -> list[dict[str, object]]:
    """Return the steps that ran for one card in their form on the wire; `run` has the rules, sales
    and settings that priced it.
    """
    if row["pin"] is not None:
        return []
    rule = _rule_of(row, run)
    steps = [_eligibility_step(row), _rule_step(row, rule, run)]
    if rule is None or rule.broken:
        return steps
    steps.append(_source_step(row, rule))
    if row["blockers"]:
        return steps
    before = row["base"]
    for step in PRICE_STEPS:
        if step.output in _ONLY_IF_SET and not step.needed(run):
            continue
        # A step that no rule of the run uses left nothing, and so leaves the price.
        after = before if row[step.output] is None else row[step.output]
        if step.output == "after_review" and row["review"] and row["after_review"] is None:
            after = None
        name = "change" if step.output == "target" else step.output.removeprefix("after_")
        steps.append(
            _step(
                name,
                before,
                after,
                *_STEPS[step.output](row, rule, before, after, run),
            )
        )
        before = after
    return steps


# Steps of seller-wide settings, and those that most rules do without, are shown only where the
# seller set them.
_ONLY_IF_SET: Final = (
    "after_shipping_adder",
    "after_hard_floor",
    "after_holdout",
    "after_review",
)


def _rule_of(row: Row, run: Run) -> Rule | None:
    if row["rule_id"] is None:
        return None
    for rule in run.rules:
        if rule.id == row["rule_id"]:
            return rule
    raise ValueError(f"rule {row['rule_id']} is not among the run's rules")


def _step(
    name: str,
    before: int | None,
    after: int | None,
    said: str,
    own: dict[str, object],
) -> dict[str, object]:
    return {"name": name, "input": money(before), "output": money(after), "summary": said, **own}


def money(units: int | None) -> str | None:
    return None if units is None else dollars(units)


def input_shown(name: str, value: Any) -> Any:
    """Return one of the engine's inputs in its form on the wire."""
    if isinstance(value, datetime):
        return rfc3339(value)
    return money(value) if name in PRICE_INPUTS or name == "pin" else value


def percent(bp: int) -> str:
    return f"{Decimal(bp) / 100:f} %"


def _time(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment else None


def _eligibility_step(row: Row) -> dict[str, object]:
    codes = blocker_codes(row["blockers"])
    reasons = "; ".join(BLOCKERS[code].removesuffix(".") for code in codes)
    said = f"The card keeps its price: {reasons}." if codes else "Nothing blocks the card."
    return _step(
        "eligibility",
        row["current_price"],
        row["current_price"],
        said,
        {"blockers": codes},
    )


def _rule_step(row: Row, rule: Rule | None, run: Run) -> dict[str, object]:
    losing = row["candidates"]
    if losing is None:
        # Without queries every live rule selects every card, so the rules after the governing one
        # have lost.
        behind = run.live[run.live.index(rule) + 1 :] if rule in run.live else []
        losing = [later.id for later in behind if not later.query]
    said = (
        f"Rule “{rule.name}” is the first that selects the card."
        if rule
        else "No published rule selects the card."
    )
    if rule and rule.broken:
        said = (
            f"The query of rule “{rule.name}” cannot be read, so every card that no earlier rule"
            " governs keeps its price."
        )
    own: dict[str, object] = {"rule_id": row["rule_id"], "losing_candidates": losing}
    return _step("governing_rule", row["current_price"], row["current_price"], said, own)


def _source_step(row: Row, rule: Rule) -> dict[str, object]:
    source = row["source"]
    earlier = rule.sources[: rule.sources.index(source)] if source else rule.sources
    unused: list[dict[str, str]] = [
        {"source": name, "reason": row[f"refused_{name}"]} for name in earlier
    ]
    why = " and ".join(_unused(**entry) for entry in unused)
    said = (
        f"The base is {source}, {money(row['base'])}" if source else "No price source can be used"
    )
    own: dict[str, object] = {
        "source": source,
        "observed_at": _time(row["source_observed_at"]),
        "unused_sources": unused,
    }
    return _step(
        "price_source",
        row["current_price"],
        row["base"],
        f"{said}{', because ' + why if why else ''}.",
        own,
    )


def _unused(source: str, reason: str) -> str:
    if (source, reason) == ("sales_anchor", "absent"):
        return "no recent sales are known"
    return f"{source} is {_REASONS[reason]}"


_REASONS: Final = {
    "absent": "absent",
    "too_old": "too old",
    "too_few_sales": "based on too few sales",
    "sales_too_old": "based on sales too long ago",
    "evidence_too_old": "based on evidence fetched too long ago",
    "future_evidence": "based on evidence with a time in the future",
}


def _formula_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    share = f"{Decimal(rule.adjust_bp) / 100:+f} %"
    amount = f" and {'-' if rule.adjust_amount < 0 else '+'}{money(abs(rule.adjust_amount))}"
    said = f"{money(before)} {share}{amount if rule.adjust_amount else ''} is {money(after)}."
    return said, {
        "adjust_bp": rule.adjust_bp,
        "adjust_amount": money(rule.adjust_amount),
    }


def _adder_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    adder = money(run.seller.shipping_adder)
    threshold = money(run.seller.tracking_threshold)
    own: dict[str, object] = {"shipping_adder": adder, "tracking_threshold": threshold}
    if adder is None:
        return "No shipping adder is set.", own
    if after == before:
        return f"{money(before)} is below the tracking threshold of {threshold}.", own
    return f"From {threshold} on, {adder} is added for the tracked parcel: {money(after)}.", own


def _gate_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    verdict = row["gate_verdict"]
    aggressive = money(row["aggressive_price"])
    own: dict[str, object] = {
        "listings": row["listings_count"],
        "listings_low": money(row["listings_low"]),
        "listings_observed_at": _time(row["listings_observed_at"]),
        "sales": row["sales_count"],
        "sales_observed_at": _time(row["sales_fetched_at"]),
        "market": money(row["market"]),
        "market_observed_at": _time(row["observed_at"]),
        "buy_out_detected_at": _time(row["buy_out_detected_at"]),
        "aggressive_price": aggressive,
        "verdict": verdict,
    }
    if verdict is None:
        return "The rule has no market gate.", own
    if verdict == "taken":
        return f"The evidence allows undercutting the lowest listing: {aggressive}.", own
    return f"{money(after)} stands: {_VERDICTS[verdict]}.", own


_VERDICTS: Final = {
    "market_stale": "the market price is absent or too old",
    "no_listing": "no listing is known that could be undercut",
    "listings_stale": "the listings were seen too long ago",
    "too_few_listings": "there are too few listings",
    "sales_stale": "the sales were seen too long ago",
    "too_few_sales": "there are too few sales",
    "buy_out": "a buy-out was seen in the last four hours",
    "not_lower": "undercutting the lowest listing would ask no less",
}


def _undercut_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    verdict = row["undercut_verdict"]
    lowest = money(row["undercut_listing"])
    own: dict[str, object] = {
        "undercut_up_bp": rule.undercut_up_bp,
        "lowest_listing": lowest,
        "listing_source": row["undercut_source"],
        "listing_observed_at": _time(row["undercut_observed_at"]),
        "buy_out_detected_at": _time(row["buy_out_detected_at"]),
        "verdict": verdict,
    }
    if verdict is None:
        return "The rule does not rise to the lowest listing.", own
    if verdict == "taken":
        said = (
            f"The lowest listing, {lowest}, stands above {money(before)}:"
            f" {percent(rule.undercut_up_bp or 0)} under it is {money(after)}."
        )
        return said, own
    return f"{money(after)} stands: {_UNDERCUTS[verdict].format(lowest=lowest)}.", own


_UNDERCUTS: Final = {
    "no_listing": "no listing of others is known that is fresh",
    "not_above": "the lowest listing, {lowest}, is not above it",
    "buy_out": "a buy-out was seen in the last four hours",
    "not_higher": "a price just under the lowest listing, {lowest}, would be no higher",
}


def _stale_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    days = row["stale_days"]
    spared = bool(row["stale_spared"])
    own: dict[str, object] = {"days": days, "spared": spared}
    if rule.stale is None:
        said = "The rule reduces no stale cards."
    elif days is None:
        said = "The time when the card was first listed is not on record."
    elif spared:
        said = f"The card is unsold for {days} days, but spared because its market moved lately."
    elif days < rule.stale.after_days:
        said = f"The card is unsold for {days} days, fewer than {rule.stale.after_days}."
    else:
        said = f"The card is unsold for {days} days: {money(before)} becomes {money(after)}."
    return said, own


def _bounds_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    bound = row["bound"]
    said = (
        f"{money(before)} is {_BOUNDS[bound]} {money(after)}."
        if bound
        else f"{money(after)} is within the bounds."
    )
    own = {
        "floor": money(rule.floor),
        "hard_floor": money(run.seller.hard_floor),
        "ceiling": money(rule.ceiling),
        "never_lower": rule.never_lower,
    }
    return said, {"bound": bound, **own}


_BOUNDS: Final = {
    "floor": "below the rule's floor of",
    "hard_floor": "below your hard floor of",
    "ceiling": "above the rule's ceiling of",
    "never_lower": "below the current price, and the rule never lowers",
    "marketplace_minimum": "below the least that the marketplace takes,",
    "largest_price": "above the largest price that there is,",
}


def _cap_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    cap = rule.cap
    limit = row["seller_limit"]
    own: dict[str, object] = {
        "formula_target": money(before),
        "period_start_price": money(row["period_start_price"]),
        "current_reference": money(row["current_price"]),
        "seller_limit": money(limit),
        "mode": cap and cap.mode,
        "period": cap and cap.period,
        "held": bool(row["held"]),
    }
    if cap is None:
        said = "The rule has no cap."
    elif row["current_price"] is None:
        said = "The card has no price yet, so the cap has nothing to start from."
    elif limit is None:
        said = f"{money(before)} is within the cap of the {cap.period}."
    elif row["held"]:
        said = (
            f"{money(before)} is beyond the limit of {money(limit)},"
            f" so the price is held at {money(after)}."
        )
    else:
        said = (
            f"{money(before)} is beyond the cap of the {cap.period}; its limit is {money(limit)}."
        )
    return said, own


def _sale_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    own: dict[str, object] = {
        "sale_id": row["sale_id"],
        "ends_at": _time(row["sale_ends_at"]),
    }
    if row["sale_id"] is None:
        return "No active sale selects the card.", own
    sale = _sale_of(row, run)
    reduced = f"Sale “{sale.name}” takes {percent(-sale.adjust_bp)} off {money(before)}"
    if after > before:
        return f"{money(before)} is below the floor of sale “{sale.name}”, {money(after)}.", own
    if after == sale.floor:
        return f"{reduced}, but not below its floor of {money(after)}.", own
    return f"{reduced}: {money(after)}.", own


def _sale_of(row: Row, run: Run) -> Sale:
    return next(sale for sale in run.sales if sale.id == row["sale_id"])


def _hard_floor_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    own: dict[str, object] = {"hard_floor": money(run.seller.hard_floor)}
    if run.seller.hard_floor is None:
        return "No hard floor is set.", own
    if after > before:
        return f"{money(before)} is below your hard floor of {money(after)}.", own
    return f"{money(after)} is not below your hard floor.", own


def _direct_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    eligible = run.seller.direct_program and row["direct_low"] is not None
    own: dict[str, object] = {
        "direct_eligible": eligible,
        "direct_minimum": money(run.seller.direct_minimum),
    }
    if not eligible:
        return "The card is not Direct-eligible.", own
    if after > before:
        return f"A Direct card asks at least {money(after)}.", own
    return f"{money(after)} is not below the Direct minimum.", own


def _fee_gap_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    direct = run.seller.direct_program and row["direct_low"] is not None
    nets = [
        net(price, run.schedule, run.seller.fee_level, direct=direct) // 10_000
        for price in (before, after)
    ]
    own: dict[str, object] = {
        "net_before": _signed(nets[0]),
        "net_after": _signed(nets[1]),
        "fee_schedule_date": run.schedule.since.isoformat(),
    }
    if not rule.fee_gap_adjustment:
        return "The rule does not adjust to fees.", own
    if after > before:
        return (
            (
                f"{money(before)} nets {own['net_before']} after fees;"
                f" {money(after)} nets {own['net_after']}."
            ),
            own,
        )
    gap = run.fee_gap if direct else None
    if gap is not None and gap[0] <= before < gap[1]:
        return (
            (
                f"{money(after)} is in the gap of the fees, but the ceiling is below its end,"
                f" {money(gap[1])}."
            ),
            own,
        )
    return f"{money(after)} is in no gap of the fees.", own


def _signed(units: int) -> str:
    return f"-{dollars(-units)}" if units < 0 else dollars(units)


def _rounding_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    return _rounded(rule, before, after), {"rounding": rule.rounding}


def _rounded(rule: Rule, before: int, after: int) -> str:
    nearest = max((before + UNITS_PER_CENT // 2) // UNITS_PER_CENT * UNITS_PER_CENT, UNITS_PER_CENT)
    was = money(before)
    becomes = money(after)
    ending = ENDING_CENTS[rule.rounding]
    if after == before:
        return f"{was} needs no rounding."
    if after == nearest:
        return f"{was} is {becomes} in whole cents."
    if after < nearest:
        return f"{was} becomes {becomes}, the most that ceiling and cap allow."
    if (
        ending > 1
        and (after // UNITS_PER_CENT + 1) % ending == 0
        and after - nearest < ending * UNITS_PER_CENT
    ):
        return f"{was} goes up to the ending {rule.rounding}: {becomes}."
    return f"{was} becomes {becomes}, the least that floor, cap and Direct minimum allow."


def _holdout_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    own: dict[str, object] = {"group": row["holdout"]}
    if row["holdout"] == "held":
        said = (
            f"The card is in the rule's hold-out of {percent(rule.holdout_bp or 0)} of its cards,"
            f" so its price stays at {money(after)} until the thirty days end."
        )
    elif row["holdout"] == "twin":
        said = "The card follows the rule, and the hold-out is compared with it."
    else:
        said = "The card is not in the rule's hold-out."
    return said, own


_REVIEWED: Final = {
    "rise": "a rise beyond your limit of {} waits for your review, so the price stays at {}.",
    "drop": "a drop beyond your limit of {} waits for your review, so the price stays at {}.",
}


def _review_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int | None,
    run: Run,
) -> _Step:
    limits = rule.review or run.seller.review
    reason = row["review"]
    own: dict[str, object] = {
        "reason": reason,
        "review_up_bp": limits.up_bp,
        "review_down_bp": limits.down_bp,
        "approved_price": money(row["approved_price"]),
    }
    if reason == "first_price":
        said = f"{money(before)} would be the card's first price; it waits for your review"
        said += f", so the price is {money(after)}." if after is not None else "."
    elif reason is not None:
        bp = limits.up_bp if reason == "rise" else limits.down_bp
        sentence = _REVIEWED[reason].format(percent(bp or 0), money(after))
        said = f"{money(before)}: {sentence}"
    elif row["approved_price"] is not None:
        said = f"You accepted {money(row['approved_price'])}, so {money(before)} needs no review."
    else:
        said = f"{money(before)} is within your review limits."
    return said, own


def _change_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> _Step:
    current = money(row["current_price"])
    target = money(after)
    moved = (
        f"The price changes from {current} to {target}."
        if current
        else f"The first price is {target}."
    )
    kept = f"The price stays at {current}: {money(before)} is no large enough move."
    same = f"The price is {current} already." if current else "The card has no price yet."
    said = moved if row["changed"] else same if before == after else kept
    return said, {"changed": row["changed"]}


_STEPS: Final[dict[str, Callable[[Row, Rule, int, int, Run], _Step]]] = {
    "after_formula": _formula_step,
    "after_shipping_adder": _adder_step,
    "after_market_gate": _gate_step,
    "after_undercut": _undercut_step,
    "after_stale_reduction": _stale_step,
    "after_bounds": _bounds_step,
    "after_cap": _cap_step,
    "after_sale": _sale_step,
    "after_hard_floor": _hard_floor_step,
    "after_direct_minimum": _direct_step,
    "after_fee_gap": _fee_gap_step,
    "after_rounding": _rounding_step,
    "after_holdout": _holdout_step,
    "after_review": _review_step,
    "target": _change_step,
}

"""Writes a receipt as steps, each with one sentence. Pure.

Each step's input is the output of the previous step. The steps before the base price have the
current price as input and output.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.money import dollars_or_none, percent
from cardsync.platform.value_types import Json
from cardsync.prices.engine.engine import PRICE_INPUTS, PRICE_STEPS
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.steps import BLOCKER_BIT, BLOCKERS
from cardsync.prices.receipts.limit_sentences import (
    Row,
    Step,
    bounds_step,
    cap_step,
    change_step,
    direct_step,
    fee_gap_step,
    hard_floor_step,
    holdout_step,
    review_step,
    rounding_step,
    sale_step,
)


def blocker_codes(bits: int) -> list[str]:
    return [code for code, bit in BLOCKER_BIT.items() if bits & bit]


def explain(row: Row, run: Run) -> list[dict[str, object]]:
    """Return the steps that ran for one card in the form of the API. `run` has the rules, sales and
    settings that priced the card.
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
        if _says_nothing(step.output, row, before, run):
            continue
        # A step that no rule of the run uses has no result, so the price stays.
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


def _says_nothing(output: str, row: Row, before: int, run: Run) -> bool:
    """Return whether the step ran only because of the guards of other cards."""
    of_guards = output == "after_hard_floor" and run.seller.hard_floor is None
    return of_guards and row[output] in (None, before)


# Steps of seller-wide settings, and steps that most rules do not use, are shown only if the run
# uses them.
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
    return {
        "name": name,
        "input": dollars_or_none(before),
        "output": dollars_or_none(after),
        "summary": said,
        **own,
    }


def input_shown(name: str, value: Json) -> object:
    """Return one of the engine's inputs in the form of the API."""
    if isinstance(value, datetime):
        return rfc3339(value)
    return dollars_or_none(value) if name in (*PRICE_INPUTS, "pin", "cost") else value


def _eligibility_step(row: Row) -> dict[str, object]:
    codes = blocker_codes(row["blockers"])
    reasons = "; ".join(BLOCKERS[code].removesuffix(".") for code in codes)
    said = f"The card keeps its price: {reasons}." if codes else "This card can be priced."
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
        # Without queries every live rule selects every card, so the rules after the governing rule
        # also select the card.
        behind = run.live[run.live.index(rule) + 1 :] if rule in run.live else []
        losing = [later.id for later in behind if not later.query]
    said = (
        f"Rule “{rule.name}” is the first that matches the card."
        if rule
        else "No published rule matches the card."
    )
    if rule and rule.broken:
        said = (
            f"The search of rule “{rule.name}” doesn't work, so cards without an earlier rule"
            " keep their price."
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
        f"The starting price is {_SOURCES[source]}, {dollars_or_none(row['base'])}"
        if source
        else "No price source can be used"
    )
    own: dict[str, object] = {
        "source": source,
        "observed_at": rfc3339_or_none(row["source_observed_at"]),
        "unused_sources": unused,
    }
    return _step(
        "price_source",
        row["current_price"],
        row["base"],
        f"{said}{', because ' + why if why else ''}.",
        own,
    )


_SOURCES: Final = {
    "market": "market",
    "low": "the lowest listing",
    "low_with_shipping": "the lowest price with shipping",
    "direct_low": "the lowest Direct price",
    "sales_anchor": "recent sales",
    "current": "your price",
}


def _unused(source: str, reason: str) -> str:
    if (source, reason) == ("sales_anchor", "absent"):
        return "no recent sales are known"
    return f"{_SOURCES[source]} is {_REASONS[reason]}"


_REASONS: Final = {
    "absent": "missing",
    "too_old": "too old",
    "too_few_sales": "based on too few sales",
    "sales_too_old": "based on sales too long ago",
    "evidence_too_old": "based on data fetched too long ago",
    "future_evidence": "dated in the future",
}


def _formula_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    return f"{_asked(rule, before)} is {dollars_or_none(after)}.", {
        "adjust_bp": rule.adjust_bp,
        "adjust_amount": dollars_or_none(rule.adjust_amount),
    }


def _asked(rule: Rule, before: int) -> str:
    """Return the rule's formula in words: `1% under 10.00, and 0.25 more,`."""
    side = "above" if rule.adjust_bp > 0 else "under"
    base = f"{percent(abs(rule.adjust_bp))} {side} {dollars_or_none(before)}"
    text = base if rule.adjust_bp else f"{dollars_or_none(before)}"
    if not rule.adjust_amount:
        return text
    more = "more" if rule.adjust_amount > 0 else "less"
    return f"{text}, and {dollars_or_none(abs(rule.adjust_amount))} {more},"


def _adder_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    adder = dollars_or_none(run.seller.shipping_adder)
    threshold = dollars_or_none(run.seller.tracking_threshold)
    own: dict[str, object] = {"shipping_adder": adder, "tracking_threshold": threshold}
    if adder is None:
        return "No amount is added for tracked shipping.", own
    if after == before:
        return f"{dollars_or_none(before)} is below the tracking threshold of {threshold}.", own
    return (
        f"At {threshold} and above, {adder} is added for tracked shipping: {dollars_or_none(after)}.",
        own,
    )


def _gate_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    verdict = row["gate_verdict"]
    aggressive = dollars_or_none(row["aggressive_price"])
    own: dict[str, object] = {
        "listings": row["listings_count"],
        "listings_low": dollars_or_none(row["listings_low"]),
        "listings_observed_at": rfc3339_or_none(row["listings_observed_at"]),
        "sales": row["sales_count"],
        "sales_observed_at": rfc3339_or_none(row["sales_fetched_at"]),
        "market": dollars_or_none(row["market"]),
        "market_observed_at": rfc3339_or_none(row["observed_at"]),
        "buy_out_detected_at": rfc3339_or_none(row["buy_out_detected_at"]),
        "aggressive_price": aggressive,
        "verdict": verdict,
    }
    if verdict is None:
        return "No market check.", own
    if verdict == "taken":
        return f"The market allows undercutting the lowest listing: {aggressive}.", own
    return f"{dollars_or_none(after)} stays: {_VERDICTS[verdict]}.", own


_VERDICTS: Final = {
    "market_stale": "the market price is missing or too old",
    "no_listing": "there is no known listing to undercut",
    "listings_stale": "the listing data is too old",
    "too_few_listings": "there are too few listings",
    "sales_stale": "the sales data is too old",
    "too_few_sales": "there are too few sales",
    "buy_out": "a buyout was seen in the last four hours",
    "not_lower": "undercutting the lowest listing would not lower the price",
}


def _undercut_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    verdict = row["undercut_verdict"]
    lowest = dollars_or_none(row["undercut_listing"])
    own: dict[str, object] = {
        "undercut_up_bp": rule.undercut_up_bp,
        "lowest_listing": lowest,
        "listing_source": row["undercut_source"],
        "listing_observed_at": rfc3339_or_none(row["undercut_observed_at"]),
        "buy_out_detected_at": rfc3339_or_none(row["buy_out_detected_at"]),
        "verdict": verdict,
    }
    if verdict is None:
        return "The rule doesn't go up to the lowest listing.", own
    if verdict == "taken":
        said = (
            f"The lowest listing ({lowest}) is above {dollars_or_none(before)}, so the price rises"
            f" to {percent(rule.undercut_up_bp or 0)} below it: {dollars_or_none(after)}."
        )
        return said, own
    return f"{_UNDERCUTS[verdict].format(lowest=lowest)}, so no change.", own


_UNDERCUTS: Final = {
    "no_listing": "There is no recent listing from another seller",
    "not_above": "The lowest listing ({lowest}) is not higher",
    "buy_out": "A buyout was seen in the last four hours",
    "not_higher": "A price just under the lowest listing ({lowest}) would be no higher",
}


def _stale_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    days = row["stale_days"]
    spared = bool(row["stale_spared"])
    own: dict[str, object] = {"days": days, "spared": spared}
    if rule.stale is None:
        said = "The rule does not lower stale cards."
    elif days is None:
        said = "The date the card was first listed is not on record."
    elif spared:
        said = f"The card has gone {days} days without a sale, but is not lowered because its market moved recently."
    elif days < rule.stale.after_days:
        said = f"The card has gone {days} days without a sale, fewer than {rule.stale.after_days}."
    else:
        said = f"The card has gone {days} days without a sale: {dollars_or_none(before)} becomes {dollars_or_none(after)}."
    return said, own


_STEPS: Final[dict[str, Callable[[Row, Rule, int, int, Run], Step]]] = {
    "after_formula": _formula_step,
    "after_shipping_adder": _adder_step,
    "after_market_gate": _gate_step,
    "after_undercut": _undercut_step,
    "after_stale_reduction": _stale_step,
    "after_bounds": bounds_step,
    "after_cap": cap_step,
    "after_sale": sale_step,
    "after_hard_floor": hard_floor_step,
    "after_direct_minimum": direct_step,
    "after_fee_gap": fee_gap_step,
    "after_rounding": rounding_step,
    "after_holdout": holdout_step,
    "after_review": review_step,
    "target": change_step,
}

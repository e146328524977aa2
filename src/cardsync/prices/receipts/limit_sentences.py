"""Describes the steps that limit a price: the bounds of its rule and the later steps, such as caps,
sales, floors, rounding, hold-outs and reviews. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cardsync.platform.clock import rfc3339_or_none
from cardsync.platform.money import UNITS_PER_CENT, dollars, dollars_or_none, percent
from cardsync.prices.engine.rules import WHOLE_BP, Rule, Sale
from cardsync.prices.engine.run_inputs import ENDING_CENTS, Run
from cardsync.sales.lots.fee_schedule import net

Row = Mapping[str, Any]
LIMITS: Final = {"sync": "limit per sync", "day": "daily limit", "week": "weekly limit"}
_WHEN: Final = {"sync": "in one sync", "day": "today", "week": "this week"}
Step = tuple[str, dict[str, object]]


def bounds_step(row: Row, rule: Rule, before: int, after: int, run: Run) -> Step:
    bound = row["bound"]
    said = (
        f"{dollars_or_none(before)} is {_BOUNDS[bound]} {dollars_or_none(after)}."
        if bound
        else f"{dollars_or_none(after)} is within the rule's floor and ceiling."
    )
    if bound in ("guard_floor", "guard_ceiling"):
        said = (
            f"{dollars_or_none(before)} is {_of_guard(row, bound, run)}, {dollars_or_none(after)}."
        )
    if rule.floor_cost_bp is not None and row.get("cost") is None:
        said += " The card's cost is unknown, so the rule's cost-based floor doesn't apply."
    own = {
        "floor": dollars_or_none(rule.floor),
        "floor_cost_bp": rule.floor_cost_bp,
        "cost": dollars_or_none(row.get("cost")),
        "cost_floor": dollars_or_none(_cost_floor(row, rule)),
        "hard_floor": dollars_or_none(run.seller.hard_floor),
        "ceiling": dollars_or_none(rule.ceiling),
        "never_lower": rule.never_lower,
    }
    return said, {"bound": bound, **own, **_guard_fields(row)}


def _of_guard(row: Row, bound: str, run: Run) -> str:
    name = next(guard.name for guard in run.rules if guard.id == row[f"{bound}_id"])
    return (
        f"below the floor of guard “{name}”"
        if bound == "guard_floor"
        else f"above the ceiling of guard “{name}”"
    )


def _guard_fields(row: Row) -> dict[str, object]:
    """Return the strictest limits of the card's guards, with the guards' ids. Without a guard,
    return no limits.
    """
    found: dict[str, object] = {}
    for name in ("guard_floor", "guard_ceiling"):
        if row.get(name) is not None:
            found |= {name: dollars_or_none(row[name]), f"{name}_id": row[f"{name}_id"]}
    return found


def _cost_floor(row: Row, rule: Rule) -> int | None:
    cost = row.get("cost")
    if rule.floor_cost_bp is None or cost is None:
        return None
    above = cost * (WHOLE_BP + rule.floor_cost_bp)
    return int(-(-above // (WHOLE_BP * UNITS_PER_CENT)) * UNITS_PER_CENT)


_BOUNDS: Final = {
    "floor": "below the rule's floor of",
    "cost_floor": "below the rule's cost-based floor,",
    "hard_floor": "below your minimum price of",
    "ceiling": "above the rule's ceiling of",
    "never_lower": "below the current price, which the rule never lowers:",
    "marketplace_minimum": "below TCGplayer's minimum,",
    "largest_price": "above the highest possible price,",
    # `_of_guard` writes these sentences, because they name the guard.
    "guard_floor": "",
    "guard_ceiling": "",
}


def cap_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    cap = rule.cap
    limit = row["seller_limit"]
    own: dict[str, object] = {
        "formula_target": dollars_or_none(before),
        "period_start_price": dollars_or_none(row["period_start_price"]),
        "current_reference": dollars_or_none(row["current_price"]),
        "seller_limit": dollars_or_none(limit),
        "mode": cap and cap.mode,
        "period": cap and cap.period,
        "held": bool(row["held"]),
    }
    start = row["period_start_price"]
    if (guard_id := row.get("guard_cap_id")) is not None:
        start = row["day_start_price"] or row["current_price"]
        own |= {
            "guard_cap_id": guard_id,
            "period_start_price": dollars_or_none(start),
            "mode": "clamp",
            "period": "day",
        }
        name = next(guard.name for guard in run.rules if guard.id == guard_id)
        said = (
            f"Daily limit of guard “{name}”: can't go {'above' if before > limit else 'below'}"
            f" {dollars_or_none(limit)} today; the rule sets {dollars_or_none(before)}."
        )
    elif cap is None:
        said = "The rule has no cap."
    elif row["current_price"] is None:
        said = "The card has no price yet, so the cap has nothing to start from."
    elif limit is None:
        said = f"{dollars_or_none(before)} is within the cap for the {cap.period}."
    elif row["held"]:
        said = f"{dollars_or_none(before)} is over the limit of {dollars_or_none(limit)}, so the price is held at {dollars_or_none(after)}."
    else:
        way = "above" if before > limit else "below"
        said = (
            f"{LIMITS[cap.period].capitalize()}: can't go {way} {dollars_or_none(limit)}"
            f" {_WHEN[cap.period]}; the rule sets {dollars_or_none(before)}."
        )
    step = run.seller.minimum_cap_step
    if limit is not None and step and abs(limit - start) == step:
        own["minimum_cap_step"] = dollars_or_none(step)
        said += f" A cap allows at least {dollars_or_none(step)}."
    return said, own


def sale_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    own: dict[str, object] = {
        "sale_id": row["sale_id"],
        "ends_at": rfc3339_or_none(row["sale_ends_at"]),
    }
    if row["sale_id"] is None:
        return "No active promotion matches the card.", own
    sale = _sale_of(row, run)
    reduced = (
        f"Promotion “{sale.name}” takes {percent(-sale.adjust_bp)} off {dollars_or_none(before)}"
    )
    if after > before:
        return (
            f"{dollars_or_none(before)} is below the floor of promotion “{sale.name}”, {dollars_or_none(after)}.",
            own,
        )
    if after == before and sale.keep_never_lower and rule.never_lower:
        spared = f"Promotion “{sale.name}” doesn't lower prices whose rule says “never lower”"
        return f"{spared}: {dollars_or_none(after)}.", own
    full = (before * (WHOLE_BP + sale.adjust_bp) + WHOLE_BP // 2) // WHOLE_BP
    if sale.floor_cost_bp is not None and after > max(full, sale.floor or 0):
        above = f" plus {percent(sale.floor_cost_bp)}" if sale.floor_cost_bp else ""
        return (
            f"{reduced}, but not below what the card cost{above}: {dollars_or_none(after)}.",
            own,
        )
    if after == sale.floor:
        return f"{reduced}, but not below its floor of {dollars_or_none(after)}.", own
    return f"{reduced}: {dollars_or_none(after)}.", own


def _sale_of(row: Row, run: Run) -> Sale:
    return next(sale for sale in run.sales if sale.id == row["sale_id"])


def hard_floor_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    own: dict[str, object] = {
        "hard_floor": dollars_or_none(run.seller.hard_floor),
        **_guard_fields(row),
    }
    if after > before and after == row.get("guard_floor"):
        of_guard = _of_guard(row, "guard_floor", run)
        return f"{dollars_or_none(before)} is {of_guard}, {dollars_or_none(after)}.", own
    if run.seller.hard_floor is None:
        return "No minimum price is set.", own
    if after > before:
        return (
            f"{dollars_or_none(before)} is below your minimum price of {dollars_or_none(after)}.",
            own,
        )
    return f"{dollars_or_none(after)} is not below your minimum price.", own


def direct_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    eligible = run.seller.direct_program and row["direct_low"] is not None
    own: dict[str, object] = {
        "direct_eligible": eligible,
        "direct_minimum": dollars_or_none(run.seller.direct_minimum),
    }
    if not eligible:
        return "Not eligible for TCGplayer Direct.", own
    if after > before:
        return f"A card in Direct is priced at {dollars_or_none(after)} or more.", own
    return f"{dollars_or_none(after)} is not below the Direct minimum.", own


def fee_gap_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
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
        return "The rule does not adjust for fees.", own
    if after > before:
        return (
            (
                f"{dollars_or_none(before)} nets {own['net_before']} after fees;"
                f" {dollars_or_none(after)} nets {own['net_after']}."
            ),
            own,
        )
    gap = run.fee_gap if direct else None
    if gap is not None and gap[0] <= before < gap[1]:
        return (
            (
                f"{dollars_or_none(after)} is in a fee gap, but the ceiling is below the end of the"
                f" gap, {dollars_or_none(gap[1])}."
            ),
            own,
        )
    return f"{dollars_or_none(after)} is not in a fee gap.", own


def _signed(units: int) -> str:
    return f"-{dollars(-units)}" if units < 0 else dollars(units)


def rounding_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    return _rounded(rule, before, after), {"rounding": rule.rounding}


def _rounded(rule: Rule, before: int, after: int) -> str:
    nearest = max((before + UNITS_PER_CENT // 2) // UNITS_PER_CENT * UNITS_PER_CENT, UNITS_PER_CENT)
    was = dollars_or_none(before)
    becomes = dollars_or_none(after)
    ending = ENDING_CENTS[rule.rounding]
    if after == before:
        return f"{was} needs no rounding."
    if after == nearest:
        return f"{was} is {becomes} in whole cents."
    if after < nearest:
        return f"{was} becomes {becomes}, the highest price that the ceiling and cap allow."
    if (
        ending > 1
        and (after // UNITS_PER_CENT + 1) % ending == 0
        and after - nearest < ending * UNITS_PER_CENT
    ):
        return f"{was} rounds up to end in {rule.rounding}: {becomes}."
    return (
        f"{was} becomes {becomes}, the lowest price that the floor, cap and Direct minimum allow."
    )


def holdout_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    own: dict[str, object] = {"group": row["holdout"]}
    if row["holdout"] == "held":
        said = (
            f"The card is in the rule's control group ({percent(rule.holdout_bp or 0)} of its"
            f" cards), so its price stays at {dollars_or_none(after)} until the 30 days end."
        )
    elif row["holdout"] == "twin":
        said = "The card follows the rule, and the control group is compared with it."
    else:
        said = "The card is not in the rule's control group."
    return said, own


_REVIEWED: Final = {
    "rise": "an increase over your limit of {} needs approval, so the price stays at {}.",
    "drop": "a drop over your limit of {} needs approval, so the price stays at {}.",
}


def review_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int | None,
    run: Run,
) -> Step:
    limits = rule.review or run.seller.review
    reason = row["review"]
    own: dict[str, object] = {
        "reason": reason,
        "review_up_bp": limits.up_bp,
        "review_down_bp": limits.down_bp,
        "approved_price": dollars_or_none(row["approved_price"]),
    }
    if reason == "first_price":
        said = f"{dollars_or_none(before)} would be the card's first price; it needs your review"
        said += f", so the price is {dollars_or_none(after)}." if after is not None else "."
    elif reason is not None:
        bp = limits.up_bp if reason == "rise" else limits.down_bp
        sentence = _REVIEWED[reason].format(percent(bp or 0), dollars_or_none(after))
        said = f"{dollars_or_none(before)}: {sentence}"
    elif row["approved_price"] is not None:
        said = f"You approved {dollars_or_none(row['approved_price'])}, so {dollars_or_none(before)} needs no review."
    else:
        said = f"{dollars_or_none(before)} is within your review limits."
    return said, own


def change_step(
    row: Row,
    rule: Rule,
    before: int,
    after: int,
    run: Run,
) -> Step:
    current = dollars_or_none(row["current_price"])
    target = dollars_or_none(after)
    moved = (
        f"The price changes from {current} to {target}."
        if current
        else f"The first price is {target}."
    )
    kept = f"The price stays at {current}: {dollars_or_none(before)} is too small a change."
    same = f"The price is already {current}." if current else "The card has no price yet."
    said = moved if row["changed"] else same if before == after else kept
    return said, {"changed": row["changed"]}

"""`python bench/plans.py [--rows 300000] [--rounds 5]`: a dry run of a plan that changes all twenty
rules of a shop, and so every card, and of one that changes a tenth of them, over HTTP.

Floor: one preview of the same rules, which reads and prices the cards once. A plan reads them
twice: before and after.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import ground
from ground import MB, Report, spread
from priced_shop import Shop, shop

PLANS = "/api/v1/agent/plans"


def dry_body(rule_ids: list[int], turn: int) -> dict[str, Any]:
    """Build the body of a plan that changes these rules."""
    changes = [
        {"op": "update", "rule_id": id, "set": {"adjust_bp": 300 + turn, "adjust_amount": "0.05"}}
        for id in rule_ids
    ]
    return {"dry_run": True, "actions": [{"type": "pricing.change_set", "changes": changes}]}


def dry_run(of: Shop, rule_ids: list[int], turn: int) -> dict[str, Any]:
    told: dict[str, Any] = of.call("POST", PLANS, dry_body(rule_ids, turn), 201)
    assert told["status"] == "previewed", told
    return told


def applied(of: Shop, turn: int) -> dict[str, Any]:
    """Apply a small plan over every card: what it did to each is kept for the loss limits."""
    changes = [
        {"op": "update", "rule_id": id, "set": {"adjust_bp": 10 * n - 100 + turn % 2}}
        for n, id in enumerate(of.rule_ids)
    ]
    body = {"actions": [{"type": "pricing.change_set", "changes": changes}]}
    told: dict[str, Any] = of.call("POST", PLANS, body, 201)
    assert told["status"] == "applied", told
    return told


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Plans")
    times: dict[str, list[float]] = {
        name: [] for name in ("every card", "a tenth", "applied", "preview", "CPU of every card")
    }
    with ground.ground(data, rows, catalogs=False) as made, shop(made) as (of, running):
        first, web, database = of.rule_ids[:1], running["web"], made.postmaster()
        for turn in range(rounds + 1):
            spent = ground.cpu_seconds(web) + ground.cpu_seconds(database)
            seconds = {
                "every card": ground.seconds(lambda n=turn: dry_run(of, of.rule_ids, n)),
                "CPU of every card": ground.cpu_seconds(web) + ground.cpu_seconds(database) - spent,
                "a tenth": ground.seconds(lambda n=turn: dry_run(of, first, n)),
                "applied": ground.seconds(lambda n=turn: applied(of, n + 1)),
                "preview": ground.seconds(lambda: of.call("POST", "/api/pricing/preview", {})),
            }
            if turn:
                for name, value in seconds.items():
                    times[name].append(value)
        all_cards, tenth = dry_run(of, of.rule_ids, 0), dry_run(of, first, 0)
        report.note(
            f"the plan of all rules moves {all_cards['cards_affected']:,} cards, that of one"
            f" {tenth['cards_affected']:,}; web peak {ground.peak_memory(web) / MB:.0f} MB"
        )
        for name, values in times.items():
            report.note(f"{name:<17} {spread(values)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("dry run over every card", middle["every card"], "s")
    report.figure("dry run over a tenth of them", middle["a tenth"], "s")
    report.figure("CPU of a dry run over every card", middle["CPU of every card"], "s")
    report.figure("a small plan over every card, applied", middle["applied"], "s")
    report.figure("dry run / preview", middle["every card"] / middle["preview"])
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

"""The JSON structs of pricing runs and explanations, and the functions that fill them. Pure."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from cardsync import clock
from cardsync.pricing.inputs.rule_findings import Finding
from cardsync.pricing.models import PriceRun, RunState
from cardsync.pricing.receipts.sentences import money


class RunRequested(msgspec.Struct):
    run_id: int


class PriceRunShown(msgspec.Struct):
    """`changed` counts the price changes that are new with the run. `up` and `down` count all cards
    that it asks for another price than they have, as a preview does; a first price counts as a
    rise. They and their values are null for a run that did not count them.
    """

    id: int
    trigger: str
    state: RunState
    # The upload that the run prices, or that it follows.
    upload_id: int | None
    started_at: str
    finished_at: str | None
    cards: int
    priced: int
    changed: int
    held: int
    reviewed: int
    blocked: dict[str, int]
    up: int | None = None
    down: int | None = None
    up_value: str | None = None
    down_value: str | None = None


class PriceRuns(msgspec.Struct):
    runs: list[PriceRunShown]


class RuleAnalysis(msgspec.Struct):
    rules: list[Finding]
    unmatched: int


class ExplainedCard(msgspec.Struct):
    id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str


class ExplainedBlocker(msgspec.Struct):
    code: str
    message: str


class MatchingRule(msgspec.Struct):
    id: int
    name: str
    kind: Literal["base", "sale"]
    priority: int
    outcome: Literal["governs", "blocks", "applies", "lost"]
    reason: str


class GoverningRule(msgspec.Struct):
    id: int
    name: str
    priority: int


class Explanation(msgspec.Struct):
    """Every step has `name`, `input`, `output`, `summary` and its own fields."""

    marketplace_id: int
    card: ExplainedCard
    currency: str
    current_price: str | None
    target_price: str | None
    computed_at: str
    blockers: list[ExplainedBlocker]
    matching_rules: list[MatchingRule]
    governing_rule: GoverningRule | None
    steps: list[dict[str, Any]]
    inputs: dict[str, Any]
    historical_breakdown: dict[str, Any] | None
    # Why there is none.
    historical_breakdown_absent: ExplainedBlocker | None


class ReceiptThen(msgspec.Struct):
    """The receipt of the last sync before a moment; or the reason why there is none."""

    historical_breakdown: dict[str, Any] | None
    historical_breakdown_absent: ExplainedBlocker | None


_COUNTS: Final = ("cards", "priced", "changed", "held", "reviewed")


def run_body(run: PriceRun) -> PriceRunShown:
    fields: dict[str, Any] = run.summary
    return msgspec.convert(
        {
            "id": run.id,
            "trigger": run.trigger,
            "state": run.state,
            "upload_id": run.upload_id or fields.get("follows"),
            "started_at": clock.rfc3339(run.started_at),
            "finished_at": clock.rfc3339(run.finished_at) if run.finished_at else None,
            **{name: fields.get(name) or 0 for name in _COUNTS},
            "blocked": fields.get("blocked") or {},
            **{name: fields.get(name) for name in ("up", "down")},
            **{name: money(fields.get(name)) for name in ("up_value", "down_value")},
        },
        PriceRunShown,
    )

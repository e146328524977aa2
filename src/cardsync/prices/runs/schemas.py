"""The JSON structs of pricing runs, and the function that fills one. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from cardsync.platform import clock
from cardsync.platform.money import dollars_or_none
from cardsync.platform.value_types import JsonObject
from cardsync.prices.inputs.rule_findings import Finding
from cardsync.prices.models import PriceRun, RunState, RunTrigger


class RunRequested(msgspec.Struct):
    run_id: int
    """The id of the pricing run"""


class PriceRunShown(msgspec.Struct):
    """`changed` counts the targets that the run changed. `up` and `down` count all cards whose
    target is above or below their price, as a preview does; a first price counts as a rise. `up`,
    `down` and their values are null for a run that did not count them.
    """

    id: int
    trigger: RunTrigger
    state: RunState
    """running, completed, awaiting_review, discarded, cancelled or failed"""
    # The upload that the run prices, or that it follows.
    upload_id: int | None
    started_at: str
    finished_at: str | None
    cards: int
    priced: int
    changed: int
    """Number of targets that the run changed"""
    held: int
    """Cards that a cap limits, whether they move to the limit or keep their price"""
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


_COUNTS: Final = ("cards", "priced", "changed", "held", "reviewed")


def run_body(run: PriceRun) -> PriceRunShown:
    fields: JsonObject = run.summary
    return msgspec.convert(
        {
            "id": run.id,
            "trigger": run.trigger,
            "state": run.state,
            "upload_id": run.upload_id or fields.get("follows"),
            "started_at": clock.rfc3339(run.started_at),
            "finished_at": clock.rfc3339_or_none(run.finished_at),
            **{name: fields.get(name) or 0 for name in _COUNTS},
            "blocked": fields.get("blocked") or {},
            **{name: fields.get(name) for name in ("up", "down")},
            **{name: dollars_or_none(fields.get(name)) for name in ("up_value", "down_value")},
        },
        PriceRunShown,
    )

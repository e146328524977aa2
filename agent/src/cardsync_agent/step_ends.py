"""The ways in which a step of a cycle ends without success, as exceptions."""

from __future__ import annotations

CANCELLED = "cancelled by the seller"


class StepFailed(Exception):
    """The step failed; the message is for the server's log and the person."""


class StepSkipped(Exception):
    """The step had nothing to do, for the given reason."""


class NothingThere(StepSkipped):
    """The marketplace has no data for this step, so the step is not done."""


class CycleOver(StepFailed):
    """The cycle ends here; even steps that do not depend on this step are not done."""


class Cancelled(CycleOver):
    """The seller cancelled the sync."""

    def __init__(self) -> None:
        super().__init__(CANCELLED)

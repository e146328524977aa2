"""The JSON structs of a repair."""

from __future__ import annotations

import msgspec

from cardsync.agents.repairs.models import State


class RepairedSelector(msgspec.Struct):
    id: int
    selector: str
    """The selector that finds the element now"""
    confidence: float
    """The repair's confidence, from 0 to 1"""


class CachedRepair(msgspec.Struct, tag_field="status", tag="cached"):
    """The selector was verified before, by this seller or by three other sellers."""

    correction: RepairedSelector


class ProposedRepair(msgspec.Struct, tag_field="status", tag="proposed"):
    """`id` is the heal's ID. After the step worked, confirm with this ID or the correction's ID."""

    id: int
    correction: RepairedSelector


class NoRepair(msgspec.Struct, tag_field="status", tag="gone"):
    """No element of the snippet is similar enough, or two elements are equally similar."""

    id: int
    reason: str


Healed = CachedRepair | ProposedRepair | NoRepair


class ConfirmedRepair(msgspec.Struct):
    id: int


class FailedRepair(msgspec.Struct):
    """`status` is disabled from the third failure on."""

    id: int
    status: State
    """disabled from the third failure on"""
    failures: int

"""Computes the state of each line of a pull queue, and the outcome of each mark, from the marks of
all phones. Pure.

A mark is known by the id that its phone made, so the same mark counts once however often it
arrives. The marks may arrive in any order: an undo that arrives before its mark takes it back all
the same. The first copies that were received fill a line; a copy beyond them is surplus and has to
be put back. No mark is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from cardsync.sales.orders.pull_models import MissingReason

Kind = Literal["pulled", "defer", "missing", "undo"]
KINDS: Final[tuple[Kind, ...]] = ("pulled", "defer", "missing", "undo")
State = Literal["waiting", "deferred", "missing", "pulled", "stopped"]
Outcome = Literal["counted", "surplus", "undone", "gone"]


@dataclass(frozen=True)
class Mark:
    """`undoes` is the id of the mark that an undo takes back; `quantity` is that of a pulled one,
    `reason` that of a missing one.
    """

    id: str
    kind: Kind
    item_id: int
    device: str
    person: str = ""
    quantity: int = 1
    undoes: str = ""
    reason: MissingReason = "not_there"


@dataclass
class Line:
    """`wanted` is zero for a line of an order that is not to be pulled any more."""

    wanted: int
    pulled: int = 0
    surplus: int = 0
    deferred: int = 0
    missing: bool = False
    stopped: bool = False

    @property
    def state(self) -> State:
        if self.stopped:
            return "stopped"
        if self.pulled >= self.wanted:
            return "pulled"
        if self.missing:
            return "missing"
        return "deferred" if self.deferred else "waiting"


@dataclass
class Progress:
    """`surplus` has the copies beyond the wanted ones, by the id of their mark."""

    lines: dict[int, Line]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    surplus: dict[str, int] = field(default_factory=dict)
    by_person: dict[str, int] = field(default_factory=dict)


def undone_by(marks: Iterable[Mark]) -> set[str]:
    """Return the ids of the marks that an undo takes back; an undo itself stays."""
    marks = list(marks)
    undos = {mark.id for mark in marks if mark.kind == "undo"}
    return {mark.undoes for mark in marks if mark.kind == "undo"} - undos


def fold(wanted: Mapping[int, int], stopped: Iterable[int], marks: Iterable[Mark]) -> Progress:
    """Count the marks, in the order in which they were received, on the wanted quantities of the
    lines; a mark on a line that is not there any more stays, and counts nowhere.
    """
    once = list({mark.id: mark for mark in reversed(list(marks))}.values())[::-1]
    ended = set(stopped)
    progress = Progress(
        {
            item: Line(0 if item in ended else quantity, stopped=item in ended)
            for item, quantity in wanted.items()
        }
    )
    undone = undone_by(once)
    for turn, mark in enumerate(once, start=1):
        line = progress.lines.get(mark.item_id)
        if mark.id in undone:
            progress.outcomes[mark.id] = "undone"
        elif line is None:
            progress.outcomes[mark.id] = "gone"
            if mark.kind == "pulled":
                progress.surplus[mark.id] = mark.quantity
        else:
            progress.outcomes[mark.id] = _count(progress, line, mark, turn)
    return progress


def _count(progress: Progress, line: Line, mark: Mark, turn: int) -> Outcome:
    match mark.kind:
        case "pulled":
            counted = min(mark.quantity, line.wanted - line.pulled)
            line.pulled += counted
            line.surplus += mark.quantity - counted
            if counted:
                by = progress.by_person
                by[mark.person] = by.get(mark.person, 0) + counted
            if counted < mark.quantity:
                progress.surplus[mark.id] = mark.quantity - counted
                return "surplus"
        case "defer":
            line.deferred = turn
        case "missing":
            line.missing = True
        case "undo":
            pass
    return "counted"

"""Computes the state of each line of a pull queue, and the outcome of each mark, from the marks of
all phones. Pure.

A mark that arrives several times has the same id and counts once. Marks may arrive in any order: an
undo that arrives before its mark undoes it, too. The marks that arrive first count for a line;
pulled copies beyond the wanted number are surplus and must be returned to the shelf.
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
    """A phone's report about a card: copies were pulled, moved to the end (`defer`) or not found
    (`missing`), or another mark is undone. `undoes` is the id of the undone mark; `quantity` is
    only for `pulled`, and `reason` only for `missing`.
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
    """The counts of a line. `wanted` is zero if its order is no longer to be pulled."""

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
    """The counts of all lines, and the outcomes by mark id. `surplus` is the number of surplus
    copies by mark id.
    """

    lines: dict[int, Line]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    surplus: dict[str, int] = field(default_factory=dict)
    by_person: dict[str, int] = field(default_factory=dict)


def undone_by(marks: Iterable[Mark]) -> set[str]:
    """Return the ids of the marks that have an undo; an undo cannot be undone."""
    marks = list(marks)
    undos = {mark.id for mark in marks if mark.kind == "undo"}
    return {mark.undoes for mark in marks if mark.kind == "undo"} - undos


def fold(wanted: Mapping[int, int], stopped: Iterable[int], marks: Iterable[Mark]) -> Progress:
    """Count the marks, in the order of their arrival, on the lines with their wanted quantities. A
    mark on a removed line has the outcome `gone` and does not count.
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

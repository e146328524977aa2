"""Paces work in the browser as a person would: pauses between actions, and the limits of each wait.

Environment variables CARDSYNC_AGENT_BROWSER_<NAME> override the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from random import Random, SystemRandom
from typing import Any


@dataclass(frozen=True)
class HumanPace:
    """All values but `chance` are in seconds."""

    # The shortest and the longest pause between two actions.
    rest_least: float = 0.6
    rest_most: float = 2.0
    # An element that does not appear within this time is lost.
    element: float = 10.0
    # An optional step whose element does not appear within this time is skipped.
    optional: float = 1.5
    # A marketplace that asks for a longer wait ends the workflow.
    busy_most: float = 120.0
    # The interval between two checks whether the person has signed in.
    turn_look: float = 3.0
    turn_most: float = 1800.0
    chance: Random = field(default_factory=SystemRandom, repr=False, compare=False)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> HumanPace:
        names = [f.name for f in fields(cls) if f.name != "chance"]
        given = {name: environ.get(f"CARDSYNC_AGENT_BROWSER_{name.upper()}") for name in names}
        numbers: dict[str, Any] = {name: float(text) for name, text in given.items() if text}
        return cls(**numbers)

    def rest(self) -> float:
        """Return the seconds until the next action."""
        return self.chance.uniform(self.rest_least, max(self.rest_least, self.rest_most))

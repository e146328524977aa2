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

    rest_least: float = 0.6
    rest_most: float = 2.0
    element: float = 10.0  # an element that does not appear within this time is lost
    optional: float = 1.5  # the same for the element of an optional step
    busy_most: float = 120.0  # a longer Retry-After is left to the caller
    turn_look: float = 3.0  # between checks whether the person has signed in
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

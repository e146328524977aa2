"""Prints the agent's output: a line for people, or one JSON object per event for programs
(--json-events). The events are listed in loop.py.
"""

from __future__ import annotations

import json
from typing import TextIO

from cardsync_agent import clock


class Reporter:
    """A reporter is called: `say("export_saved", "12 prices in ...", path=..., rows=12)`."""

    def __init__(self, out: TextIO, *, json_events: bool = False, quiet: bool = False) -> None:
        self._out, self._json, self._quiet = out, json_events, quiet
        self._standing: dict[str, str] = {}

    def __call__(
        self,
        event: str,
        text: str,
        *,
        problem: bool = False,
        detail: bool = False,
        **fields: object,
    ) -> None:
        """Print an event: a `problem` even when quiet, a `detail` for programs only."""
        if self._json:
            body = {"event": event, "at": clock.rfc3339(clock.now()), "text": text, **fields}
            self._write(json.dumps(body))
        elif not detail and (problem or not self._quiet):
            self._write(f"{clock.for_people(clock.now())}  {text}")

    def standing(
        self, topic: str, event: str, text: str, *, problem: bool = False, **fields: object
    ) -> None:
        """Print a state that lasts, once until it changes, so that a poll every 30 s is not a line
        every 30 s.
        """
        if self._standing.get(topic) != text:
            self._standing[topic] = text
            self(event, text, problem=problem, detail=False, **fields)

    def ended(self, topic: str) -> None:
        """End the topic's state: the next one is news, even if it is the same."""
        self._standing.pop(topic, None)

    def retrying(self, what: str, trouble: Exception, delay: float) -> None:
        text = f"{what}: {trouble}; next try in {delay:.0f} s"
        self(
            "retrying", text, problem=True, what=what, reason=str(trouble), seconds=round(delay, 1)
        )

    def _write(self, line: str) -> None:
        try:
            self._out.write(line + "\n")
            self._out.flush()
        # The reader of our output has gone: the work goes on without an audience.
        except (OSError, ValueError):
            self._quiet = True

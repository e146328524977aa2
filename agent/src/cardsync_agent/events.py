"""Prints the agent's output: a line for people, or one JSON object per event for programs
(--json-events). loop.py lists the events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from cardsync_agent import clock

# A listener gets each event's name, its line, whether it is a problem, and its fields.
Listener = Callable[[str, str, bool, Mapping[str, object]], None]


class Reporter:
    """Prints events. It is called like a function: `say("export_saved", "12 prices in ...",
    path=..., rows=12)`.
    """

    def __init__(
        self, out: TextIO, *, json_events: bool = False, quiet: bool = False, shop: str = ""
    ) -> None:
        """`shop` is named in every line if several shops share the output."""
        self._out, self._json, self._quiet, self._shop = out, json_events, quiet, shop
        self._standing: dict[str, str] = {}
        self._listeners: tuple[Listener, ...] = ()

    @contextmanager
    def heard_by(self, *listeners: Listener) -> Iterator[None]:
        """Also pass every event to these listeners, printed or not."""
        before, self._listeners = self._listeners, (*self._listeners, *listeners)
        try:
            yield
        finally:
            self._listeners = before

    def __call__(
        self,
        event: str,
        text: str,
        *,
        problem: bool = False,
        detail: bool = False,
        **fields: object,
    ) -> None:
        """Print an event: a `problem` even when quiet, a `detail` only for programs."""
        for listener in self._listeners:
            listener(event, text, problem, fields)
        if self._json:
            body = {"event": event, "at": clock.rfc3339(clock.now()), "text": text, **fields}
            self._write(json.dumps(body | ({"shop": self._shop} if self._shop else {})))
        elif not detail and (problem or not self._quiet):
            whose = f"{self._shop}: " if self._shop else ""
            self._write(f"{clock.for_people(clock.now())}  {whose}{text}")

    def standing(
        self, topic: str, event: str, text: str, *, problem: bool = False, **fields: object
    ) -> None:
        """Print a lasting state only when it changes, so that a poll every 30 s does not print a
        line every 30 s.
        """
        if self._standing.get(topic) != text:
            self._standing[topic] = text
            self(event, text, problem=problem, detail=False, **fields)

    def ended(self, topic: str) -> None:
        """End the topic's state, so that the next state is printed even if it is the same. Nothing
        is printed, but the listeners get the event `<topic>_ended`.
        """
        if self._standing.pop(topic, None) is not None:
            for listener in self._listeners:
                listener(f"{topic}_ended", "", False, {})

    def retrying(self, what: str, trouble: Exception, delay: float) -> None:
        text = f"{what}: {trouble}; next try in {delay:.0f} s"
        self(
            "retrying", text, problem=True, what=what, reason=str(trouble), seconds=round(delay, 1)
        )

    def _write(self, line: str) -> None:
        try:
            self._out.write(line + "\n")
            self._out.flush()
        # The program that reads the output has ended: the work continues without output.
        except (OSError, ValueError):
            self._quiet = True

"""Repairs selectors for adapters that work on a marketplace's pages: a step whose selector finds
nothing requests another selector from the server, tries it once, and reports the result. The agent
passes the repairs to its adapter (`Marketplace.use_repairs`); a step whose element stays lost fails
with NotFound's sentence. A step with a post-condition calls `ask`, and reports after the condition
was checked.

Each result is stored first and then sent, so that a kill -9 or an outage loses no result.
`send_waiting` sends the unsent results. The server counts a repeated confirmation once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cardsync_agent import durable
from cardsync_agent.client import Client, Gone, KeyRefused, Lost, Refused, Repair, TryAgain

T = TypeVar("T")
_NAME = "repairs.json"
MOST_ERROR = 500
# The server accepts this much of a page.
MOST_SNIPPET_BYTES = 64_000


class NotFound(Exception):
    """A selector finds no element; the message names it."""


class Repairs:
    def __init__(self, home: Path, client: Client) -> None:
        self._file = home / _NAME
        self._client = client

    def find(
        self,
        look: Callable[[str], T],
        lost: Callable[[], Lost],
        selector: str,
        screenshot: Callable[[], bytes] | None = None,
    ) -> T:
        """Return the result of `look` for the selector or, if that raises NotFound, for the
        server's repair. Raises Refused, or NotFound with the reasons why neither the selector nor a
        repair finds the element.
        """
        try:
            return look(selector)
        except NotFound as missing:
            repair = self.ask(lost(), missing, screenshot)
            try:
                found = look(repair.selector)
            except NotFound as still:
                self.did_not_hold(repair, str(still))
                raise NotFound(f"{missing}; the repair failed too: {still}") from still
            self.held(repair)
            return found

    def ask(
        self, lost: Lost, missing: NotFound, screenshot: Callable[[], bytes] | None = None
    ) -> Repair:
        """Return the server's repair, which is yet to be tried. The caller reports the result by
        `held` or `did_not_hold`. Raises Refused, or NotFound with the reason of `missing` and the
        reason why there is no repair.
        """
        try:
            repair = self._client.heal(_cut(lost), screenshot and screenshot())
        except TryAgain as away:
            raise NotFound(f"{missing}; no repair: {away}") from missing
        if isinstance(repair, Gone):
            raise NotFound(f"{missing}; no repair: {repair.reason}") from missing
        return repair

    def held(self, repair: Repair) -> None:
        """Confirm a repair: the step worked with it."""
        if not repair.known:
            self._tell({"correction_id": repair.correction_id, "selector": repair.selector})

    def did_not_hold(self, repair: Repair, error: str) -> None:
        self._tell({"correction_id": repair.correction_id, "error": error[:MOST_ERROR]})

    def waiting(self) -> list[dict[str, Any]]:
        """Return the unsent outcomes, oldest first."""
        try:
            told: list[dict[str, Any]] = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return []
        return told

    def send_waiting(self) -> int:
        """Send the unsent outcomes; return how many are left because the server is unavailable."""
        waiting = self.waiting()
        while waiting:
            try:
                self._send(waiting[0])
            except TryAgain:
                return len(waiting)
            except KeyRefused:
                raise
            except Refused:
                # The server dropped the correction: there is nothing left to report.
                pass
            waiting = waiting[1:]
            durable.write(self._file, json.dumps(waiting).encode())
        return 0

    def _tell(self, outcome: dict[str, Any]) -> None:
        durable.write(self._file, json.dumps([*self.waiting(), outcome]).encode())
        self.send_waiting()

    def _send(self, outcome: dict[str, Any]) -> None:
        correction_id = int(outcome["correction_id"])
        if "selector" in outcome:
            self._client.confirm_repair(correction_id, str(outcome["selector"]))
        else:
            self._client.report_failed_repair(correction_id, str(outcome["error"]))


def _cut(lost: Lost) -> Lost:
    content = lost.dom_snippet.encode()[:MOST_SNIPPET_BYTES].decode(errors="ignore")
    return Lost(lost.workflow, lost.step_name, lost.selector, lost.page_url, content)

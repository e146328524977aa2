"""Delivers the one upload that a seller approves in the dashboard: the newest saved price file is
sent to the marketplace, once, whatever the sync mode.

The file is delivered, then the heartbeat's flag `upload_approved` is cleared. Each stage is
journaled, so that a kill -9 anywhere neither loses nor repeats it. Two installations of one seller
that see the flag at about the same time may each deliver their own newest file: the protocol has no
claim, and the first DELETE stops only installations that have not begun.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cardsync_agent import clock
from cardsync_agent.card_failures import CardFailures, without_cards
from cardsync_agent.client import KeyRefused, Refused
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace import Marketplace, NotTaken
from cardsync_agent.repairs import NotFound
from cardsync_agent.state import Approved, Store
from cardsync_agent.step_ends import StepFailed

_NAME = re.compile(r"price-updates-(\d{8}T\d{6}Z)(?:-(\d+))?\.csv")
_TOPIC = "approval"


# The longest pause before a delivery is tried again, in seconds.
_MOST_REST = 900.0


@dataclass
class Backoff:
    """The waiting time after failed deliveries: each failure of the same file doubles it."""

    file: str = ""
    failures: int = 0
    ends: float = 0.0

    def begin(self, file: str, first: float) -> float:
        """Begin the waiting time and return its seconds."""
        self.failures = self.failures + 1 if file == self.file else 1
        seconds = min(first * 2.0**self.failures, _MOST_REST)
        self.file, self.ends = file, clock.monotonic() + seconds
        return seconds

    def holds(self, file: str) -> bool:
        return file == self.file and clock.monotonic() < self.ends

    def end(self) -> None:
        self.file, self.failures = "", 0


class _TakenBack(StepFailed):
    """The seller took the approval back before a batch."""


@dataclass(frozen=True)
class ApprovedUpload:
    store: Store
    market: Marketplace
    exports: Path
    # Calls DELETE /sync/approve_upload until the server answers.
    clear: Callable[[], None]
    # Reports the prices that an adapter has published by itself.
    report: Callable[[Path, frozenset[int]], object]
    report_part: Callable[[Path, StepFailed], object]
    still_approved: Callable[[], bool]
    say: Reporter
    # The seconds between two heartbeats.
    interval: float
    _backoff: Backoff = field(default_factory=Backoff)

    def honour(self, approved: bool) -> None:
        """Deliver an approved upload, or continue an unfinished delivery; without an approval, end
        the unfinished delivery.
        """
        if not approved:
            self._backoff.end()
            self._end_without_flag()
            return
        begun = self._begun()
        if begun is None:
            text = (
                "an upload is approved, but exports/ holds no price file yet;"
                " the next one will be taken"
            )
            self.say.standing(_TOPIC, "approval_waits", text, problem=True)
            return
        # During the waiting time nothing is journaled, so that a newer price file may replace this
        # file.
        if self._backoff.holds(begun.file):
            return
        if self.store.memory.approved is None:
            self.store.memory.approved = begun
            self.store.save()
        try:
            self._deliver(begun)
        except NotTaken as refused:
            # The approval is used up: the refused cards are counted, and the person decides.
            self.report_part(self.exports / begun.file, refused)
            self.say.standing(_TOPIC, "problem", f"the approved upload: {refused}", problem=True)
            begun.placed = True
        except _TakenBack as gone:
            self.report_part(self.exports / begun.file, gone)
            self._end_without_flag()
            return
        except (OSError, NotFound, StepFailed) as trouble:
            # A file or an element of a page is missing, or the disk is full: the delivery is tried
            # again, by the folder adapter at the next heartbeat.
            again = ""
            if self.market.publishes:
                rest = self._backoff.begin(begun.file, self.interval)
                again = f"; it is tried again in {clock.span(rest)}"
            if not begun.staged:
                self._forget()
            text = f"the approved upload could not be done: {trouble}{again}"
            self.say.standing(_TOPIC, "problem", text, problem=True)
            return
        self._clear(begun)

    def _begun(self) -> Approved | None:
        """Return the upload that has begun, or a new one of the newest price file."""
        newest = newest_export(self.exports)
        return self.store.memory.approved or (Approved(newest.name) if newest else None)

    def _deliver(self, begun: Approved) -> None:
        prices = self.exports / begun.file
        if self.market.publishes and self._is_there(prices):
            begun.placed = True
        if begun.placed:
            return
        if not begun.staged:
            self.market.begin_cycle()

        def note_staged() -> None:
            begun.staged = True
            self.store.save()

        def go_on() -> None:
            if self.market.publishes and not self.still_approved():
                raise _TakenBack("the approval was taken back")

        paused = CardFailures(self.store.home).paused()
        target = self.market.import_prices(
            prices,
            lambda content: without_cards(content, paused)[0],
            staged=begun.staged,
            go_on=go_on,
            note_staged=note_staged,
        )
        if self.market.publishes:
            self.report(prices, paused)
            self.store.memory.remember_placed(_sha256(prices), begun.file)
        begun.placed = True
        self.store.save()
        text = f"the upload that you approved: placed {begun.file} in {target.parent}"
        self.say("approved_upload", text, file=begun.file, path=str(target))

    def _is_there(self, prices: Path) -> bool:
        """Return whether a sync has published the file already: a second publication would add the
        file's new stock twice.
        """
        return self.store.memory.has_placed(_sha256(prices))

    def _clear(self, begun: Approved) -> None:
        try:
            self.clear()
        except KeyRefused:
            raise
        except Refused as refused:
            # The journal marks the upload as placed, so it is not repeated while the flag remains
            # set.
            text = (
                f"{begun.file} is uploaded, but the server does not let its approval be cleared:"
                f" {refused}"
            )
            self.say.standing(_TOPIC, "problem", text, problem=True)
            return
        self._forget()
        self.say.ended(_TOPIC)

    def _end_without_flag(self) -> None:
        """End an upload whose flag is cleared: this agent cleared the flag before it was killed,
        another installation cleared it, or the seller took the approval back.
        """
        begun = self.store.memory.approved
        if begun is None:
            self.say.ended(_TOPIC)
            return
        self._forget()
        if not (
            begun.placed or self.market.has_imported(self.exports / begun.file, staged=begun.staged)
        ):
            self.say(
                "approval_gone",
                f"the approval to upload {begun.file} is gone; it is left as it is",
                file=begun.file,
            )

    def _forget(self) -> None:
        self.store.memory.approved = None
        self.store.save()


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def newest_export(exports: Path) -> Path | None:
    """Find the newest file by the time in its name, which a backup or a copy does not change."""
    files = exports.glob("price-updates-*.csv")
    found = [
        (match[1], int(match[2] or 1), path)
        for path in files
        if (match := _NAME.fullmatch(path.name))
    ]
    return max(found)[2] if found else None

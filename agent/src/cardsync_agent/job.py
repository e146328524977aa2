"""Defines the Job that each step of a cycle gets. It makes calls that survive outages, and checks
whether the server still wants the cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from cardsync_agent import clock
from cardsync_agent.client import Client, Decision, Heartbeat, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace import Marketplace
from cardsync_agent.pace import Pace, Stop, now_and_then, persist
from cardsync_agent.state import Cycle, Store
from cardsync_agent.step_ends import Cancelled, CycleOver

T = TypeVar("T")


@dataclass
class Job:
    cycle: Cycle
    store: Store
    client: Client
    market: Marketplace
    folder: Path
    say: Reporter
    pace: Pace
    stop: Stop
    beat: Callable[[], Heartbeat]
    ask: Callable[[], Decision]
    patience: float | None
    # When the server last answered that this agent holds the lock.
    heard: clock.Mark
    # Whether the marketplace stays unchanged, whatever the mode, and the prices are downloaded
    # again in the next cycle.
    review: bool = False
    # A sentence that a successful step adds to its record.
    note: str | None = None

    def call(
        self, what: str, make: Callable[[], T], patience: float | None = None, *, aging: bool = True
    ) -> T:
        """Call the server, and repeat the call during outages; with `aging`, end the cycle when it
        is too old.
        """

        def on_retry(trouble: TryAgain, delay: float) -> None:
            if aging:
                self.check_age()
            self.say.retrying(what, trouble, delay)

        return persist(
            make, self.pace, self.stop, on_retry, self.patience if patience is None else patience
        )

    def check_age(self) -> None:
        age = clock.now() - clock.read_rfc3339(self.cycle.started_at)
        if age > timedelta(seconds=self.pace.cycle_expires):
            raise CycleOver(
                f"abandoned: not finished within {self.pace.cycle_expires / 3600:.0f} h"
            )

    def exports(self) -> Path:
        return self.folder / "exports"

    def check_wanted(self) -> None:
        """Raise CycleOver if the server no longer waits for this cycle; called before each further
        piece of work. A task is not checked, because its claim expires by itself.
        """
        if self.cycle.task is not None:
            return
        what = "asking whether the sync is still wanted"
        if not self.cycle.handed_over:
            self.call(what, self._check_wanted)
        elif self.market.publishes:
            self.call(what, self._check_not_cancelled)

    def _check_not_cancelled(self) -> None:
        """Raise if the cycle was cancelled. The upload's record has the cycle's state. A missing
        lock proves nothing, because the server also clears the lock after pricing the upload.
        """
        upload_id = self.cycle.upload_id
        if upload_id and self.client.upload(upload_id).get("cycle_cancelled") is True:
            raise Cancelled

    def _check_wanted(self) -> None:
        # After 300 s of silence the server drops the lock by itself, so only a missing lock after a
        # shorter silence proves a cancel.
        if self.heard.is_within(self.pace.lock_lives):
            # The agent requests the status and does not poll: without the lock, a poll would take
            # the lock for a new cycle.
            if self.client.status().get("sync_in_progress") is not True:
                raise Cancelled
            return
        self._poll_wanted()

    def _poll_wanted(self) -> None:
        # The mark is set before the call, because the computer may sleep during it.
        asked = clock.mark()
        decision = self.ask()
        if decision.action != "sync" or decision.plan_error:
            raise CycleOver(
                f"interrupted, and not wanted any more: {decision.plan_error or decision.reason}"
            )
        self.cycle.reason = decision.reason
        self.heard = asked

    def while_sending(self) -> Callable[[], None]:
        """Return a function to call between the parts of long work: it sends heartbeats, keeps the
        lock fresh and, until the server has the upload, notices a cancel.
        """

        def look() -> None:
            self.beat()
            if not self.cycle.handed_over and self.cycle.task is None:
                self._check_wanted()
                # Unlike the status, a poll of the lock's holder refreshes the lock.
                self._poll_wanted()

        return now_and_then(self.pace, self.stop, look)


def worked_off(
    job: Job,
    what: str,
    ask: Callable[[], dict[str, Any]],
    at_work: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Return an upload's report once the server has finished it; the requests become less and less
    frequent. The requests keep the sync lock fresh, and the heartbeats show that the agent is
    running. `at_work` gets each unfinished report.
    """
    pause, spoken = job.pace.poll_first, clock.monotonic()
    while True:
        report = job.call(what, ask)
        if report.get("state") not in ("queued", "processing"):
            return report
        job.check_age()
        if clock.monotonic() - spoken >= job.pace.interval:
            spoken = clock.monotonic()
            job.call("heartbeat", job.beat)
            at_work(report)
        job.stop.sleep(pause)
        pause = min(pause * 1.5, job.pace.poll_most)

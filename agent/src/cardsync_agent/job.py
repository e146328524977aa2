"""A cycle at work: what every step gets, how a step says that it failed or had nothing to do, and
whether the cycle is still wanted.

In: the journaled cycle and the doors to server, folder and people. Out: calls that survive
outages; StepFailed, StepSkipped, CycleOver.
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
from cardsync_agent.pace import Pace, Stop, persist
from cardsync_agent.state import Cycle, Store

T = TypeVar("T")
CANCELLED = "cancelled by the seller"


class StepFailed(Exception):
    """The message is what the server's log and the person read."""


class StepSkipped(Exception):
    """Nothing to do, for the reason given."""


class NothingThere(StepSkipped):
    """The marketplace has nothing for this step, so that it is left undone."""


class CycleOver(StepFailed):
    """Nothing more of this cycle is done, not even what does not hang on this step."""


class Cancelled(CycleOver):
    """The seller cancelled the sync."""

    def __init__(self) -> None:
        super().__init__(CANCELLED)


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
    heard: clock.Mark  # when the server last named us the lock's holder

    def call(
        self, what: str, make: Callable[[], T], patience: float | None = None, *, aging: bool = True
    ) -> T:
        """One server call, repeated over outages; with `aging` not beyond the cycle's life."""

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
        """Before the next thing is done: raises CycleOver if the server waits for this cycle no
        more.
        """
        if not self.cycle.handed_over:
            self.call("asking whether the sync is still wanted", self._check_wanted)

    def _check_wanted(self) -> None:
        # After 300 s in silence the server lets go of the lock by itself, so only the shorter
        # silence proves a cancel.
        if self.heard.is_within(self.pace.lock_lives):
            # The status and not the poll: with the lock gone, a poll would take it again for a
            # new cycle.
            if self.client.status().get("sync_in_progress") is not True:
                raise Cancelled
            return
        self._poll_wanted()

    def _poll_wanted(self) -> None:
        asked = clock.mark()  # and not when the answer is read: the computer may sleep in between
        decision = self.ask()
        if decision.action != "sync" or decision.plan_error:
            raise CycleOver(
                f"interrupted, and not wanted any more: {decision.plan_error or decision.reason}"
            )
        self.cycle.reason = decision.reason
        self.heard = asked

    def while_sending(self) -> Callable[[], None]:
        """To call between the parts of a long upload: keeps presence and lock fresh, and notices
        a cancel.
        """
        last = clock.monotonic()

        def between() -> None:
            nonlocal last
            self.stop.check()
            if clock.monotonic() - last < self.pace.interval:
                return
            last = clock.monotonic()
            try:
                self.beat()
                self._check_wanted()
                self._poll_wanted()  # unlike the status, a poll of the lock's holder refreshes the lock
            except TryAgain:  # the upload itself tells whether the network is there
                return

        return between


def worked_off(
    job: Job,
    what: str,
    ask: Callable[[], dict[str, Any]],
    at_work: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """An upload's report once the server has worked it off, asked for ever more slowly. The
    asking keeps the sync lock fresh, the heartbeat the agent's presence; `at_work` is told of the
    report as often as that."""
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

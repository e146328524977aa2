"""The agent's life: heartbeat, poll, run the cycle that the server asks for, report it, again. In: the Agent's parts. Out: an exit code.

Events, as `--json-events` prints them, one object a line; each has `event`, `at` (RFC 3339) and `text` (the line for people):

    started          version, server, folder, agent_id      | connected        sync_mode (first, and when it changes)
    waiting          reason, sync_requested                 | update_available latest_version
    update_required  latest_version                         | cooldown         seconds
    update_ready     latest_version, path, sha256           | update_refused   latest_version, reason
    update_command   command                                | update_command_ended exit_code
    cycle_started    sync_cycle_id, kind, reason, resumed   | cycle_finished   sync_cycle_id, status, duration_ms, error, steps
    step_started     step                                   | step_finished    step, status, duration_ms, error
    inventory_found  path, sha256, bytes, exported_at       | uploaded         upload_id
    upload_progress  state                                  | upload_done      report (GET uploads/{id})
    review_needed    report                                 | export_saved     path, rows
    export_empty     reasons                                | prices_placed    path, rows
    retrying         what, reason, seconds                  | refused          status, code
    problem          (text says it)                         | stopped
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cardsync_agent import __version__, clock
from cardsync_agent.client import Client, Decision, Heartbeat, KeyRefused, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace import Marketplace
from cardsync_agent.pace import GaveUp, Pace, Stop, Stopped, persist
from cardsync_agent.state import Cycle, StateProblem, StepRecord, Store
from cardsync_agent.steps import STEPS, Job, StepFailed, StepSkipped, begin
from cardsync_agent.updates import Updates

T = TypeVar("T")
PLATFORM = f"{platform.system()}/{platform.machine()}".lower()
WAIT_TEXTS = {
    "no_sync_needed": "no sync is needed now",
    "in_progress": "a sync is in progress already",
    "auto_sync_paused": "automatic sync is paused in the account",
}


class Agent:
    def __init__(
        self,
        client: Client,
        store: Store,
        market: Marketplace,
        folder: Path,
        say: Reporter,
        pace: Pace,
        stop: Stop,
        updates: Updates,
        *,
        once: bool,
    ) -> None:
        self._client, self._store, self._market, self._folder = client, store, market, folder
        self._say, self._pace, self._stop, self._once = say, pace, stop, once
        self._updates = updates
        self._mode: str | None = None
        self._told: str | None = (
            None  # the last standing state told, so that a poll every 30 s is not a line every 30 s
        )

    def run(self) -> int:
        """Until a signal comes."""
        try:
            while True:
                self._stop.sleep(self._turn())
        except Stopped:
            self._say("stopped", "stopped")
            return 0

    def once(self, request: str | None) -> int:
        """One question to the server, and the cycle it asks for; first what an earlier run left unfinished."""
        try:
            heartbeat = self._contact()
            self._updates.consider(heartbeat)
            if heartbeat.force_update:
                return 1
            status = self._resume()
            if request and not self._request(request):
                return 0
            status = self._ask_and_work(heartbeat) or status
            return 1 if status == "failed" else 0
        except Stopped:
            self._say("stopped", "stopped")
            return 0
        except Refused as refused:
            return self._refused(refused)
        except GaveUp as gave_up:
            kept = "; the next start goes on where this one stopped" if self._store.memory.cycle else ""
            self._say("problem", f"giving up: {gave_up}{kept}", problem=True)
            return 1

    def _turn(self) -> float:
        """One round of the loop; returns how long to rest."""
        try:
            heartbeat = self._contact()
            if not heartbeat.force_update:
                self._resume()
                self._ask_and_work(heartbeat)
            self._updates.consider(heartbeat)
            return self._pace.interval
        except Refused as refused:
            self._refused(refused)
            return self._pace.refused

    def _contact(self) -> Heartbeat:
        heartbeat = self._call("heartbeat", self._beat)
        if heartbeat.force_update:
            text = "this version of the agent must be updated before it may sync again"
            self._tell("update_required", text, latest_version=heartbeat.latest_version)
        return heartbeat

    def _beat(self) -> Heartbeat:
        heartbeat = self._client.heartbeat(__version__, PLATFORM)
        if heartbeat.sync_mode != self._mode:
            self._mode = heartbeat.sync_mode
            meaning = "prices go to outbox" if self._mode == "full" else "prices are only saved"
            self._say("connected", f"connected, sync mode {self._mode} ({meaning})", sync_mode=self._mode)
        return heartbeat

    def _request(self, kind: str) -> bool:
        """Ask for a manual sync; False if the server wants the seller to wait."""
        try:
            self._call("requesting a sync", lambda: self._client.request_sync(kind))
        except Refused as refused:
            if refused.code != "cooldown":
                raise
            seconds = refused.wait_seconds or 0
            self._say("cooldown", f"the server wants {seconds} s of rest before the next manual sync", seconds=seconds)
            return False
        return True

    def _ask_and_work(self, heartbeat: Heartbeat) -> str | None:
        """Poll; the finished cycle's status, or None if told to wait."""
        decision = self._ask()
        if decision.action == "sync" and decision.plan_error:
            # No lock was taken, so there is no cycle to run or to report.
            self._tell("problem", f"the server's plan cannot be followed: {decision.plan_error}")
            return "failed"
        if decision.action != "sync":
            why = WAIT_TEXTS.get(decision.reason, decision.reason)
            self._tell("waiting", f"waiting: {why}", reason=decision.reason, sync_requested=decision.sync_requested)
            return None
        cycle = begin(decision, heartbeat.sync_mode, clock.now())
        self._store.memory.cycle = cycle
        self._store.save()
        return self._work_off(cycle, resumed=False)

    def _ask(self) -> Decision:
        return self._call("asking what to do", lambda: self._client.pending(self._store.memory.agent_id))

    def _resume(self) -> str | None:
        """Finish the cycle that a kill, a stop or an outage interrupted."""
        cycle = self._store.memory.cycle
        if cycle is None:
            return None
        if cycle.status is None and cycle.failure is None and cycle.nothing_sent:
            self._check_still_wanted(cycle)
        return self._work_off(cycle, resumed=True)

    def _check_still_wanted(self, cycle: Cycle) -> None:
        """Nothing was uploaded yet: the server may have given the cycle up since, or the seller cancelled it."""
        decision = self._ask()
        if decision.action == "sync":
            cycle.reason = decision.reason
            return
        step = next((name for name in cycle.planned if name not in cycle.steps_done), None)
        if step is not None:
            cycle.steps.append(
                StepRecord(step, "failed", 0, f"interrupted, and not wanted any more: {decision.reason}")
            )

    def _work_off(self, cycle: Cycle, *, resumed: bool) -> str:
        job = self._job(cycle)
        self._told = None
        verb = "resuming" if resumed else "starting"
        self._say(
            "cycle_started",
            f"{verb} a {cycle.kind} sync ({cycle.reason.replace('_', ' ')})",
            sync_cycle_id=cycle.sync_cycle_id,
            kind=cycle.kind,
            reason=cycle.reason,
            resumed=resumed,
        )
        for name in cycle.planned:
            if name not in cycle.steps_done:
                cycle.steps.append(self._step(job, name))
                self._store.save()
        return self._finish(job)

    def _job(self, cycle: Cycle) -> Job:
        return Job(
            cycle=cycle,
            store=self._store,
            client=self._client,
            market=self._market,
            folder=self._folder,
            say=self._say,
            pace=self._pace,
            stop=self._stop,
            beat=self._beat,
            patience=self._pace.patience if self._once else None,
        )

    def _step(self, job: Job, name: str) -> StepRecord:
        if job.cycle.failure is not None:
            return StepRecord(name, "skipped", 0, "an earlier step failed")
        if name not in STEPS:
            return StepRecord(name, "skipped", 0, "this version of the agent does not do this step")
        self._say("step_started", name.replace("_", " "), detail=True, step=name)
        began = clock.monotonic()
        status, error = _outcome(job, STEPS[name])
        record = StepRecord(name, status, round((clock.monotonic() - began) * 1000), error)
        text = f"{name.replace('_', ' ')}: {status}" + (f" ({error})" if error else "")
        self._say(
            "step_finished",
            text,
            problem=status == "failed",
            detail=error is None,
            step=name,
            status=status,
            duration_ms=record.duration_ms,
            error=error,
        )
        return record

    def _finish(self, job: Job) -> str:
        """Report the cycle until the server has it, then forget it. The same sync_cycle_id again updates the same row."""
        cycle = job.cycle
        if cycle.status is None:
            took = clock.now() - clock.read_rfc3339(cycle.started_at)
            cycle.status, cycle.duration_ms = verdict(cycle), max(0, round(took.total_seconds() * 1000))
            self._store.save()
        try:
            job.call("reporting the cycle", lambda: self._client.log(report_of(cycle)), aging=False)
        except KeyRefused:
            raise
        except Refused as refused:  # it would be refused for ever
            self._say("problem", f"the server does not take the report of the cycle: {refused}", problem=True)
        self._store.memory.cycle = None
        self._store.save()
        self._store.spool.unlink(missing_ok=True)
        self._say(
            "cycle_finished",
            f"sync {cycle.status} after {cycle.duration_ms / 1000:.1f} s"
            + (f": {cycle.failure}" if cycle.failure else ""),
            problem=cycle.status != "success",
            sync_cycle_id=cycle.sync_cycle_id,
            status=cycle.status,
            duration_ms=cycle.duration_ms,
            error=cycle.failure,
            steps=report_of(cycle)["steps"],
        )
        return cycle.status

    def _refused(self, refused: Refused) -> int:
        advice = " - is the key right?" if refused.status == 401 else ""
        text = f"the server refuses ({refused.status}): {refused}{advice}"
        self._tell("refused", text, status=refused.status, code=refused.code)
        return 1

    def _call(self, what: str, make: Callable[[], T]) -> T:
        def on_retry(trouble: TryAgain, delay: float) -> None:
            self._say.retrying(what, trouble, delay)

        return persist(make, self._pace, self._stop, on_retry, self._pace.contact if self._once else None)

    def _tell(self, event: str, text: str, **fields: object) -> None:
        """Say a standing state once, until it changes."""
        if text != self._told:
            self._told = text
            self._say(event, text, problem=event != "waiting", detail=False, **fields)


def _outcome(job: Job, step: Callable[[Job], None]) -> tuple[str, str | None]:
    """Run one step: its status and its error. What only interrupts the cycle (signals, outages, the key) goes through."""
    try:
        job.check_age()
        step(job)
    except (Stopped, GaveUp, KeyRefused, StateProblem):
        raise
    except StepSkipped as skipped:
        return "skipped", str(skipped)
    except (StepFailed, Refused, OSError) as failed:
        return "failed", str(failed)
    except Exception as bug:  # a cycle always ends in a report; without this the agent would die on it at every start
        return "failed", f"internal error: {type(bug).__name__}: {bug}"
    return "success", None


def verdict(cycle: Cycle) -> str:
    """success: every step done or nothing to do; partial: the inventory was imported, what follows was not; else failed."""
    if cycle.failure is None:
        return "partial" if cycle.needs_review else "success"
    return "partial" if cycle.imported else "failed"


def report_of(cycle: Cycle) -> dict[str, object]:
    """The body of POST /sync/log."""
    return {
        "status": cycle.status,
        "sync_cycle_id": cycle.sync_cycle_id,
        "steps": [
            {"name": step.name, "status": step.status, "duration_ms": step.duration_ms, "error": step.error}
            for step in cycle.steps
        ],
        "agent_version": __version__,
        "platform": PLATFORM,
        "duration_ms": cycle.duration_ms,
        "started_at": cycle.started_at,
    }

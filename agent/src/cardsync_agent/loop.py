"""Runs the agent: it sends a heartbeat, polls, runs the cycle that the server wants, reports it,
and begins again.

`--json-events` prints these events, one object a line; each has `event`, `at` (RFC 3339) and
`text` (the line for people):

    started               version, server, folder, agent_id
    connected             sync_mode (the first time, and when it changes)
    waiting               reason, sync_requested
    paused                reason (paused, quiet_hours), until (null: until resumed)
    update_available      latest_version
    update_required       latest_version
    update_ready          latest_version, path, sha256
    update_refused        latest_version, reason
    update_command        command
    update_command_ended  exit_code
    cooldown              seconds, balance, top_up_url (null on 429)
    plan_refused          error (the server wants a sync, but no plan fits)
    approved_upload       file, path (the upload approved in the dashboard)
    approval_waits        (there is no price file to upload yet)
    approval_gone         file (the approval was taken back, or honoured elsewhere)
    cycle_started         sync_cycle_id, kind, reason, resumed
    cycle_finished        sync_cycle_id, status, duration_ms, error, steps
    step_started          step
    step_finished         step, status, duration_ms, error
    inventory_found       path, sha256, bytes, exported_at
    uploaded              upload_id
    upload_progress       state
    upload_done           report (GET uploads/{id})
    review_needed         report
    export_saved          path, rows
    export_empty          reasons
    prices_placed         path, rows
    prices_published      file, rows (a batch is in the marketplace)
    prices_reported       path
    cards_gone            cards (not in the marketplace's export any more)
    your_turn             kind, url (the browser waits for its person)
    rows_sent             kind, path, rows, older, upload_ids
    rows_unreadable       kind, path, count, problems
    pack_fetched          marketplace, locale, version
    pack_refused          marketplace, locale, reason
    cards_paused          cards (left out: the marketplace refused each three times)
    sales_report_sent     month, empty
    task_started          task_id, kind, attempt, resumed
    task_ended            task_id, kind, status, error
    retrying              what, reason, seconds
    refused               status, code
    problem               (its text says it)
    stopped
    shop_ended            ended, exit_code, seconds (its process; it is started again)

With several shops in one agent each event names its `shop`. A lasting state (waiting, paused,
update_required, plan_refused, approval_waits, refused) is reported once, until it changes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, UnsetType

from cardsync_agent import __version__, clock
from cardsync_agent.approved import ApprovedUpload
from cardsync_agent.client import (
    Client,
    Cooldown,
    Decision,
    Heartbeat,
    KeyRefused,
    PersonsTurn,
    Refused,
    TryAgain,
)
from cardsync_agent.events import Reporter
from cardsync_agent.job import Job
from cardsync_agent.marketplace import Marketplace
from cardsync_agent.one_step import run_step, send_pictures
from cardsync_agent.pace import GaveUp, Pace, Stop, Stopped, now_and_then, persist, spread
from cardsync_agent.prices import report_published, report_unfinished
from cardsync_agent.repairs import Repairs
from cardsync_agent.report import is_problem, line_of, report_of, trouble_of, verdict
from cardsync_agent.shops.rest import Rest
from cardsync_agent.state import Claim, Cycle, StepRecord, Store
from cardsync_agent.step_ends import StepFailed
from cardsync_agent.steps import begin
from cardsync_agent.tasks import CAPABILITIES, TASK_KINDS, begin_task, line_of_task, outcome_of
from cardsync_agent.updates import Updates

T = TypeVar("T")
PLATFORM = f"{platform.system()}/{platform.machine()}".lower()
# After this many tasks the agent polls again, so that a long queue does not delay a sync.
MOST_TASKS = 10
WAIT_TEXTS = {
    "no_sync_needed": "no sync is needed now",
    "in_progress": "a sync is in progress already",
    "auto_sync_paused": "automatic sync is paused in the account",
}


class Resting(Exception):
    """The shop rests: unfinished work is journaled, and continues afterwards."""

    def __init__(self, rest: Rest) -> None:
        super().__init__(rest.text)
        self.rest = rest


@dataclass(frozen=True)
class Watch:
    """The environment of the loop. `polled` is called when the server has answered, and `resting`
    with the seconds that the loop sleeps; `rest` returns whether the shop rests. In `review`
    nothing is changed at the marketplace, whatever the account's mode.
    """

    polled: Callable[[], None] = lambda: None
    resting: Callable[[float], None] = lambda seconds: None
    rest: Callable[[], Rest | None] = lambda: None
    review: bool = False


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
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch or Watch()
        self._client, self._store, self._market, self._folder = client, store, market, folder
        self._say, self._pace, self._stop, self._once = say, pace, stop, once
        self._updates = updates
        self._mode: str | None = None
        self._repairs = Repairs(store.home, client)
        market.use_repairs(self._repairs)
        clear = lambda: self._call("clearing the approval", client.clear_approval)  # noqa: E731

        def report(prices: Path, paused: frozenset[int]) -> None:
            left = market.left_out(prices)
            work = partial(report_published, client, store.home, prices, paused, left)
            self._call("reporting the prices", work)

        def report_part(prices: Path, ended: StepFailed) -> None:
            published = market.published(prices)
            work = partial(report_unfinished, client, store.home, prices, published, ended)
            self._call("reporting what was published", work)

        self._approved = ApprovedUpload(
            store, market, folder / "exports", clear, report, report_part, self._is_approved, say,
            pace.interval,
        )  # fmt: skip

    def run(self) -> int:
        """Run until a signal arrives."""
        try:
            while True:
                seconds = spread(self._turn())
                self._watch.resting(seconds)
                self._stop.sleep(seconds)
        except Stopped:
            self._say("stopped", "stopped")
            return 0

    def once(self, request: str | None) -> int:
        """Finish the work that an earlier run left, ask the server once, and run the cycle that it
        wants.
        """
        try:
            heartbeat = self._contact()
            self._updates.consider(heartbeat)
            if heartbeat.force_update:
                return 1
            self._check_rest()
            if self._watch.review and self._store.memory.cycle is not None:
                self._say(
                    "problem", "an earlier sync is unfinished: the sync app's next run ends it"
                )
                return 0
            self._honour(heartbeat)
            status = self._resume(heartbeat)
            if request and not self._request(request):
                return 0
            status = self._ask_and_work(heartbeat) or status
            ended = (status, self._work_off_tasks(heartbeat))
            return 1 if "failed" in ended else 0
        except Stopped:
            self._say("stopped", "stopped")
            return 0
        except Resting as resting:
            self._say_resting(resting.rest)
            return 0
        except Refused as refused:
            return self._refused(refused)
        except GaveUp as gave_up:
            kept = (
                "; the next start goes on where this one stopped"
                if self._store.memory.cycle
                else ""
            )
            self._say("problem", f"giving up: {gave_up}{kept}", problem=True)
            return 1

    def _turn(self) -> float:
        """Run one round of the loop; return how long to sleep."""
        try:
            heartbeat = self._contact()
            if not heartbeat.force_update:
                self._work(heartbeat)
            self._updates.consider(heartbeat)
            return self._pace.interval
        except Refused as refused:
            self._refused(refused)
            return self._pace.refused

    def _work(self, heartbeat: Heartbeat) -> None:
        try:
            self._check_rest()
            self._honour(heartbeat)
            self._resume(heartbeat)
            self._ask_and_work(heartbeat)
            self._work_off_tasks(heartbeat)
        except Resting as resting:
            self._say_resting(resting.rest)

    def _honour(self, heartbeat: Heartbeat) -> None:
        """Deliver an approved upload, but not while an import of a cycle is unfinished, because
        there is only one journal of imports.
        """
        if not (self._market.publishes and self._store.memory.cycle is not None):
            # Replace the last cycle's function, which would check whether that cycle is still
            # wanted.
            self._market.keep_alive(now_and_then(self._pace, self._stop, self._beat))
            self._approved.honour(heartbeat.upload_approved)

    def _is_approved(self) -> bool:
        return self._call("heartbeat", self._beat).upload_approved

    def _check_rest(self) -> None:
        if (rest := self._watch.rest()) is not None:
            raise Resting(rest)

    def _say_resting(self, rest: Rest) -> None:
        until = None if rest.until is None else clock.rfc3339(rest.until)
        self._tell("paused", rest.text, reason=rest.reason, until=until)

    def _contact(self) -> Heartbeat:
        heartbeat = self._call("heartbeat", self._beat)
        # The outcomes of repairs are reported as soon as the server answers, before the next cycle.
        self._repairs.send_waiting()
        if heartbeat.force_update:
            text = "this version of the sync app must be updated before it may sync again"
            self._tell("update_required", text, latest_version=heartbeat.latest_version)
        return heartbeat

    def _beat(self) -> Heartbeat:
        heartbeat = self._client.heartbeat(__version__, PLATFORM, self._turn_of_person())
        self._watch.polled()
        if self._watch.review:
            # An approved upload and tasks wait for the agent's first run after the review.
            heartbeat = replace(
                heartbeat, sync_mode="read_only", upload_approved=False, has_pending_tasks=False
            )
        if heartbeat.sync_mode != self._mode:
            self._mode = heartbeat.sync_mode
            goal = "the marketplace" if self._market.publishes else "outbox"
            meaning = f"prices go to {goal}" if self._mode == "full" else "prices are only saved"
            self._say(
                "connected", f"connected, sync mode {self._mode} ({meaning})", sync_mode=self._mode
            )
        return heartbeat

    def _turn_of_person(self) -> PersonsTurn | UnsetType | None:
        """Return the person's turn; only an agent that drives a browser reports a turn."""
        if not self._market.publishes:
            return UNSET
        rest = self._watch.rest()
        paused = rest is not None and rest.reason == "paused"
        return PersonsTurn("paused") if paused else self._market.turn()

    def _request(self, kind: str) -> bool:
        """Request a manual sync; return False if the server wants the seller to wait."""
        try:
            self._call("requesting a sync", lambda: self._client.request_sync(kind))
        except Cooldown as cooldown:
            self._say(
                "cooldown",
                str(cooldown),
                problem=True,
                seconds=cooldown.seconds,
                balance=cooldown.balance,
                top_up_url=cooldown.top_up_url,
            )
            return False
        return True

    def _ask_and_work(self, heartbeat: Heartbeat) -> str | None:
        """Poll; return the finished cycle's status, or None if the server asks to wait."""
        decision = self._ask()
        if decision.action == "sync" and decision.plan_error:
            # No lock was taken, so there is no cycle to run or to report.
            hint = "update the sync app, or ask for a kind of sync that it can do, such as pricing"
            text = (
                "waiting: the server has no plan that this sync app can do"
                f" ({decision.plan_error}); {hint}"
            )
            self._tell("plan_refused", text, error=decision.plan_error)
            return "failed"
        if decision.action != "sync":
            why = WAIT_TEXTS.get(decision.reason, decision.reason)
            self._tell(
                "waiting",
                f"waiting: {why}",
                reason=decision.reason,
                sync_requested=decision.sync_requested,
            )
            return None
        cycle = begin(decision, heartbeat.sync_mode, clock.now())
        self._store.memory.cycle = cycle
        self._store.save()
        return self._work_off(cycle, resumed=False)

    def _work_off_tasks(self, heartbeat: Heartbeat) -> str | None:
        """Claim and process waiting tasks, a few per round; return `failed` if a task failed."""
        ended = set[str]()
        if heartbeat.has_pending_tasks:
            for _ in range(MOST_TASKS):
                claim = self._claim()
                if claim is None:
                    break
                cycle = begin_task(claim, clock.now())
                self._store.memory.cycle = cycle
                self._store.save()
                ended.add(self._work_off(cycle, resumed=False))
        return "failed" if "failed" in ended else None

    def _claim(self) -> Claim | None:
        try:
            return self._call("claiming a task", lambda: self._client.claim_task(TASK_KINDS))
        except Refused as refused:
            if refused.status != 404:  # an older server announces tasks but gives out none
                raise
            return None

    def _ask(self) -> Decision:
        return self._call("asking what to do", self._ask_once)

    def _ask_once(self) -> Decision:
        return self._client.pending(self._store.memory.agent_id, CAPABILITIES)

    def _resume(self, heartbeat: Heartbeat) -> str | None:
        """Finish the cycle that a kill, a stop or an outage interrupted."""
        cycle = self._store.memory.cycle
        if cycle is None:
            return None
        wanted_for_sure = cycle.handed_over or cycle.task is not None
        if cycle.status is None and cycle.over is None and not wanted_for_sure:
            cycle = self._still_wanted(cycle, heartbeat)
        return self._work_off(cycle, resumed=True)

    def _still_wanted(self, cycle: Cycle, heartbeat: Heartbeat) -> Cycle:
        """Check a cycle that has uploaded nothing yet: the server may have given it up, or the
        seller may have cancelled it.
        """
        decision = self._ask()
        if decision.action != "sync" or decision.plan_error:
            step = next((name for name in cycle.planned if name not in cycle.steps_done), None)
            why = f"interrupted, and not wanted any more: {decision.plan_error or decision.reason}"
            cycle.over = why
            if step is not None:
                cycle.steps.append(StepRecord(step, "failed", 0, why))
            return cycle
        if decision.kind == cycle.kind:
            cycle.reason, cycle.first_sync = decision.reason, decision.first_sync
            return cycle
        # The lock is now for another kind of cycle. The agent runs the new kind under the same
        # cycle ID, because the server may already have that ID.
        anew = begin(decision, heartbeat.sync_mode, clock.now())
        anew.sync_cycle_id = cycle.sync_cycle_id
        self._store.memory.cycle = anew
        self._store.save()
        return anew

    def _work_off(self, cycle: Cycle, *, resumed: bool) -> str:
        self._client.trace(cycle.sync_cycle_id)
        try:
            return self._work_through(cycle, resumed=resumed)
        finally:
            self._client.trace(None)

    def _work_through(self, cycle: Cycle, *, resumed: bool) -> str:
        job = self._job(cycle)
        self._say.ended("turn")
        self._say_started(cycle, resumed=resumed)
        self._market.begin_cycle()
        for name in cycle.planned:
            if name not in cycle.steps_done:
                self._check_rest()
                record = run_step(job, name)
                cycle.steps.append(record)
                self._store.save()
                if cycle.task is None:
                    send_pictures(job, record)
        return self._finish(job)

    def _say_started(self, cycle: Cycle, *, resumed: bool) -> None:
        if (task := cycle.task) is not None:
            self._say(
                "task_started",
                f"{'resuming' if resumed else 'starting'} the task {task.kind.replace('_', ' ')}",
                task_id=task.id,
                kind=task.kind,
                attempt=task.attempt,
                resumed=resumed,
            )
            return
        verb, article = (
            "resuming" if resumed else "starting",
            "an" if cycle.kind[:1] in "ao" else "a",
        )
        self._say(
            "cycle_started",
            f"{verb} {article} {cycle.kind} sync ({cycle.reason.replace('_', ' ')})",
            sync_cycle_id=cycle.sync_cycle_id,
            kind=cycle.kind,
            reason=cycle.reason,
            resumed=resumed,
        )

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
            ask=self._ask_once,
            patience=self._pace.patience if self._once else None,
            heard=clock.mark(),  # the poll that began or resumed the cycle
            review=self._watch.review,
        )

    def _finish(self, job: Job) -> str:
        """Report the cycle until the server has it, then forget it.

        A repeated report with the same sync_cycle_id updates the same row; a repeated outcome of
        a task changes nothing.
        """
        cycle = job.cycle
        if cycle.status is None:
            took = clock.now() - clock.read_rfc3339(cycle.started_at)
            cycle.status, cycle.duration_ms = (
                verdict(cycle),
                max(0, round(took.total_seconds() * 1000)),
            )
            self._store.save()
        try:
            job.call("reporting the cycle", self._report_call(cycle), aging=False)
        except KeyRefused:
            raise
        except Refused as refused:  # the server would refuse it forever
            what = "cycle" if cycle.task is None else "task"
            self._say(
                "problem",
                f"the server does not take the report of the {what}: {refused}",
                problem=True,
            )
        self._store.memory.cycle = None
        self._store.save()
        self._store.spool.unlink(missing_ok=True)
        if cycle.task is None:
            self._say_finished(cycle)
            return cycle.status
        outcome = outcome_of(cycle)
        self._say(
            "task_ended",
            line_of_task(cycle, outcome),
            problem=outcome["status"] == "failed",
            task_id=cycle.task.id,
            kind=cycle.kind,
            status=outcome["status"],
            error=outcome.get("error"),
        )
        return str(outcome["status"])

    def _report_call(self, cycle: Cycle) -> Callable[[], None]:
        client, agent_id, task = self._client, self._store.memory.agent_id, cycle.task
        if task is None:
            return lambda: client.log(report_of(cycle, PLATFORM), agent_id)
        return lambda: client.end_task(task.id, outcome_of(cycle))

    def _say_finished(self, cycle: Cycle) -> None:
        self._say(
            "cycle_finished",
            line_of(cycle),
            problem=is_problem(cycle),
            sync_cycle_id=cycle.sync_cycle_id,
            status=cycle.status,
            duration_ms=cycle.duration_ms,
            error=trouble_of(cycle),
            steps=report_of(cycle, PLATFORM)["steps"],
        )

    def _refused(self, refused: Refused) -> int:
        advice = " - is the key right?" if refused.status == 401 else ""
        text = f"the server refuses ({refused.status}): {refused}{advice}"
        if isinstance(refused, Cooldown):
            text = str(refused)
        self._tell("refused", text, status=refused.status, code=refused.code)
        return 1

    def _call(self, what: str, make: Callable[[], T]) -> T:
        def on_retry(trouble: TryAgain, delay: float) -> None:
            self._say.retrying(what, trouble, delay)

        return persist(
            make, self._pace, self._stop, on_retry, self._pace.contact if self._once else None
        )

    def _tell(self, event: str, text: str, **fields: object) -> None:
        """Print the state of this round if it has changed."""
        self._say.standing(
            "turn", event, text, problem=event not in ("waiting", "paused"), **fields
        )

"""Models the sync protocol of one seller as decisions.md words it, in plain Python: each call
returns the answer that the service owes.

Slow, small and without a database; times are whole seconds since the beginning, moved only by
`jump`. Where an answer holds a value that the model cannot know (a transaction's number, a plan's
details) it has a `Same`, which is equal to itself ever after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

STALE, LEASE, COOLDOWN = 300, 30, 3600
INTERVAL, FIRST_RETRY = 6 * 3600, 300
BY_THE_WORKER = ("full", "pricing")
WORDS = ("error", "code")

Answer = tuple[int, Any]

ORDER_KINDS = ("full", "orders", "refunds", "feedback")


@dataclass(frozen=True)
class Same:
    """Any value, but the same at every mention of the name."""

    name: str


@dataclass
class Lock:
    kind: str
    trigger: Literal["manual", "scheduled"]
    first_sync: bool
    agent: str | None
    number: int
    refreshed: int
    plan: bool = False
    uploaded: bool = False
    counted: bool = False


@dataclass
class Upload:
    number: int
    cycle: str | None
    readable: bool
    state: str = "queued"


@dataclass
class Cycle:
    status: str
    placeholder: bool
    # After how many locks it was first heard of.
    number: int
    logged: int = 0


@dataclass
class Model:
    """`paid`, `metering` and `planner` are the account's; the rest moves."""

    paid: bool = True
    metering: bool = False
    planner: bool = False
    paused: bool = False
    now: int = 0
    # Milliseconds, one for each call or for calls at the same time.
    ticks: int = 0
    balance: int = 0
    charges: list[str] = field(default_factory=list)
    requested: str | None = None
    lock: Lock | None = None
    locks: int = 0
    # Tells whether the newest cycle handed out was a first sync, until its log has come.
    handed_first: bool = False
    lease: tuple[str, int] | None = None
    cancelling: bool = False
    uploads: list[Upload] = field(default_factory=list)
    cycles: dict[str, Cycle] = field(default_factory=dict)
    nameless: list[Cycle] = field(default_factory=list)
    last_sync: int | None = None
    last_pricing: int | None = None
    history_fetched: bool = False
    failures: int = 0
    last_failure: int = 0

    # Questions to the account's state

    @property
    def instant(self) -> int:
        return 1000 * self.now + self.ticks

    @property
    def lease_is_live(self) -> bool:
        return self.lease is not None and self.now < self.lease[1]

    @property
    def open(self) -> list[Upload]:
        return [upload for upload in self.uploads if upload.state in ("queued", "processing")]

    @property
    def cooldown(self) -> int:
        return 0 if self.last_pricing is None else max(0, self.last_pricing + COOLDOWN - self.now)

    @property
    def is_stale(self) -> bool:
        if self.lock is None or self.cancelling or self.lease_is_live or self.open:
            return False
        return self.now - self.lock.refreshed >= STALE

    @property
    def left_behind(self) -> bool:
        """Cancelled, and the worker that was to stop is no more."""
        return self.cancelling and not self.lease_is_live

    @property
    def is_due(self) -> bool:
        due = 0 if self.last_pricing is None else self.last_pricing + INTERVAL
        if self.failures:
            due = max(
                due, self.last_failure + min(FIRST_RETRY * 2 ** (self.failures - 1), INTERVAL)
            )
        return self.now >= due

    @property
    def phase(self) -> str:
        if self.cancelling and self.lease_is_live:
            return "cancelling"
        if self.lease_is_live and self.lease and self.lease[0] == "sync":
            return "importing"
        if self.open and not self.left_behind:
            return "queued"
        if self.in_progress:
            return "collecting"
        return "requested" if self.requested else "idle"

    @property
    def in_progress(self) -> bool:
        return self.lock is not None and not self.is_stale and not self.left_behind

    # Calls

    def request(self, kind: str) -> Answer:
        if self.requested in ("full", kind):
            return 200, {"status": "requested"}
        if self.cooldown and self.metering:
            wait = {"status": "cooldown", "cooldown_remaining_seconds": self.cooldown}
            return 402, wait | {"balance": self.balance, "top_up_path": "/account/credits"}
        if self.cooldown and not self.paid:
            return 429, {"status": "cooldown", "cooldown_remaining_seconds": self.cooldown}
        self._ask(kind)
        return 200, {"status": "requested"}

    def poll(self, agent: str | None, can: str | None) -> Answer:
        self._tidy()
        if self.lock is not None:
            return self._poll_of_a_running_cycle(self.lock, agent)
        if self.requested:
            return self._hand_out(self.requested, "manual", agent, can)
        if self.paused:
            return _wait("auto_sync_paused", requested=False)
        if self.is_due:
            return self._hand_out("full", "scheduled", agent, can)
        return _wait("no_sync_needed", requested=False)

    def heartbeat(self) -> Answer:
        self._tidy()
        return 200, None

    def status(self) -> Answer:
        return 200, {
            "sync_in_progress": self.in_progress,
            "last_sync": self.last_sync,
            "phase": self.phase,
        }

    def skip_wait(self, key: str) -> Answer:
        told = {"balance": self.balance, "cooldown_remaining_seconds": self.cooldown}
        if key in self.charges:
            return 200, {"status": "replayed", **told, "transaction_id": Same(f"charge {key}")}
        self._tidy()
        if self.lock is not None:
            return 200, {"status": "sync_in_flight"}
        if self.lease_is_live and self.lease:
            return 409, {"status": "mutex_held", "retry_after_seconds": self.lease[1] - self.now}
        if not self.cooldown or self.requested:
            return 200, {"status": "no_charge_needed", **told, "transaction_id": None}
        if self.balance < 1:
            return 402, {
                "status": "insufficient_balance",
                "balance": 0,
                "top_up_path": "/account/credits",
            }
        self.balance -= 1
        self.charges.append(key)
        self._ask("full")
        return 200, {
            "status": "charged",
            **told,
            "balance": self.balance,
            "transaction_id": Same(f"charge {key}"),
        }

    def upload(self, number: int, cycle: str | None, readable: bool) -> Answer:
        self._tidy()
        if self.lock is None:
            self._take("full", "manual", first_sync=False, agent=None)
        assert self.lock
        self.lock.uploaded, self.lock.refreshed = True, self.now
        if cycle is not None:
            self.cycles.setdefault(cycle, Cycle("failed", placeholder=True, number=self.locks))
        self.uploads.append(Upload(number, cycle, readable))
        return 202, {"status": "accepted", "upload_id": Same(f"upload {number}")}

    def report(self, number: int) -> Answer:
        self._refresh()
        return 200, next(upload.state for upload in self.uploads if upload.number == number)

    def cancel(self) -> Answer:
        # An import goes on without the lock where a cycle of another kind brought it and has ended.
        imports = self.lease_is_live and self.lease is not None and self.lease[0] == "sync"
        if self.lock is None and not self.cancelling and not imports:
            return 409, dict.fromkeys(WORDS, ...) | {"code": "no_sync_in_progress"}
        if imports:
            self.cancelling = True
            return 202, {"status": "cancelling"}
        self._end_cancelled()
        return 200, {"status": "cancelled"}

    def log(
        self, status: str, cycle: str | None, agent: str | None, steps: Mapping[str, str], ago: int
    ) -> Answer:
        self._refresh()
        row = self._row_of(cycle, self.instant - 1000 * ago)
        if (row is None or row.placeholder) and not self._is_of_another(row, agent):
            self._end_by_log(status, steps)
        if row is None:
            row = Cycle(status, placeholder=False, number=self.locks)
            self._keep(cycle, row)
        row.status = "cancelled" if row.status == "cancelled" else status
        row.placeholder = False
        return 201, None

    # Steps of the operator and the dashboard

    def grant(self, credits: int) -> Answer:
        self.balance += credits
        return 200, None

    def pause(self, paused: bool) -> Answer:
        self.paused = paused
        return 200, None

    def ask_for_history(self) -> Answer:
        self.history_fetched = False
        return 200, None

    def jump(self, seconds: int) -> Answer:
        self.now += seconds
        return 200, None

    def take_lease(self, holder: str) -> Answer:
        """A rollback or a preview begins; or a worker that takes an import up, and dies."""
        if self.lease_is_live or self.cancelling:
            return 200, False
        if holder == "sync":
            if not self.open:
                return 200, False
            self.open[0].state = "processing"
        self.lease = holder, self.now + LEASE
        return 200, True

    def worker(self) -> Answer:
        if self.left_behind:
            self._end_cancelled()
        while self.open and not self.lease_is_live:
            self._import(self.open[0])
        return 200, None

    # How it goes on inside

    def _ask(self, kind: str) -> None:
        self.requested = "full" if "full" in (self.requested, kind) else kind

    def _take(
        self,
        kind: str,
        trigger: Literal["manual", "scheduled"],
        *,
        first_sync: bool,
        agent: str | None,
    ) -> None:
        self.locks += 1
        self.lock = Lock(kind, trigger, first_sync, agent, self.locks, self.now)
        self.handed_first = first_sync and kind in ORDER_KINDS

    def _refresh(self) -> None:
        if self.lock is not None:
            self.lock.refreshed = self.now

    def _tidy(self) -> None:
        """End what was left behind, as the next caller does."""
        if self.left_behind:
            self._end_cancelled()
        if self.is_stale and (lock := self.lock):
            self._count_failure()
            if lock.trigger == "manual":
                taken = lock.kind
                self.requested = (
                    taken
                    if self.requested is None
                    else "full"
                    if taken == "full"
                    else self.requested
                )
            self.lock = None

    def _poll_of_a_running_cycle(self, lock: Lock, agent: str | None) -> Answer:
        requested = self.requested is not None
        mine = agent is not None and agent == lock.agent
        if mine:
            lock.refreshed = self.now
        if not mine or lock.uploaded or self.cancelling:
            return _wait("in_progress", requested=requested)
        return self._told(lock, requested or lock.trigger == "manual")

    def _hand_out(
        self, kind: str, trigger: Literal["manual", "scheduled"], agent: str | None, can: str | None
    ) -> Answer:
        first_sync = not self.history_fetched
        if self.planner and can == "nothing":
            lock = Lock(kind, trigger, first_sync, agent, 0, 0)
            return 200, self._told(lock, trigger == "manual")[1] | {"plan": "refused"}
        self._take(kind, trigger, first_sync=first_sync, agent=agent)
        assert self.lock
        self.lock.plan = self.planner and can == "all"
        if trigger == "manual":
            self.requested = None
        return self._told(self.lock, trigger == "manual")

    def _told(self, lock: Lock, requested: bool) -> Answer:
        reason = "manual_request" if lock.trigger == "manual" else "scheduled"
        body = {"action": "sync", "reason": reason, "sync_requested": requested}
        body |= {"first_sync": lock.first_sync, "kind": lock.kind}
        return 200, body | ({"plan": Same(f"plan {lock.number}")} if lock.plan else {})

    def _import(self, upload: Upload) -> None:
        self.lease = None
        upload.state = "done" if upload.readable else "failed"
        self._refresh()
        if upload.readable:
            self.last_sync = self.last_pricing = self.now
            self.failures = 0
        else:
            self._count_failure()
        if self.lock and self.lock.uploaded and self.lock.kind in BY_THE_WORKER and not self.open:
            self.lock = None

    def _count_failure(self) -> None:
        if self.lock and self.lock.trigger == "scheduled" and not self.lock.counted:
            self.lock.counted = True
            self.failures += 1
            self.last_failure = self.now

    def _end_cancelled(self) -> None:
        cycles = {upload.cycle for upload in self.open if upload.cycle}
        for upload in self.open:
            upload.state = "cancelled"
        for cycle in cycles:
            self.cycles[cycle].status = "cancelled"
        if not cycles:
            number = self.lock.number if self.lock else self.locks
            self.nameless.append(
                Cycle("cancelled", placeholder=False, number=number, logged=self.instant)
            )
        self._count_failure()
        self.lock, self.cancelling = None, False
        if self.lease and self.lease[0] == "sync":
            self.lease = None

    def _row_of(self, cycle: str | None, began: int) -> Cycle | None:
        """The cycle's row; else that of the cycle without a name that was cancelled after this
        one had begun.
        """
        if cycle is None:
            return None
        for row in reversed(self.nameless):
            if cycle not in self.cycles and row.status == "cancelled" and row.logged >= began:
                self.nameless = [other for other in self.nameless if other is not row]
                self.cycles[cycle] = row
                row.placeholder = True
        return self.cycles.get(cycle)

    def _keep(self, cycle: str | None, row: Cycle) -> None:
        if cycle is None:
            self.nameless.append(row)
        else:
            self.cycles[cycle] = row

    def _is_of_another(self, row: Cycle | None, agent: str | None) -> bool:
        if self.lock is None:
            return False
        if agent is not None and self.lock.agent is not None and agent != self.lock.agent:
            return True
        return row is not None and row.number < self.lock.number

    def _end_by_log(self, status: str, steps: Mapping[str, str]) -> None:
        ours = {name: result for name, result in steps.items() if name != "make_coffee"}
        came = ours.get("fetch_orders") == "success" and "failed" not in ours.values()
        if self.handed_first and (came if ours else status == "success"):
            self.history_fetched = True
        lock = self.lock
        if lock and not self.cancelling and not (lock.uploaded and lock.kind in BY_THE_WORKER):
            if status == "success":
                self.last_sync = self.now
                if lock.kind in BY_THE_WORKER:
                    self.last_pricing = self.now
                    self.failures = 0
            else:
                self._count_failure()
            self.lock = None
        self.handed_first = (
            self.lock is not None and self.lock.first_sync and self.lock.kind in ORDER_KINDS
        )


def _wait(reason: str, *, requested: bool) -> Answer:
    return 200, {"action": "wait", "reason": reason, "sync_requested": requested}


def matches(expected: Any, actual: Any, known: dict[str, Any]) -> dict[str, Any] | None:
    """Read from `actual` the unknowns of `expected`; None where the two differ."""
    if isinstance(expected, Same):
        told = known.get(expected.name, actual)
        return {expected.name: actual} if actual == told and actual is not None else None
    if isinstance(expected, tuple):
        expected, actual = dict(enumerate(expected)), dict(enumerate(actual))
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or expected.keys() != actual.keys():
            return None
        learned: dict[str, Any] = {}
        for name, value in expected.items():
            if (more := matches(value, actual[name], known)) is None:
                return None
            learned |= more
        return learned
    return (
        {} if expected is ... or (type(expected) is type(actual) and expected == actual) else None
    )

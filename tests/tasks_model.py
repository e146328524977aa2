"""Models the tasks of one seller as decisions.md words them, in plain Python: each call returns the
answer that the service owes.

Times are whole seconds since the beginning, moved only by `jump`. A task is named by its number,
counted from 1 in the order in which tasks were made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TTL, ATTEMPTS = 600, 5
PRICES = "apply_price_updates"
NEW_STOCK, REQUESTED, RETRY, ROUTINE = range(4)
Answer = tuple[int, object]
Claimed = tuple[int, int]


@dataclass
class Task:
    number: int
    kind: str
    priority: int
    status: str = "pending"
    attempt: int = 0
    # The claim that holds it, and the one that was ended last with what was reported of it.
    claim: int | None = None
    until: int = 0
    ended: tuple[int, str] | None = None

    @property
    def rank(self) -> tuple[int, int]:
        return (RETRY if self.attempt else self.priority), self.number


@dataclass
class Model:
    """`mode` and `held` are the account's, `can` what its agent said last."""

    now: int = 0
    mode: str = "full"
    held: bool = False
    can: frozenset[str] | None = None
    tasks: list[Task] = field(default_factory=list)
    claims: int = 0

    # Waiting tasks

    def _take_back(self) -> None:
        for task in self.tasks:
            if task.status == "claimed" and task.until <= self.now:
                task.attempt, task.claim = task.attempt + 1, None
                task.status = "failed" if task.attempt >= ATTEMPTS else "pending"
        self._give_up_doubles()

    def _give_up_doubles(self) -> None:
        routine = [t for t in self.tasks if t.status == "pending" and t.priority == ROUTINE]
        for task in routine:
            newer = any(t.kind == task.kind and t.number > task.number for t in routine)
            if task.attempt and newer:
                task.status = "cancelled"

    def _over(self, task: Task) -> bool:
        return task.status == "claimed" and task.until <= self.now

    def _waiting(self, kind: str) -> Task | None:
        """A claim that ran out comes back, unless it was the last attempt."""
        waits = (
            task
            for task in self.tasks
            if task.kind == kind
            and (task.status == "pending" or (self._over(task) and task.attempt + 1 < ATTEMPTS))
        )
        return next(waits, None)

    def _cancel_pushes(self) -> None:
        if self.mode == "read_only":
            for task in self.tasks:
                if task.kind == PRICES and (task.status == "pending" or self._over(task)):
                    task.status = "cancelled"

    def _make(self, kind: str, priority: int) -> int:
        self.tasks.append(Task(len(self.tasks) + 1, kind, priority))
        return len(self.tasks)

    # Calls

    def jump(self, seconds: int) -> Answer:
        self.now += seconds
        return 200, None

    def request(self, kind: str) -> Answer:
        waiting = self._waiting(kind)
        if waiting is None:
            return 201, self._make(kind, REQUESTED)
        waiting.priority = min(waiting.priority, REQUESTED)
        return 200, waiting.number

    def new_stock(self) -> Answer:
        return 200, self._make("quick_add_listing", NEW_STOCK)

    def routine(self, kind: str) -> Answer:
        waiting = self._waiting(kind)
        return 200, waiting.number if waiting else self._make(kind, ROUTINE)

    def change(self, mode: str, held: bool) -> Answer:
        self.mode, self.held = mode, held
        self._cancel_pushes()
        return 200, None

    def heartbeat(self) -> Answer:
        self._cancel_pushes()
        waiting = [t for t in self.tasks if t.status == "pending" or self._over(t)]
        told = any(
            (self.can is None or task.kind in self.can)
            and not (task.kind == PRICES and (self.held or self.mode == "read_only"))
            for task in waiting
        )
        return 200, told

    def claim(self, number: int, kinds: tuple[str, ...], most: int) -> Answer:
        """`number` names the claim; its answer is the tasks with their attempts."""
        if kinds:
            self.can = frozenset(kinds)
        if not any(t.status == "pending" or self._over(t) for t in self.tasks):
            return 200, []
        self._cancel_pushes()
        self._take_back()
        free = sorted(
            (
                task
                for task in self.tasks
                if task.status == "pending"
                and (self.can is None or task.kind in self.can)
                and not (task.kind == PRICES and (self.held or self.mode == "read_only"))
            ),
            key=lambda task: task.rank,
        )[:most]
        for task in free:
            task.status, task.claim, task.until = "claimed", number, self.now + TTL
        return 200, [(task.number, task.attempt) for task in free]

    def end(self, claim: int, number: int, status: str, retryable: bool) -> Answer:
        task = self.tasks[number - 1]
        if task.status == "claimed" and task.claim == claim and not self._over(task):
            task.ended, task.claim = (claim, status), None
            if status == "failed" and retryable:
                task.attempt += 1
                task.status = "failed" if task.attempt >= ATTEMPTS else "pending"
                self._give_up_doubles()
            else:
                task.status = status
        elif task.ended != (claim, status):
            return 409, "claim_expired"
        return 200, self.shown(task)

    def shown(self, task: Task) -> tuple[str, int]:
        if not self._over(task):
            return task.status, task.attempt
        return ("failed" if task.attempt + 1 >= ATTEMPTS else "pending"), task.attempt + 1

    def listed(self) -> Answer:
        return 200, [(task.number, task.kind, *self.shown(task)) for task in self.tasks]

"""A small model of one seller's rules, runs and rollbacks: the same calls as
tests/features/pricing/test_pricing_machine.py makes over HTTP.

Prices are whole cents. A file is known by what stands in it; what the agent holds is the last one
that it fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CARDS = (1, 2, 3)
DAY = 24 * 3600
OPEN = ("requested", "ready", "served")
Prices = dict[int, int]


@dataclass
class Rule:
    """`cards` is every card or one; the first live rule in the order of the list governs."""

    adjust_bp: int
    cards: tuple[int, ...]
    published: bool
    enabled: bool = True

    @property
    def live(self) -> bool:
        return self.published and self.enabled


@dataclass
class Rollback:
    scope: tuple[str, int]
    state: str
    cards: int
    until: int
    rows: Prices = field(default_factory=dict)
    files: list[Any] = field(default_factory=list)


@dataclass
class Model:
    now: int = 0
    market: Prices = field(default_factory=dict)
    price: Prices = field(default_factory=dict)
    target: dict[int, int | None] = field(default_factory=dict)
    # What the marketplace shows, which the next upload brings.
    listed: Prices = field(default_factory=lambda: dict.fromkeys(CARDS, 100))
    rules: list[Rule] = field(default_factory=list)
    # Of each run, by card: the price before and the rule.
    runs: list[dict[int, tuple[int, int]]] = field(default_factory=list)
    rollbacks: list[Rollback] = field(default_factory=list)
    held: Any = None

    # Rules and runs.

    def make_rule(self, adjust_bp: int, cards: tuple[int, ...], published: bool) -> int:
        self.rules.append(Rule(adjust_bp, cards, published))
        return 201

    def publish(self, number: int) -> int:
        self.rules[number].published = True
        return 200

    def switch(self, number: int, enabled: bool) -> int:
        self.rules[number].enabled = enabled
        return 200

    def upload(self, market: Prices) -> str:
        self.work()
        before, self.price, self.market = self.price, dict(self.listed), dict(market)
        if any(rule.live and rule.cards != CARDS for rule in self.rules):
            # Queries are answered by a run of its own, once the cards are written.
            for card in CARDS:
                if before.get(card) != self.price[card]:
                    self.target[card] = None
            self.runs.append({})
            self._price({})
        else:
            self._price(before)
        return "done"

    def reprice(self) -> str:
        self.work()
        self._price(self.price)
        return "completed"

    def _price(self, before: Prices) -> None:
        changes = {}
        for card in CARDS:
            rule, target = self._asked(card)
            moved = target != self.target.get(card) or (
                before and before.get(card) != self.price[card]
            )
            if moved and target is not None and target != self.price[card]:
                changes[card] = (self.price[card], rule)
            self.target[card] = target
        self.runs.append(changes)

    def _asked(self, card: int) -> tuple[int, int | None]:
        for number, rule in enumerate(self.rules):
            if rule.live and card in rule.cards:
                return number, (self.market[card] * (10_000 + rule.adjust_bp) + 5_000) // 10_000
        return -1, None

    # Rollbacks.

    @property
    def open(self) -> Rollback | None:
        newest = self.rollbacks[-1] if self.rollbacks else None
        return newest if newest and newest.state in OPEN and newest.until > self.now else None

    def reached(self, scope: tuple[str, int]) -> Prices:
        name, number = scope
        back: Prices = {}
        for card in CARDS:
            changes = [run[card] for run in self.runs if card in run]
            if name == "run":
                changes = [self.runs[number][card]] if card in self.runs[number] else []
            elif name == "rule":
                last: list[tuple[int, int]] = []
                for change in reversed(changes):
                    if change[1] != number:
                        break
                    last.insert(0, change)
                changes = last
            if changes and {self.price[card], self.target[card]} - {changes[0][0], None}:
                back[card] = changes[0][0]
        return back

    def ask(self, scope: tuple[str, int]) -> tuple[int, str, int]:
        found = self.open
        if found is not None:
            return (
                (201, found.state, found.cards)
                if found.scope == scope
                else (409, "rollback_open", 0)
            )
        self._expire()
        cards = len(self.reached(scope))
        made = Rollback(scope, "requested" if cards else "applied", cards, self.now + DAY)
        self.rollbacks.append(made)
        return 201, made.state, cards

    def _expire(self) -> None:
        for rollback in self.rollbacks:
            if rollback.state in OPEN and rollback.until <= self.now:
                rollback.state = "expired"

    def work(self) -> None:
        found = self.open
        if found is not None and found.state == "requested":
            found.rows = self.reached(found.scope)
            found.state, found.cards, found.until = (
                "ready" if found.rows else "applied",
                len(found.rows),
                self.now + DAY,
            )

    def cancel(self) -> tuple[int, str]:
        newest = self.rollbacks[-1] if self.rollbacks else None
        if newest is None:
            return 0, ""
        if newest.state == "cancelled":
            return 200, "cancelled"
        if newest is not self.open or newest.state == "served":
            return 409, "not_cancellable"
        newest.state = "cancelled"
        return 200, "cancelled"

    # The agent.

    def fetch(self) -> Prices:
        found = self.open
        if found is not None and found.state in ("ready", "served"):
            found.state, rows = "served", found.rows
        elif found is not None:
            # While it is prepared, nothing is pushed that it may take back.
            found, rows = None, {}
        else:
            found, rows = (
                None,
                {
                    card: t
                    for card, t in self.target.items()
                    if t is not None and t != self.price[card]
                },
            )
        self.held = (rows, {card: self.market[card] for card in rows})
        if found is not None and self.held not in found.files:
            found.files.append(self.held)
        return rows

    def import_file(self) -> None:
        self.listed |= self.held[0]

    def report(self, outcome: str, with_rows: bool, number: int) -> int:
        told_of = ("served", "failed", "expired", "applied")
        rollback = next(
            (r for r in reversed(self.rollbacks) if self.held in r.files and r.state in told_of),
            None,
        )
        if rollback is not None and rollback.state == "applied":
            rollback = None
        if outcome == "failed":
            if rollback is not None and rollback.state == "served":
                rollback.state = "failed"
            return 201
        moved = self.held[0] if with_rows else rollback.rows if rollback else {}
        self.price |= moved
        if rollback is not None:
            rollback.state = "applied"
            self.target |= dict.fromkeys(rollback.rows)
        return 201

    def jump(self, seconds: int) -> None:
        self.now += seconds

    def kept(self) -> tuple[Any, Any]:
        states = [
            "expired" if r.state in OPEN and r.until <= self.now else r.state
            for r in self.rollbacks
        ]
        return {card: (self.price[card], self.target[card]) for card in CARDS}, states

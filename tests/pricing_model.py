"""A small model of one seller's rules, sales, runs, rollbacks, pauses, staff and refunds.

It takes the same calls as tests/features/prices/test_pricing_machine.py makes over HTTP. Prices
are whole cents. A file is known by its content; the agent holds the last one that it fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CARDS = (1, 2, 3)
HOUR = 3600
DAY = 24 * HOUR
# A market price that is older is not used.
MARKET_LASTS = 168 * HOUR
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
class Sale:
    """The first sale in the order of the list that is on and selects a card reduces its price."""

    adjust_bp: int
    cards: tuple[int, ...]
    starts: int
    ends: int
    enabled: bool = True
    deleted: bool = False

    def on(self, now: int) -> bool:
        return self.enabled and not self.deleted and self.starts <= now < self.ends


@dataclass
class Order:
    """`refund` is what rows said of it, a later one over an earlier one; None is no row."""

    total: int | None
    refund: dict[str, Any] | None = None

    @property
    def refunded(self) -> int:
        row = self.refund or {}
        if "total_amt" in row:
            return int(row["total_amt"])
        if "product_amt" in row or "shipping_amt" in row:
            return int(row.get("product_amt", 0)) + int(row.get("shipping_amt", 0))
        return (self.total or 0) if row.get("refund_type", "full") == "full" else 0


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
    # The prices that the marketplace shows, which the next upload brings.
    listed: Prices = field(default_factory=lambda: dict.fromkeys(CARDS, 100))
    rules: list[Rule] = field(default_factory=list)
    # Each run by card: the price before and the rule.
    runs: list[dict[int, tuple[int, int]]] = field(default_factory=list)
    rollbacks: list[Rollback] = field(default_factory=list)
    held: Any = None
    # The moment of the last upload, from which the age of its market prices counts.
    seen: int = 0
    sales: list[Sale] = field(default_factory=list)
    # By card: the sale that its target was worked out with.
    reduced: dict[int, int | None] = field(default_factory=dict)
    # The sales that were on when a run was last begun for the edges of sales.
    in_force: set[int] = field(default_factory=set)
    paused: bool = False
    orders: dict[str, Order] = field(default_factory=dict)

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
        self.seen = self.now
        narrow = [rule.cards != CARDS for rule in self.rules if rule.live]
        narrow += [self.sales[number].cards != CARDS for number in self._on_now()]
        if any(narrow):
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
            rule, target, self.reduced[card] = self._asked(card)
            moved = target != self.target.get(card) or (
                before and before.get(card) != self.price[card]
            )
            if moved and target is not None and target != self.price[card]:
                changes[card] = (self.price[card], rule)
            self.target[card] = target
        self.runs.append(changes)

    def _asked(self, card: int) -> tuple[int, int | None, int | None]:
        """The rule, the target and the sale in it. Of a paused account every card is blocked."""
        rules = [n for n, rule in enumerate(self.rules) if rule.live and card in rule.cards]
        if self.paused or not rules or self.now - self.seen > MARKET_LASTS:
            return -1, None, None
        sales = [n for n in sorted(self._on_now()) if card in self.sales[n].cards]
        off = self.sales[sales[0]].adjust_bp if sales else 0
        exact = self.market[card] * (10_000 + self.rules[rules[0]].adjust_bp) * (10_000 + off)
        return rules[0], (exact + 50_000_000) // 100_000_000, sales[0] if sales else None

    # Sales and pauses.

    def _on_now(self) -> set[int]:
        return {number for number, sale in enumerate(self.sales) if sale.on(self.now)}

    def make_sale(self, adjust_bp: int, cards: tuple[int, ...], starts: int, hours: int) -> int:
        begin = self.now + starts * HOUR
        self.sales.append(Sale(adjust_bp, cards, begin, begin + hours * HOUR))
        return 201

    def switch_sale(self, number: int, enabled: bool) -> int:
        if self.sales[number].deleted:
            return 404
        self.sales[number].enabled = enabled
        return 200

    def end_sale(self, number: int) -> int:
        """Its end is put to this moment, which is behind its start."""
        sale = self.sales[number]
        if sale.deleted or sale.starts >= self.now:
            return 404 if sale.deleted else 422
        sale.ends = self.now
        return 200

    def delete_sale(self, number: int) -> int:
        if self.sales[number].deleted:
            return 404
        self.sales[number].deleted = True
        return 200

    def pause(self, paused: bool, by: str) -> int:
        self.paused = paused
        return 200

    def minute(self) -> None:
        """A worker sweeps: it ends rollbacks that ran out, and runs for edges that were passed."""
        self.now += 60
        self.work()
        self._expire()
        on, asked = self._on_now(), {sale for sale in self.reduced.values() if sale is not None}
        if not self.paused and ((self.in_force | asked) - on or on - self.in_force):
            self.in_force = on
            self._price(self.price)

    # Staff and refunds.

    def staff_tries(self, what: str, number: int) -> tuple[int, str]:
        return 403, "owner_required"

    def order(self, number: str, total: int) -> str:
        self.work()
        self.orders.setdefault(number, Order(total)).total = total
        return "done"

    def refund(self, number: str, row: dict[str, Any]) -> str:
        """A row of an order that nobody knows makes it; the row's amounts are its own then."""
        self.work()
        found = self.orders.setdefault(number, Order(row.get("total_amt")))
        found.refund = (found.refund or {}) | row
        return "done"

    def refunds(self, by: str) -> dict[str, tuple[int, str | None]]:
        told = [(n, o.refunded, o.refund) for n, o in self.orders.items() if o.refund is not None]
        return {number: (amount, row.get("refund_type")) for number, amount, row in told}

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

    def fetch(self) -> tuple[Prices, list[str]]:
        """The file and why it is empty. A rollback's is served whatever the account may push."""
        found, reasons = self.open, ["automatic_pricing_paused"] if self.paused else []
        if found is not None and found.state in ("ready", "served"):
            found.state, rows, reasons = "served", found.rows, []
        elif found is not None:
            # While it is prepared, nothing is pushed that it may take back.
            found, rows = None, {}
            reasons.append("rollback_preparing")
        else:
            found, rows = None, {} if self.paused else self._pushed()
        self.held = (rows, {card: self.market[card] for card in rows})
        if found is not None and self.held not in found.files:
            found.files.append(self.held)
        return rows, reasons

    def _pushed(self) -> Prices:
        """Targets that differ, without those of sales that are over, whether or not a run came."""
        on = {None, *self._on_now()}
        asked = {card: t for card, t in self.target.items() if self.reduced[card] in on}
        return {card: t for card, t in asked.items() if t is not None and t != self.price[card]}

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

    def kept(self) -> tuple[Any, ...]:
        states = [
            "expired" if r.state in OPEN and r.until <= self.now else r.state
            for r in self.rollbacks
        ]
        cards = {card: (self.price[card], self.target[card]) for card in CARDS}
        rules = [(rule.published, rule.enabled) for rule in self.rules]
        sales = [(sale.adjust_bp, sale.enabled) for sale in self.sales if not sale.deleted]
        return cards, states, len(self.runs), rules, sales, self.paused

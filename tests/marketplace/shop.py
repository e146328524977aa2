"""The state of the simulated marketplace and what a seller may do with it: sessions, prices,
imports. One lock guards all of it.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from . import files
from .goods import Card, Goods, Order

EMAIL, PASSWORD, STORE = "seller@shop.example", "sample-pass-1", "Sample Card Shop"
CODE = "424242"
Stage = Literal["second_factor", "challenge", "in"]
Status = Literal["staged", "published", "discarded", "replaced", "refused"]


@dataclass
class Import:
    """An uploaded price file. A refused one has an `error` and no lines."""

    id: int
    file: str
    status: Status
    read: int = 0
    lines: list[files.Line] = field(default_factory=list)
    rejected: list[files.Rejected] = field(default_factory=list)
    error: str = ""

    @property
    def accepted(self) -> int:
        return len(self.lines)


@dataclass
class Switches:
    """What the site asks of a seller, and how it looks; changed by `_control`."""

    design: int = 1
    second_factor: bool = True
    captcha: bool = False
    menus_open: bool = True
    most_rows: int = 50_000


class Shop:
    def __init__(
        self, goods: Goods, today: date, design: int = 1, kept: Path | None = None
    ) -> None:
        self.cards, self.orders, self.today = goods.cards, goods.orders, today
        self.switches = Switches(design)
        self.sessions: dict[str, Stage] = {}
        self.imports: list[Import] = []
        self.downloads: list[dict[str, Any]] = []
        self.listed: list[dict[str, Any]] = []
        self.lock = threading.RLock()
        self._kept = kept
        if kept is not None and kept.exists():
            self._restore(json.loads(kept.read_bytes()))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Holds the lock, and keeps the state afterwards if it has a file."""
        with self.lock:
            yield
            if self._kept is not None:
                part = self._kept.with_suffix(".part")
                part.write_bytes(self.state())
                part.replace(self._kept)

    # Sessions

    def sign_in(self, email: str, password: str) -> str | None:
        """Return a new session's token."""
        if (email.strip().lower(), password) != (EMAIL, PASSWORD):
            return None
        token = secrets.token_hex(16)
        with self.changing():
            self.sessions[token] = self._after_password()
        return token

    def _after_password(self) -> Stage:
        if self.switches.second_factor:
            return "second_factor"
        return "challenge" if self.switches.captcha else "in"

    def stage(self, token: str) -> Stage | None:
        """None without a session. A captcha that is turned on holds up those who are in."""
        with self.lock:
            stage = self.sessions.get(token)
            return "challenge" if stage == "in" and self.switches.captcha else stage

    def enter_code(self, token: str, code: str) -> bool:
        with self.changing():
            right = code.strip() == CODE and token in self.sessions
            if right:
                self.sessions[token] = "challenge" if self.switches.captcha else "in"
            return right

    def pass_challenge(self, token: str) -> None:
        """The challenge is over for everybody until it is turned on again."""
        with self.changing():
            self.switches.captcha = False
            if token in self.sessions:
                self.sessions[token] = "in"

    def sign_out(self, token: str) -> None:
        with self.changing():
            self.sessions.pop(token, None)

    def end_sessions(self) -> None:
        with self.changing():
            self.sessions.clear()

    # Prices

    def found(self, line: str = "", set_name: str = "", in_stock: bool = False) -> list[Card]:
        with self.lock:
            return [
                card
                for card in self.cards.values()
                if (not line or card.line == line)
                and set_name.lower() in card.set_name.lower()
                and (card.quantity > 0 or not in_stock)
            ]

    def stage_import(
        self,
        file: str,
        content: bytes,
        reject: Callable[[list[files.Line]], dict[int, str]] = lambda lines: {},
    ) -> Import:
        """Read an uploaded file into the staging area, which holds one import: an earlier one is
        replaced. `reject` chooses lines by their id, with reasons.
        """
        with self.changing():
            made = Import(len(self.imports) + 1, file, "staged")
            self.imports.append(made)
            try:
                lines, made.rejected = files.read_import(
                    content, self.cards, self.switches.most_rows
                )
            except files.Refused as problem:
                made.status, made.error = "refused", str(problem)
                return made
            reasons = reject(lines)
            made.read = len(lines) + len(made.rejected)
            made.lines = [line for line in lines if line.id not in reasons]
            made.rejected += [
                files.Rejected(line.line, str(line.id), reasons[line.id])
                for line in lines
                if line.id in reasons
            ]
            made.rejected.sort(key=lambda one: one.line)
            for other in self.imports[:-1]:
                if other.status == "staged":
                    other.status = "replaced"
            return made

    def staged(self) -> Import | None:
        with self.lock:
            return next((one for one in self.imports if one.status == "staged"), None)

    def import_of(self, number: int) -> Import | None:
        with self.lock:
            return self.imports[number - 1] if 0 < number <= len(self.imports) else None

    def publish(self, number: int, wrong: tuple[int | None, int] | None = None) -> bool:
        """Put the accepted lines live, once; False where the import is not staged. `wrong` is an
        id (None: the first priced line's) whose price is off by so many cents.
        """
        with self.changing():
            found = self.import_of(number)
            if found is None or found.status != "staged":
                return False
            found.status = "published"
            for line in found.lines:
                card = self.cards[line.id]
                card.quantity = max(0, card.quantity + line.add)
                if line.price is not None:
                    card.price = line.price
            if wrong is not None:
                priced = (line.id for line in found.lines if line.price is not None)
                if (id_ := wrong[0] or next(priced, None)) is not None:
                    self.cards[id_].price += wrong[1]
            return True

    def discard(self, number: int) -> bool:
        with self.changing():
            found = self.import_of(number)
            if found is None or found.status != "staged":
                return False
            found.status = "discarded"
            return True

    def add_card(self, id_: str, condition: str, quantity: str, price: str) -> str:
        """Quick-add; return the error, empty if the card was added."""
        with self.changing():
            card = self.cards.get(int(id_)) if id_.isascii() and id_.isdigit() else None
            cents = files.to_cents(price)
            if card is None:
                return "There is no card with this id."
            if condition != card.condition:
                return f"This id is for the condition {card.condition}."
            if not quantity.isascii() or not quantity.isdigit() or not int(quantity):
                return "Enter a quantity of at least 1."
            if cents is None or cents < 1:
                return "Enter a price of at least 0.01."
            card.quantity += int(quantity)
            card.price = cents
            self.listed.append({"id": card.id, "quantity": int(quantity), "price": price})
            return ""

    # Orders

    def orders_between(self, first: date | None, last: date | None) -> list[Order]:
        """Orders of these days, newest first; without days those of the last 90."""
        if first is None and last is None:
            first = self.today - timedelta(days=90)
        return [
            one
            for one in self.orders
            if (first is None or one.day >= first) and (last is None or one.day <= last)
        ]

    def sold_in(self, first: date, last: date) -> list[Order]:
        between = self.orders_between(first, last)
        return [one for one in between if one.status != "Canceled"]

    # The whole

    def note_download(self, path: str, name: str, content: bytes, *, whole: bool) -> None:
        with self.changing():
            self.downloads.append(
                {"path": path, "name": name, "bytes": len(content), "whole": whole}
            )

    def state(self, rows: bool = True) -> bytes:
        """All of it as JSON; without `rows` the imports' lines, the prices and the orders are left
        out.
        """
        with self.lock:
            whole: dict[str, Any] = {
                "second_factor_code": CODE,
                "switches": asdict(self.switches),
                "sessions": self.sessions,
                "imports": [_import_state(one, rows) for one in self.imports],
                "downloads": self.downloads,
                "listed": self.listed,
            }
            if rows:
                cards = self.cards.values()
                whole["prices"] = {str(card.id): files.money(card.price) for card in cards}
                whole["quantities"] = {str(card.id): card.quantity for card in cards}
                whole["orders"] = [
                    {"number": one.number, "date": one.day.isoformat(), "status": one.status}
                    for one in self.orders
                ]
            return json.dumps(whole).encode()

    def _restore(self, kept: dict[str, Any]) -> None:
        self.switches = Switches(**kept["switches"])
        self.sessions, self.downloads = kept["sessions"], kept["downloads"]
        self.listed = kept["listed"]
        for one in kept["imports"]:
            lines = [files.Line(**line) for line in one["lines"]]
            rejected = [files.Rejected(**line) for line in one["rejected"]]
            plain = {name: one[name] for name in ("id", "file", "status", "read", "error")}
            self.imports.append(Import(**plain, lines=lines, rejected=rejected))
        for id_, price in kept["prices"].items():
            if card := self.cards.get(int(id_)):
                card.price = files.to_cents(price) or 0
                card.quantity = kept["quantities"][id_]


def _import_state(one: Import, rows: bool) -> dict[str, Any]:
    plain = {name: getattr(one, name) for name in ("id", "file", "status", "read", "error")}
    whole = plain | {"accepted": one.accepted, "published": one.status == "published"}
    whole["rejected"] = [vars(line) for line in one.rejected]
    if rows:
        whole["lines"] = [vars(line) for line in one.lines]
    return whole

"""The faults of the simulated marketplace: which ones are set, and how long each still holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

# The kinds, and what each may have beside `path`, `count` and `after`.
KINDS: dict[str, frozenset[str]] = {
    "latency": frozenset({"seconds"}),
    "too_many": frozenset({"retry_after"}),
    "error": frozenset({"status"}),
    "half_download": frozenset(),
    "half_upload": frozenset(),
    "hang_up": frozenset(),
    "expired_session": frozenset(),
    "wrong_price": frozenset({"id", "by"}),
    "reject_rows": frozenset({"rows", "ids", "reason"}),
    "other_origin": frozenset({"to"}),
    "wrong_type": frozenset({"inline"}),
    "password_again": frozenset(),
    "remove": frozenset({"element"}),
}


class BadFault(Exception):
    """The fault cannot be set; the message says why."""


@dataclass
class Fault:
    """Holds for the next `count` requests whose path fits, None for until cleared, and begins when
    `after` such requests have passed.
    """

    kind: str
    path: str = "*"
    count: int | None = 1
    after: int = 0
    details: dict[str, Any] = field(default_factory=dict)


class Faults:
    """Safe under concurrent requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: list[Fault] = []

    def set(self, told: dict[str, Any]) -> None:
        """Raises BadFault."""
        told = dict(told)
        kind = told.pop("fault", None)
        if kind not in KINDS:
            raise BadFault(f"fault is one of {', '.join(KINDS)}")
        general = {name: told.pop(name) for name in ("path", "count", "after") if name in told}
        if unknown := told.keys() - KINDS[kind]:
            raise BadFault(f"{kind} has no {sorted(unknown)[0]}")
        with self._lock:
            self._set.append(Fault(kind, **general, details=told))

    def clear(self, kind: str | None = None) -> None:
        with self._lock:
            self._set = [fault for fault in self._set if kind and fault.kind != kind]

    def take(self, kind: str, path: str) -> Fault | None:
        """The first fault of this kind that this request meets; one of its count is used."""
        with self._lock:
            return next(self._met(kind, path), None)

    def take_all(self, kind: str, path: str) -> list[Fault]:
        with self._lock:
            return list(self._met(kind, path))

    def _met(self, kind: str, path: str) -> Iterator[Fault]:
        for fault in list(self._set):
            if fault.kind != kind or not fnmatchcase(path, fault.path):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            if fault.count is not None:
                fault.count -= 1
                if fault.count <= 0:
                    self._set.remove(fault)
            yield fault

    def listed(self) -> list[dict[str, Any]]:
        with self._lock:
            return [asdict(fault) for fault in self._set]

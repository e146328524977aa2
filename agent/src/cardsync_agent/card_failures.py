"""Counts how often the marketplace refused each card, and pauses a card that was refused three
times, until the seller resumes it.

The record is a small file beside the journal with its own lock, because the command that reports
refusals runs beside the agent. The count of a card is reset when the marketplace accepts it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cardsync_agent import clock, durable
from cardsync_agent.state import StateProblem, wait_for_lock

FAILURES_TO_PAUSE = 3
_NAME = "card-failures.json"


@dataclass(frozen=True)
class CardFailure:
    """The consecutive refusals of a card by the marketplace: their number, and the time, file and
    reason of the last one.
    """

    count: int
    at: str
    file: str
    reason: str

    @property
    def is_paused(self) -> bool:
        return self.count >= FAILURES_TO_PAUSE


class CardFailures:
    def __init__(self, home: Path) -> None:
        self._file = home / _NAME

    def all(self) -> dict[int, CardFailure]:
        """Return the failures by marketplace ID. Raises StateProblem."""
        try:
            raw: dict[str, dict[str, Any]] = json.loads(self._file.read_bytes())
            return {int(id): CardFailure(**failure) for id, failure in raw.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as trouble:
            raise StateProblem(
                f"The sync app cannot read {self._file}: {trouble}; delete it to let all cards go on."
            ) from trouble

    def paused(self) -> frozenset[int]:
        return frozenset(id for id, failure in self.all().items() if failure.is_paused)

    def note(
        self, file: str, taken: Collection[int], rejected: Mapping[int, str]
    ) -> frozenset[int]:
        """Count one more failure of each rejected card; return the cards that are paused now.

        A repeated report for the same file counts once.
        """
        with self._alone():
            failures = self.all()
            for id in taken:
                failures.pop(id, None)
            now = clock.rfc3339(clock.now())
            for id, reason in rejected.items():
                before = failures.get(id)
                more = 0 if before and before.file == file else 1
                count = more + (before.count if before else 0)
                failures[id] = CardFailure(count, now, file, reason)
            self._write(failures)
        return frozenset(id for id, failure in failures.items() if failure.is_paused)

    def resume(self, ids: Collection[int] | None) -> list[int]:
        """Reset the failures of these cards, or of all with None; return the cards that were
        paused.
        """
        with self._alone():
            failures = self.all()
            chosen = set(failures) if ids is None else set(ids) & set(failures)
            waited = sorted(id for id in chosen if failures[id].is_paused)
            self._write({id: it for id, it in failures.items() if id not in chosen})
        return waited

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._file.with_suffix(".lock").open("a+b") as lock:
            wait_for_lock(lock)
            yield

    def _write(self, failures: Mapping[int, CardFailure]) -> None:
        body = json.dumps({str(id): asdict(failure) for id, failure in failures.items()}, indent=1)
        durable.write(self._file, body.encode())


def without_cards(content: bytes, ids: Collection[int]) -> tuple[bytes, list[int]]:
    """Return the price file without the rows of these cards, and the omitted cards.

    The other rows keep their bytes.
    """
    kept, left_out = [], []
    for record in records_of(content):
        first = record.split(b",", 1)[0].strip(b'"\xef\xbb\xbf')
        if first.isdigit() and int(first) in ids:
            left_out.append(int(first))
        else:
            kept.append(record)
    return (b"".join(kept), left_out) if left_out else (content, [])


def records_of(content: bytes) -> Iterator[bytes]:
    """Yield the records with their line ends; a quoted field may contain line ends."""
    record = b""
    for line in content.splitlines(keepends=True):
        record += line
        if record.count(b'"') % 2 == 0:
            yield record
            record = b""
    if record:
        yield record

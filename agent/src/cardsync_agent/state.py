"""The agent's memory in DIR/.cardsync-agent: its identity, the current cycle, the approved upload,
and the hashes of the files that it sent.

`Store.save` writes it atomically (temp, fsync, rename), and a lock excludes a second agent.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from cardsync_agent import clock, durable

HOME = ".cardsync-agent"
FORMAT = 1
MOST_IMPORTED = 200


class StateProblem(Exception):
    """The agent cannot write its journal, or another agent uses the folder; the message is one
    sentence for people.
    """


@dataclass
class StepRecord:
    name: str
    status: str
    duration_ms: int
    error: str | None = None


@dataclass
class Imported:
    sha256: str
    at: str


@dataclass
class Sent:
    """An order file whose rows the server has, from the day `since` on."""

    kind: str
    sha256: str
    since: str


@dataclass
class Part:
    """How much of the current order file the server has accepted."""

    file: Sent
    done: int = 0
    upload_ids: list[int] = field(default_factory=list)


@dataclass
class Claim:
    """A task of the server that this agent has claimed; the token proves the claim."""

    id: int
    kind: str
    claim_token: str
    payload: dict[str, Any] = field(default_factory=dict)
    attempt: int = 0


@dataclass
class Placed:
    """A file that was placed in the outbox. The record prevents a task from placing the same
    prices, or the same listings, again: an older server may serve listings twice.
    """

    sha256: str
    name: str


@dataclass
class Cycle:
    """The journal of one cycle. A field that is None is not set yet."""

    sync_cycle_id: str
    kind: str
    reason: str
    started_at: str
    planned: list[str]
    first_sync: bool = False
    steps: list[StepRecord] = field(default_factory=list)
    # The step export_inventory sets the next fields.
    file: str | None = None
    sha256: str | None = None
    exported_at: str | None = None
    # The step upload_inventory sets the next fields.
    key: str | None = None
    upload_url: str | None = None
    put_done: bool = False
    offered: bool = False
    raw_sent: bool = False
    last_sync_before: str | None = None
    upload_id: int | None = None
    # The step await_repricing sets the next fields.
    imported: bool = False
    needs_review: bool = False
    # The steps download_price_updates and import_prices set the next fields.
    export_name: str | None = None
    export_rows: int = 0
    export_staged: bool = False
    export_kind: str | None = None
    # Whether the server sent the file's kind: such a server serves listings again only if they are
    # to be placed again.
    export_kind_told: bool = False
    export_sha256: str | None = None
    # The server's number of the file of listings.
    export_number: int | None = None
    etag: str | None = None
    outbox_staged: bool = False
    # These cards were omitted from the delivered file: the marketplace refused them three times.
    paused_cards: list[int] = field(default_factory=list)
    # Why the prices were saved but not delivered: the account does not push prices.
    mode_refused: str | None = None
    # The step fetch_orders and the steps that depend on it set these: the current file, and all
    # files that were sent.
    part: Part | None = None
    delivered: list[Sent] = field(default_factory=list)
    # The step fetch_sales_report stores the chosen months here.
    months: list[str] | None = None
    # `unable` are the steps that this agent does not support, `lacking` the steps for which the
    # marketplace had nothing.
    unable: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    # The reason why the rest of the cycle is not done, whatever steps are left.
    over: str | None = None
    # The server's task that this cycle does; None for a sync.
    task: Claim | None = None
    # The cycle's end; once the status is set, only the report to the server is left.
    status: str | None = None
    duration_ms: int = 0

    @property
    def handed_over(self) -> bool:
        """Return whether the server has the upload, or may have it."""
        return self.offered or self.raw_sent or self.upload_id is not None

    @property
    def steps_done(self) -> set[str]:
        return {step.name for step in self.steps}

    @property
    def failed_steps(self) -> set[str]:
        return {step.name for step in self.steps if step.status == "failed"}

    @property
    def failure(self) -> str | None:
        """Return the first error of the cycle."""
        return self.over or next(
            (step.error or step.name for step in self.steps if step.status == "failed"), None
        )


@dataclass
class Approved:
    """The journal of the one upload that the seller approved."""

    file: str
    staged: bool = False
    placed: bool = False


@dataclass
class Memory:
    agent_id: str
    server: str | None = None
    cycle: Cycle | None = None
    approved: Approved | None = None
    etag: str | None = None
    imported: list[Imported] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    # The months whose sales summary the marketplace did not offer, each with the day it was asked.
    unoffered: dict[str, str] = field(default_factory=dict)
    # The number of the file of listings that was delivered last.
    listings: int | None = None
    # SHA-256 of the update that was last placed in DIR/updates, and of the update whose command was
    # started.
    update_placed: str | None = None
    update_commanded: str | None = None

    def belong_to(self, server: str) -> None:
        """Forget the imports and files of another server, because this server does not have
        them.
        """
        if self.server not in (None, server):
            self.imported, self.sent, self.placed = [], [], []
            self.etag, self.approved, self.listings = None, None, None
        self.server = server

    def hashes(self) -> frozenset[str]:
        return frozenset(entry.sha256 for entry in self.imported)

    def remember_import(self, sha256: str, now: datetime) -> None:
        kept = [entry for entry in self.imported if entry.sha256 != sha256]
        self.imported = [*kept, Imported(sha256, clock.rfc3339(now))][-MOST_IMPORTED:]

    def remember_placed(self, sha256: str, name: str) -> None:
        kept = [entry for entry in self.placed if entry.sha256 != sha256]
        self.placed = [*kept, Placed(sha256, name)][-MOST_IMPORTED:]

    def has_placed(self, sha256: str | None) -> bool:
        return any(entry.sha256 == sha256 for entry in self.placed)

    def has_sent(self, file: Sent) -> bool:
        return any(
            (s.kind, s.sha256) == (file.kind, file.sha256) and s.since <= file.since
            for s in self.sent
        )

    def remember_sent(self, file: Sent, forget: Collection[str]) -> None:
        """Store a sent file. `forget` are kinds whose rows the server may have skipped, because it
        did not have the orders that `file` contains.
        """
        kept = [
            s
            for s in self.sent
            if s.kind not in forget and (s.kind, s.sha256) != (file.kind, file.sha256)
        ]
        self.sent = [*kept, file][-MOST_IMPORTED:]


class Store:
    """`memory` is changed in place; the next `save` makes the change durable."""

    def __init__(self, folder: Path) -> None:
        self.home = make_home(folder)
        self.spool = self.home / "upload.spool"
        self._file = self.home / "state.json"
        self.set_aside: Path | None = None
        self.memory = self._load()

    def save(self) -> None:
        body = {"format": FORMAT, **asdict(self.memory)}
        try:
            durable.write(self._file, json.dumps(body, indent=1).encode())
        except OSError as trouble:
            raise StateProblem(
                f"The sync app cannot write its journal {self._file}: {trouble}."
            ) from trouble

    def _load(self) -> Memory:
        try:
            return _memory(json.loads(self._file.read_bytes()))
        except FileNotFoundError:
            return _new_memory()
        except (ValueError, TypeError, KeyError, AttributeError):
            # A crash cannot cause this; a disk or an editor can. The file stays for inspection; the
            # server has the record of all uploads.
            self.set_aside = self._file.with_name(
                f"state-broken-{clock.for_file_name(clock.now())}.json"
            )
            os.replace(self._file, self.set_aside)  # noqa: PTH105
            return _new_memory()
        except OSError as trouble:
            raise StateProblem(
                f"The sync app cannot read its journal {self._file}: {trouble}."
            ) from trouble


def make_home(folder: Path) -> Path:
    """Make the private directory; it contains presigned addresses, so only its owner may read it."""
    home = folder / HOME
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as trouble:
        raise StateProblem(f"The sync app cannot use the folder {folder}: {trouble}.") from trouble
    return home


@contextmanager
def only_agent(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it with the process, however that ends."""
    with (make_home(folder) / "lock").open("a+b") as file:
        # `status` and `doctor` hold the lock for a moment, to check whether it is free.
        for _ in range(3):
            if _try_lock(file):
                break
            clock.sleep(0.1)
        else:
            raise StateProblem(f"Another cardsync-agent already works in {folder}.")
        yield


def is_locked(folder: Path) -> bool:
    """Return whether an agent works in the folder; a folder that nobody has used stays unchanged."""
    try:
        with (folder / HOME / "lock").open("r+b") as file:
            return not _try_lock(file)
    except OSError:
        return False


def wait_for_lock(file: IO[bytes], seconds: float = 10.0) -> None:
    """Take a lock that other processes hold only briefly. Raises StateProblem."""
    ends = clock.monotonic() + seconds
    while not _try_lock(file):
        if clock.monotonic() > ends:
            raise StateProblem(f"Another cardsync-agent holds {file.name} for {seconds:.0f} s.")
        clock.sleep(0.05)


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _new_memory() -> Memory:
    return Memory(agent_id=uuid.uuid4().hex)


def _memory(raw: dict[str, Any]) -> Memory:
    memory = Memory(**_known(Memory, raw))
    memory.imported = [Imported(**_known(Imported, entry)) for entry in raw.get("imported") or ()]
    memory.sent = [Sent(**_known(Sent, entry)) for entry in raw.get("sent") or ()]
    memory.placed = [Placed(**_known(Placed, entry)) for entry in raw.get("placed") or ()]
    memory.cycle = _cycle(raw["cycle"]) if raw.get("cycle") else None
    memory.approved = Approved(**_known(Approved, raw["approved"])) if raw.get("approved") else None
    return memory


def _cycle(raw: dict[str, Any]) -> Cycle:
    cycle = Cycle(**_known(Cycle, raw))
    cycle.steps = [StepRecord(**_known(StepRecord, step)) for step in raw.get("steps") or ()]
    cycle.delivered = [Sent(**_known(Sent, entry)) for entry in raw.get("delivered") or ()]
    if task := raw.get("task"):
        cycle.task = Claim(**_known(Claim, task))
    if part := raw.get("part"):
        cycle.part = Part(**_known(Part, part) | {"file": Sent(**_known(Sent, part["file"]))})
    clock.read_rfc3339(cycle.started_at)
    return cycle


def _known(shape: type, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that this version knows: a newer agent's journal must not stop an older
    agent.
    """
    return {f.name: raw[f.name] for f in fields(shape) if f.name in raw}

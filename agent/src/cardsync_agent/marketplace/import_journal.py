"""Journals the progress of a price file's import into the marketplace, batch by batch, so that a
kill -9 anywhere neither loses nor repeats a batch. The files of the batches are beside the journal.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from cardsync_agent import durable
from cardsync_agent.marketplace.price_batches import Listed, Plan, rows_of

_JOURNAL = "import.json"
# `unread`: published, and the marketplace's prices are not verified yet.
State = Literal["planned", "publishing", "unread", "published"]


class Batch(msgspec.Struct):
    """`before` has the batch's cards as the marketplace showed them right before the publication.
    `is_added` means that the batch is one card's new stock, for the marketplace's form.
    """

    file: str
    rows: int
    state: State = "planned"
    is_canary: bool = False
    is_added: bool = False
    before: dict[int, Listed] = {}


class Import(msgspec.Struct):
    """The import of one price file of exports/ with a pack; its hash covers the bytes to import.
    `gone` are cards that the marketplace did not list. `stopped` is why the import must not
    continue.
    """

    name: str
    sha256: str
    batches: list[Batch]
    pack: str = ""
    gone: list[int] = []
    stopped: str | None = None

    @property
    def is_done(self) -> bool:
        return all(batch.state == "published" for batch in self.batches)


class ImportJournal:
    """Stores the last import, and the pack whose canary has passed."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "imports"
        self._file, self._tried = self.folder / _JOURNAL, self.folder / "canary.txt"

    def of(self, name: str) -> Import | None:
        """Return the begun import of a price file, if it is the last import."""
        last = self.last()
        return last if last is not None and last.name == name else None

    def last(self) -> Import | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Import)
        except (OSError, msgspec.MsgspecError):
            return None

    def begin(self, name: str, content: bytes, plan: Plan, pack: str) -> Import:
        """Write the batches' files and the journal; the files of an earlier import are deleted."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        batches = self._batches(name, plan, 1)
        sha256 = hashlib.sha256(content).hexdigest()
        made = Import(name, sha256, batches, pack, plan.gone)
        self.save(made)
        kept = {batch.file for batch in batches}
        for old in self.folder.glob("*.csv"):
            if old.name not in kept:
                old.unlink(missing_ok=True)
        return made

    def go_on_with(self, one: Import, plan: Plan, pack: str) -> None:
        """Replace the unpublished batches by a new plan."""
        done = [batch for batch in one.batches if batch.state != "planned"]
        one.batches = [*done, *self._batches(one.name, plan, len(one.batches) + 1)]
        one.gone, one.pack = [*one.gone, *plan.gone], pack
        self.save(one)

    def _batches(self, name: str, plan: Plan, first: int) -> list[Batch]:
        batches = []
        for number, file in enumerate([*plan.files, *plan.added], first):
            target = self.folder / f"{Path(name).stem}.{number}.csv"
            durable.write(target, file)
            is_canary = plan.has_canary and number == first
            is_added = number - first >= len(plan.files)
            rows = len(rows_of(file)[1])
            batches.append(Batch(target.name, rows, is_canary=is_canary, is_added=is_added))
        return batches

    def save(self, one: Import) -> None:
        durable.write(self._file, msgspec.json.encode(one))

    def settle(self, name: str, *, published: bool) -> None:
        """Record how the last import ended, as a person reports it; do nothing if the report is
        about another file.
        """
        if (one := self.of(name)) is None:
            return
        for batch in one.batches:
            batch.state = "published" if published else "planned"
        if not published:
            one.stopped = f"you reported that the marketplace did not take {name}"
        self.save(one)

    def path(self, batch: Batch) -> Path:
        return self.folder / batch.file

    def has_tried(self, pack: str) -> bool:
        """Return whether a canary has passed with this pack."""
        try:
            return self._tried.read_text("utf-8") == pack
        except OSError:
            return False

    def note_tried(self, pack: str | None) -> None:
        """Record that a canary has passed with this pack; None requires a canary for the next file."""
        durable.write(self._tried, (pack or "").encode())

"""The processes of one test run share a folder; what is made there once is made under a lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Only one process of the run is in the block; the lock ends with its process."""
    with (Path(os.environ["CARDSYNC_TEST_DIR"]) / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def template_of_run() -> str:
    """The migrated database that all processes of a run copy theirs from."""
    folder = Path(os.environ["CARDSYNC_TEST_DIR"]).name.lower()
    return "template_" + "".join(letter for letter in folder if letter.isalnum())

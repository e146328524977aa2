"""Waits for an unavailable database at a worker's start, so that no init system must restart the
worker.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cardsync.platform.database.migrate import DatabaseAway, check
from cardsync.platform.settings import Settings

TRY_SECONDS: Final = 1.0
# The reason for the wait is printed at the first try, and then once per this number of tries.
_SAID_EACH: Final = 60


def await_database(settings: Settings, say: Callable[[str], None]) -> None:
    """Return once the database answers with this program's schema. Raises RuntimeError if it has a
    different schema.
    """
    assert settings.database_url is not None
    tries = 0
    while True:
        try:
            check(settings.database_url)
        except DatabaseAway as e:
            if tries % _SAID_EACH == 0:
                say(f"{e}; trying again until it can")
            tries += 1
            show_life(settings.worker_alive_file)
            time.sleep(TRY_SECONDS)
        else:
            return


def show_life(file: Path | None) -> None:
    """Touch the file that a probe checks; a full disk does not end a worker."""
    if file is not None:
        with contextlib.suppress(OSError):
            file.touch()

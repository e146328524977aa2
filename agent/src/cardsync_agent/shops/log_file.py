"""The agent's own log in the shop's home: the lines for people and the lines for programs, without
secrets. Rotation keeps the log small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from cardsync_agent import clock

LOG_FILE = "agent.log"
MOST_BYTES = 1_000_000
KEPT = 3
_SECRETS = re.compile(r"csk_[\w-]{4,}|(?<=[?&])[\w-]*(signature|token|credential)=[^&\s]+", re.I)


class LogFile:
    """Writes a line for every event; a line that cannot be written is lost, and the work
    continues.
    """

    def __init__(self, home: Path, key: str, most: int = MOST_BYTES) -> None:
        self._path, self._key, self._most = home / LOG_FILE, key, most

    def __call__(self, event: str, text: str, problem: bool, more: Mapping[str, object]) -> None:
        if not text:
            return
        mark = "!" if problem else " "
        line = f"{clock.for_people(clock.now())} {mark} {without_secrets(text, self._key)}"
        with suppress(OSError):
            self._turn_over()
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(" ".join(line.splitlines()) + "\n")

    def _turn_over(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < self._most:
            return
        # The oldest file is overwritten. On Windows a file that a program reads cannot be renamed:
        # then the log keeps growing, and is rotated later.
        with suppress(PermissionError):
            for number in range(KEPT - 1, 0, -1):
                older = _numbered(self._path, number)
                if older.exists():
                    older.replace(_numbered(self._path, number + 1))
            self._path.replace(_numbered(self._path, 1))


def without_secrets(text: str, key: str) -> str:
    """Mask the key, and any text that looks like a key or a signed address."""
    return _SECRETS.sub("***", text.replace(key, "***") if key else text)


def last_lines(home: Path, count: int) -> list[str]:
    """Return the newest lines, oldest first, from as many files as needed."""
    lines: list[str] = []
    path = home / LOG_FILE
    for file in [path, *(_numbered(path, number) for number in range(1, KEPT + 1))]:
        if len(lines) >= count or not file.exists():
            break
        lines = file.read_text("utf-8", "replace").splitlines() + lines
    return lines[-count:] if count else []


def new_lines(home: Path, pause: float = 0.5) -> Iterator[str]:
    """Yield the lines that are written from now on, without end, also to the next file."""
    path, place = home / LOG_FILE, 0
    with suppress(OSError):
        place = path.stat().st_size
    part = ""
    while True:
        with suppress(OSError):
            if path.stat().st_size < place:
                place = 0
            with path.open("rb") as file:
                file.seek(place)
                added = file.read()
            place += len(added)
            *whole, part = (part + added.decode("utf-8", "replace")).split("\n")
            yield from whole
        clock.sleep(pause)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")

"""Writes files so that a kill -9 or a power cut leaves them either absent or complete, by fsync and
rename.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write(target: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` to `target`, replacing an existing file. A private file is readable only by
    its owner, from its first byte on.
    """
    part = _part_of(target)
    if private:
        part.unlink(missing_ok=True)
    _write_through(part, content, 0o600 if private else 0o666)
    os.replace(part, target)  # noqa: PTH105 - the one commit primitive of this module, kept visible
    _sync_directory(target.parent)


def place(
    target: Path, content: Callable[[], bytes], *, staged: bool, note_staged: Callable[[], None]
) -> None:
    """Place a file for another program exactly once, even after crashes.

    `note_staged` journals that the hidden part file is complete; after that a missing part file
    means that it was renamed, even if the reader has taken the file since.
    """
    part = _part_of(target)
    if not staged:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_through(part, content())
        note_staged()
    if part.exists():
        os.replace(part, target)  # noqa: PTH105
        _sync_directory(target.parent)


def place_folder(stage: Path, target: Path) -> None:
    """Place a whole folder for another program: the files are flushed, then the folder is renamed."""
    for path in stage.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _sync_directory(stage)
    os.replace(stage, target)  # noqa: PTH105
    _sync_directory(target.parent)


def is_placed(target: Path, *, staged: bool) -> bool:
    return staged and not _part_of(target).exists()


def discard_parts(directory: Path, name_pattern: str) -> None:
    """Remove part files that a crash left before they were journaled."""
    for part in directory.glob(f".{name_pattern}.part"):
        part.unlink(missing_ok=True)


def _part_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.part")


def _write_through(path: Path, content: bytes, mode: int = 0o666) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # Windows cannot open a directory, and journals its renames itself
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

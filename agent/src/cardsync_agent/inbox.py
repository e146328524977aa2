"""Finds the files to upload in DIR/inbox: a private copy of the newest pricing export, or the
contents of order files of a kind. If there is no such file, NoExport has the reason.

A file is usable if its name ends as a table's does (TABLES), it is complete (unchanged for 2 s),
and it has the marketplace's header; the rest of its name is ignored. The copy of a pricing export
is uploaded, so that a file that is replaced in the meantime cannot change the upload of a resumed
cycle. Order files are not copied, because they may contain streets, and because sending their rows
twice does no harm.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cardsync_agent import clock, durable, file_kinds
from cardsync_agent.csv_records import GZIP_MAGIC, Damaged, lines_of
from cardsync_agent.file_kinds import PRICING_COLUMNS, column
from cardsync_agent.orders import Kind, is_known, kind_of
from cardsync_agent.table_text import cells_of

HEAD_BYTES = 65_536
GZIP_FROM_BYTES = 4_096  # compressing a smaller file saves too little
MOST_LOOKS = 5
# Workbooks are included: they cannot be read, and the message explains that.
TABLES = (".csv", ".csv.gz", ".txt", ".tsv", ".tab", ".xlsx", ".xlsm", ".xls", ".ods", ".numbers")


class NoExport(Exception):
    """There is nothing to upload; the message gives the reason, for the cycle's log."""


@dataclass(frozen=True)
class InventoryExport:
    path: Path
    sha256: str
    size: int
    exported_at: datetime


@dataclass(frozen=True)
class OrderFile:
    path: Path
    sha256: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class _Look:
    """The state of one file at one moment. If two states 2 s apart are equal, no program is writing
    the file.
    """

    path: Path
    size: int
    mtime_ns: int

    def age(self, now: datetime) -> float:
        return now.timestamp() - self.mtime_ns / 1e9


def take_newest(
    inbox: Path, spool: Path, known: frozenset[str], settle: float, sleep: Callable[[float], None]
) -> InventoryExport:
    """Copy the newest usable export to `spool`.

    Files whose hashes are in `known` are not used again.
    """
    for _ in range(MOST_LOOKS):
        look, newer = _newest_usable(inbox, settle, sleep)
        content = look.path.read_bytes()
        if _look(look.path) == look:
            break
    else:
        raise NoExport(f"{look.path.name} keeps changing")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 in known:
        why = [*newer[:3], f"{look.path.name} was imported before"]
        raise NoExport(f"no new export in inbox ({'; '.join(why)})")
    durable.write(spool, as_sent(content))
    return InventoryExport(
        look.path, sha256, len(content), min(clock.moment(look.mtime_ns / 1e9), clock.now())
    )


def take_of(
    inbox: Path, kind: Kind, settle: float, sleep: Callable[[float], None]
) -> list[OrderFile]:
    """Return the newest files of a kind, as many as the kind allows, oldest first."""
    for _ in range(MOST_LOOKS):
        looks, unsettled = _settled(inbox, settle, sleep)
        mine = [look for look in looks if _kind_at(look.path) is kind][: kind.most]
        contents = [(look.path, look.path.read_bytes()) for look in reversed(mine)]
        if [_look(look.path) for look in mine] == mine:
            break
    else:
        raise NoExport(f"the {kind.name} in the inbox keeps changing")
    if not mine:
        young = next((path for path in unsettled if _kind_at(path) is kind), None)
        raise NoExport(
            f"{young.name} is still being written" if young else f"no {kind.name} in the inbox"
        )
    return [
        OrderFile(path, hashlib.sha256(content).hexdigest(), content) for path, content in contents
    ]


def as_sent(content: bytes) -> bytes:
    """Return the bytes to send: compressed, unless they are gzip already or few.

    The same file always gives the same bytes.
    """
    if content[:2] == GZIP_MAGIC or len(content) < GZIP_FROM_BYTES:
        return content
    return gzip.compress(content, compresslevel=6, mtime=0)


def header_problem(path: Path) -> str | None:
    """Return why this file is not a pricing export, or None if its header is correct."""
    header = _header_at(path)
    if isinstance(header, str):
        return header
    kind = file_kinds.kind_of(header)
    if kind is file_kinds.PRICING:
        return None
    if kind is file_kinds.APP_EXPORT:
        return kind.told().removeprefix("this ")
    names = set(map(column, header))
    missing = [name for name in PRICING_COLUMNS if column(name) not in names]
    none = len(missing) == len(PRICING_COLUMNS)
    return "is no pricing export" if none else f"lacks the column {missing[0]}"


def _kind_at(path: Path) -> Kind | None:
    header = _header_at(path)
    return None if isinstance(header, str) else kind_of(header)


def _header_at(path: Path) -> list[str] | str:
    """Return the column names, or why there are none."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head[:2] == GZIP_MAGIC:
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
        lines = lines_of(head, _is_known)
    except OSError as trouble:
        return f"cannot be read ({trouble.strerror or trouble})"
    except zlib.error:
        return "is damaged gzip"
    except Damaged as damaged:
        return str(damaged)
    return cells_of(lines[lines.form.before], lines.form.delimiter)


def _is_known(header: Sequence[str]) -> bool:
    return file_kinds.kind_of(header) is not None or is_known(header)


def _newest_usable(
    inbox: Path, settle: float, sleep: Callable[[float], None]
) -> tuple[_Look, list[str]]:
    """Return the newest usable file, and the problems of newer files."""
    looks, unsettled = _settled(inbox, settle, sleep)
    problems = [f"{path.name} is still being written" for path in unsettled]
    for look in looks:
        problem = header_problem(look.path)
        if problem is None:
            return look, problems
        if _kind_at(look.path) is None:  # an order list is not a failed attempt at a pricing export
            problems.append(f"{look.path.name} {problem}")
    raise NoExport(
        f"no usable export in inbox: {'; '.join(problems[:3])}"
        if problems
        else "no export in inbox"
    )


def _settled(
    inbox: Path, settle: float, sleep: Callable[[float], None]
) -> tuple[list[_Look], list[Path]]:
    """Return the complete files, newest first, and the incomplete files.

    Wait briefly until the newest file is complete, because it is the file to use.
    """
    before = _looks(inbox)
    now = clock.now()
    whole = {look for look in before if look.age(now) >= settle}
    for _ in range(MOST_LOOKS):
        if not before or before[0] in whole:
            break
        sleep(settle)
        after = _looks(inbox)
        whole = set(before) & set(after)
        before = after
    return [look for look in before if look in whole], [
        look.path for look in before if look not in whole
    ]


def _looks(inbox: Path) -> list[_Look]:
    paths = inbox.iterdir() if inbox.is_dir() else ()
    named = (
        path for path in paths if path.name.lower().endswith(TABLES) and path.name[0] not in ".~"
    )
    looks = [look for path in named if (look := _look(path)) is not None]
    return sorted(looks, key=lambda look: (look.mtime_ns, look.path.name), reverse=True)


def _look(path: Path) -> _Look | None:
    try:
        facts = path.stat()
    except OSError:  # the file vanished since it was listed
        return None
    return _Look(path, facts.st_size, facts.st_mtime_ns) if _is_regular(facts) else None


def _is_regular(facts: os.stat_result) -> bool:
    return (facts.st_mode & 0o170000) == 0o100000

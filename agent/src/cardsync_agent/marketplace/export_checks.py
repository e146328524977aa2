"""Checks a downloaded pricing export before it is used, and renames its columns to the names that
the service reads. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cardsync_agent.csv_records import Damaged, Record, header_of, lines_of, records
from cardsync_agent.file_kinds import PRICING_COLUMNS, column


def export_problem(content: bytes) -> str | None:
    """Return the reason why this export must not be used, or None."""
    try:
        lines = lines_of(content)
    except Damaged as damaged:
        return f"it {damaged}"
    names = set(header_of(lines))
    missing = [name for name in PRICING_COLUMNS if column(name) not in names]
    if missing:
        return f"it lacks the column {missing[0]}"
    if not any(isinstance(record, Record) for record in records(lines)):
        return "it has no row"
    return None


def in_one(exports: Sequence[bytes]) -> bytes:
    """Join several files into one. Raises Damaged if a file stops in the middle of a line, or has
    other columns than the first file.
    """
    if any(map(_is_cut, exports)):
        raise Damaged("stops in the middle of a line")
    first, *others = exports
    whole = first
    for other in others:
        if header_of(lines_of(other)[:1]) != header_of(lines_of(first)[:1]):
            raise Damaged("has other columns for one product line than for another")
        rows = other.partition(b"\n")[2]
        whole += (b"" if whole.endswith((b"\n", b"\r")) else b"\n") + rows
    return whole


def renamed(content: bytes, columns: Mapping[str, str]) -> bytes:
    """Return the file with our names of its columns; the rows keep their bytes."""
    if not columns:
        return content
    head, end, rows = content.partition(b"\n")
    known = {column(theirs): ours for theirs, ours in columns.items()}
    bom = b"\xef\xbb\xbf" if head.startswith(b"\xef\xbb\xbf") else b""
    names = head.removeprefix(bom).decode("utf-8", "replace").rstrip("\r").split(",")
    ours = [_quoted_as(name, known.get(column(name.strip().strip('"')))) for name in names]
    line_end = b"\r\n" if head.endswith(b"\r") else end
    return bom + ",".join(ours).encode() + line_end + rows


def _quoted_as(name: str, ours: str | None) -> str:
    if ours is None:
        return name
    return f'"{ours}"' if name.strip().startswith('"') else ours


def _is_cut(content: bytes) -> bool:
    """Return whether the last line has no line end, and fewer columns than the header."""
    if content.endswith((b"\n", b"\r")):
        return False
    lines = lines_of(content)
    last = [line for line in lines if line.strip()][-1:]
    return len(header_of(last)) < len(header_of(lines[:1]))

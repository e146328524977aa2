"""A table as a CSV that streams: parts of rows come in, encoded parts of the file go out.

Each part is read by itself, so that a slow reader keeps no connection and no more than one part.

A spreadsheet calculates a cell that begins with one of a few signs, and may run what a buyer wrote
there. In every CSV that a person may open, such a text begins with an apostrophe (`safe`). The
marketplace's own files have a fixed form and are left as they are.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

import polars as pl
from litestar import Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

Row = TypeVar("Row")
# Others have their turn between parts, and a part has at most so many rows.
PART: Final = 1_000
_SIGNS: Final = frozenset("=+-@\u2212")
_LINE_ENDS: Final = ("\t", "\r", "\n")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# Blank letters and symbols; other characters that nobody sees are told by their category: blanks,
# control and format characters, marks. The apostrophe is one of them, so that `as_it_was` is exact.
_UNSEEN: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0'")
_UNSEEN_CATEGORIES: Final = frozenset("ZCM")
_BEGINS_PLAINLY: Final = r"^[0-9A-Za-z]"


async def streamed(
    turn: Callable[[], AbstractAsyncContextManager[None]],
    columns: Sequence[str],
    read: Callable[[Row | None], Awaitable[list[Row]]],
    line: Callable[[Row], Sequence[Any]],
    part: int = PART,
) -> AsyncIterator[bytes]:
    """Return the file in parts, each read and written in a turn. The first one is there already, so
    that a wrong filter is refused before anything is sent; `read` returns the rows behind a row.
    """

    async def made(after: Row | None) -> tuple[Row | None, bytes]:
        # A file that is not read keeps the bytes of a part and its last row: the other rows of many
        # such files would make each collection of garbage take a quarter of a second.
        async with turn():
            rows = await read(after)
            last = rows[-1] if len(rows) == part else None
            return last, await asyncio.to_thread(_lines, rows, line)

    return _parts(encoded([columns]), await made(None), made)


async def _parts(
    head: bytes,
    first: tuple[Row | None, bytes],
    made: Callable[[Row], Awaitable[tuple[Row | None, bytes]]],
) -> AsyncIterator[bytes]:
    last, data = first
    yield head + data
    while last is not None:
        last, data = await made(last)
        yield data


def _lines(rows: Sequence[Row], line: Callable[[Row], Sequence[Any]]) -> bytes:
    return encoded([line(row) for row in rows])


def safe(value: Any) -> Any:
    """Return the value; a text that a spreadsheet would calculate begins with an apostrophe."""
    if isinstance(value, str) and _is_calculated(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def as_it_was(text: str) -> str:
    """Return a text that `safe` has changed as it was before."""
    return text[1:] if text.startswith("'") and safe(text[1:]) == text else text


def _is_calculated(text: str) -> bool:
    if text[:1].isascii() and text[:1].isalnum():
        return False
    if text.startswith(_LINE_ENDS):
        return True
    for character in text:
        is_unseen = unicodedata.category(character)[0] in _UNSEEN_CATEGORIES
        if not (is_unseen or character in _UNSEEN):
            # The wide, small and raised forms of a sign are the sign.
            return unicodedata.normalize("NFKC", character)[:1] in _SIGNS
    return False


def safe_texts(frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return the frame with these columns of texts as `safe` writes them."""
    changed = []
    for name in columns:
        odd = frame.filter(~pl.col(name).str.contains(_BEGINS_PLAINLY))[name].unique()
        if odd.len():
            safely = [safe(text) for text in odd.to_list()]
            changed.append(pl.col(name).replace(odd, pl.Series(safely, dtype=pl.String)))
    return frame.with_columns(changed)


def encoded(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the rows as lines of a CSV that a person may open."""
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\r\n")
    lines.writerows([safe(value) for value in row] for row in rows)
    return file.getvalue().encode()


def headers(name: str) -> dict[str, str]:
    """Return the header that gives the file its name."""
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


def file(parts: AsyncIterator[bytes], name: str) -> Response[bytes]:
    """Answer with the parts as a file of that name."""
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=headers(name)))


def answer(what: str) -> ResponseSpec:
    """Describe the file to OpenAPI."""
    told = f"{what}, with one line of names. A text that a spreadsheet would calculate begins with an apostrophe"
    return ResponseSpec(bytes, description=told, media_type="text/csv", generate_examples=False)

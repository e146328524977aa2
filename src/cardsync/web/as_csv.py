"""Sends answers as CSV, and describes them to OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from litestar import Response
from litestar.background_tasks import BackgroundTask
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

from cardsync.web.made_files import UnnamedFile, chunks


def headers(name: str) -> dict[str, str]:
    """Return the header that gives the downloaded file its name."""
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


def file(
    parts: AsyncIterator[bytes], name: str, ended: BackgroundTask | None = None
) -> Response[bytes]:
    """Answer with a CSV file made of `parts`. `ended` is called when the answer ends, also if the
    client disconnects.
    """
    answer = Stream(parts, media_type="text/csv", headers=headers(name), background=ended)
    return cast("Response[bytes]", answer)


def body(
    data: bytes | UnnamedFile, headers: dict[str, str], media_type: str = "text/csv"
) -> Response[bytes]:
    """Answer with the data. A large file is streamed, so that it is never whole in memory."""
    if isinstance(data, bytes):
        return Response(data, media_type=media_type, headers=headers)
    headers = headers | {"Content-Length": str(data.size)}
    answer = Stream(chunks(data.file), media_type=media_type, headers=headers)
    return cast("Response[bytes]", answer)


def answer(what: str) -> ResponseSpec:
    """Describe a CSV answer to OpenAPI."""
    sentence = (
        f"{what}, with one line of names. A text that a spreadsheet would calculate begins with"
        " an apostrophe"
    )
    return ResponseSpec(bytes, description=sentence, media_type="text/csv", generate_examples=False)

"""Builders of pictures: files of any size and kind, and a host of this machine that shows them."""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from builders import a_chunk


def a_picture(
    width: int = 488, height: int = 680, *, form: str = "JPEG", color: Any = "navy", **options: Any
) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), color).save(file, form, **options)
    return file.getvalue()


def a_bomb(side: int = 40_000) -> bytes:
    """A small PNG that says it is a large one, and is: some kilobytes become gigabytes."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    packer = zlib.compressobj(9)
    row = b"\0" * (3 * side + 1)
    packed = b"".join(packer.compress(row) for _ in range(64)) + packer.flush()
    return (
        b"\x89PNG\r\n\x1a\n"
        + a_chunk(b"IHDR", header)
        + a_chunk(b"IDAT", packed)
        + a_chunk(b"IEND", b"")
    )


def size_of(content: bytes) -> tuple[int, int]:
    """The size of a WebP, and that it is one."""
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "WEBP"
        return picture.size


@dataclass
class Answer:
    """`forever` sends bytes without an end, slowly."""

    body: bytes = b""
    kind: str = "image/jpeg"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    forever: bool = False


@dataclass
class PictureSite:
    """`answers` by path; every other path is 404. `asked` are the paths in their order."""

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def shows(self, name: str, body: bytes | None = None, **answer: Any) -> str:
        """Return the address of the picture."""
        self.answers[f"/{name}"] = Answer(a_picture() if body is None else body, **answer)
        return f"http://{self.host}/{name}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        self.asked.append(path)
        given = self.answers.get(path, Answer(status=404))
        told = {"Content-Type": given.kind, "Connection": "close", **given.headers}
        if not given.forever:
            told = {"Content-Length": str(len(given.body)), **told}
        lines = [f"HTTP/1.1 {given.status} OK", *(f"{name}: {v}" for name, v in told.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await asyncio.sleep(given.seconds)
        try:
            writer.write(given.body)
            while given.forever:
                writer.write(b"\xff")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def a_picture_site() -> AsyncIterator[PictureSite]:
    site = PictureSite()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site

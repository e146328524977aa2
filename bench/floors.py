"""The floors as servers: raw ASGI programs on granian that do nothing but the work itself.

`ground.floor_server` starts them.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import os
import uuid
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from isal import igzip
from psycopg_pool import AsyncConnectionPool

from cardsync.access.caller import CALLER, CallerAccount
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.urls import libpq_url

SYNC_MODE, PRODUCT_LINES, UPLOAD_APPROVED = (
    CallerAccount.__struct_fields__.index(name)
    for name in ("sync_mode", "product_lines", "upload_approved")
)
JSON = [(b"content-type", b"application/json")]
CHUNK = 128 * 1024
ACCOUNT = PolledQuery(
    "account",
    "SELECT sync_mode, product_lines, suspended, upload_approved FROM account WHERE seller_id = $1",
)


@asynccontextmanager
async def _pool(size: int) -> AsyncIterator[AsyncConnectionPool[Any]]:
    async def prepare(connection: Any) -> None:
        for query in (CALLER, ACCOUNT):
            await connection.execute(f"PREPARE {query.name} AS {query.sql}")

    url, kwargs = libpq_url(os.environ["FLOOR_DATABASE"]), {"autocommit": True}
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        url, min_size=size, max_size=size, kwargs=kwargs, configure=prepare, open=False
    )
    await pool.open(wait=True)
    yield pool
    await pool.close()


async def _answer(send: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Any) -> bytes:
    message = await receive()
    body: bytes = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    return body


class Program:
    """An ASGI application with a pool; `size` connections."""

    size = 4

    def __init__(self) -> None:
        self._stack: Any = None
        self._opening = asyncio.Lock()
        self._opened = asyncio.Lock()
        self.pool: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        if self.pool is None:
            await self._open()
        if scope["path"] == "/ready":
            await _answer(send, 200, [], b"")
            return
        await self.serve(scope, receive, send)

    async def _open(self) -> None:
        async with self._opening:
            if self.pool is None:
                self._stack = _pool(self.size)
                self.pool = await self._stack.__aenter__()

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        raise NotImplementedError


class HeartbeatIn(msgspec.Struct):
    version: str | None = None
    platform: str | None = None


class Heartbeat(Program):
    """Key hash, the caller's row in one transaction, JSON in and out; last-seen kept and written
    once a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[bytes, tuple[int, int]] = {}
        self.seen: dict[int, tuple[datetime.datetime, str | None, str | None]] = {}
        self.flushing: asyncio.Task[None] | None = None
        self.decoder = msgspec.json.Decoder(HeartbeatIn)
        self.encoder = msgspec.json.Encoder()

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        if self.flushing is None:
            self.flushing = asyncio.create_task(self._flush())
        key = next(value for name, value in scope["headers"] if name == b"authorization").split(
            b" ", 1
        )[1]
        # As the product: the checksum, then the hash.
        zlib.crc32(key[:-6])
        digest = hashlib.sha256(key).digest()
        if (owner := self.known.get(digest)) is None:
            async with self.pool.connection() as connection:
                cursor = await connection.execute(
                    "SELECT seller_id, id FROM api_key WHERE key_hash = %s", [digest]
                )
                owner = self.known[digest] = await cursor.fetchone()
        seller, key_id = owner
        sql = f"SET LOCAL app.seller_id = '{seller}'; EXECUTE {CALLER.name} ({seller}, {key_id})"
        async with self.pool.connection() as connection:
            cursor = await connection.execute(sql)
            cursor.nextset()
            row = await cursor.fetchone()
        body = self.decoder.decode(await _body(receive))
        self.seen[seller] = (datetime.datetime.now(datetime.UTC), body.version, body.platform)
        out = {
            "update_available": False,
            "force_update": False,
            "product_lines": [{"name": name, "category_id": 1} for name in row[PRODUCT_LINES]],
            "has_pending_tasks": False,
            "sync_mode": row[SYNC_MODE],
            "upload_approved": row[UPLOAD_APPROVED],
        }
        await _answer(send, 200, JSON, self.encoder.encode(out))

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(1)
            seen, self.seen = self.seen, {}
            for seller, (moment, _, _) in seen.items():
                async with self.pool.connection() as connection:
                    await connection.execute(
                        "UPDATE agent_seen SET last_seen_at = %s WHERE seller_id = %s",
                        [moment, seller],
                    )


class Poll(Program):
    """Heartbeat or poll: key hash, one primary-key row in the seller's scope, JSON in and out;
    nothing is kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[bytes, int] = {}
        self.decoder = msgspec.json.Decoder(HeartbeatIn)
        self.encoder = msgspec.json.Encoder()

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        key = next(value for name, value in scope["headers"] if name == b"authorization").split(
            b" ", 1
        )[1]
        digest = hashlib.sha256(key).digest()
        if (seller := self.known.get(digest)) is None:
            async with self.pool.connection() as connection:
                cursor = await connection.execute(
                    "SELECT seller_id FROM api_key WHERE key_hash = %s", [digest]
                )
                [seller] = await cursor.fetchone()
                self.known[digest] = seller
        async with self.pool.connection() as connection:
            cursor = await connection.execute(
                f"SET LOCAL app.seller_id = '{seller}'; EXECUTE {ACCOUNT.name} ({seller})"
            )
            cursor.nextset()
            mode, lines, _, approved = await cursor.fetchone()
        out: dict[str, Any]
        if scope["method"] == "POST":
            self.decoder.decode(await _body(receive))
            out = {
                "update_available": False,
                "force_update": False,
                "product_lines": [{"name": name, "category_id": 1} for name in lines],
                "has_pending_tasks": False,
                "sync_mode": mode,
                "upload_approved": approved,
            }
        else:
            out = {"action": "wait", "reason": "no_sync_needed", "sync_requested": False}
        await _answer(send, 200, JSON, self.encoder.encode(out))


class Accept(Program):
    """Receive + isal inflate + write with fsync + one commit."""

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        path = Path(os.environ["FLOOR_FOLDER"]) / uuid.uuid4().hex
        with path.open("wb") as file:
            more = True
            while more:
                message = await receive()
                file.write(message["body"])
                more = message.get("more_body", False)
            file.flush()
            await asyncio.to_thread(self._check, path, file.fileno())
        async with self.pool.connection() as connection:
            await connection.execute("INSERT INTO floor_upload (path) VALUES (%s)", [str(path)])
        await _answer(send, 202, JSON, b'{"status":"accepted"}')

    @staticmethod
    def _check(path: Path, descriptor: int) -> None:
        buffer = bytearray(CHUNK)
        with path.open("rb") as raw:
            reader = igzip.IGzipFile(fileobj=raw, mode="rb")
            while reader.readinto(buffer):
                pass
        os.fsync(descriptor)


class Export(Program):
    """Streams the COPY of the rows that the export would send, one transaction in the seller's
    scope.
    """

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        seller = int(os.environ["FLOOR_SELLER"])
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/csv")],
            }
        )
        async with self.pool.connection() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL app.seller_id = '{seller}'")
            async with connection.cursor().copy(os.environ["FLOOR_COPY"]) as copy:
                # psycopg hands over a row at a time; a message a row would measure the server,
                # not the COPY.
                parts, size = [], 0
                async for part in copy:
                    parts.append(part)
                    size += len(part)
                    if size > CHUNK:
                        await send(
                            {
                                "type": "http.response.body",
                                "body": b"".join(parts),
                                "more_body": True,
                            }
                        )
                        parts, size = [], 0
        await send({"type": "http.response.body", "body": b"".join(parts)})


class ReadRow(msgspec.Struct):
    marketplace_id: int
    new_price: Any
    old_price: Any = None


class ReadEvent(msgspec.Struct):
    rows: list[ReadRow]


class Read(Program):
    """A JSON body read into typed rows; nothing is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = msgspec.json.Decoder(ReadEvent)

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        rows = self.decoder.decode(await _body(receive)).rows
        await _answer(send, 201, JSON, msgspec.json.encode({"id": len(rows)}))


PROGRAMS = {"read": Read, "heartbeat": Heartbeat, "poll": Poll, "accept": Accept, "export": Export}


def app() -> Program:
    return PROGRAMS[os.environ["FLOOR_APP"]]()


def main() -> None:
    from granian import Granian
    from granian.constants import Interfaces, Loops

    host, _, port = os.environ["FLOOR_BIND"].rpartition(":")
    Granian(
        "floors:app", address=host, port=int(port), interface=Interfaces.ASGI,
        workers=int(os.environ.get("FLOOR_WORKERS", "1")), loop=Loops.uvloop, factory=True,
        log_enabled=False, log_access=False, backpressure=10_000,
    ).serve()  # fmt: skip


if __name__ == "__main__":
    main()

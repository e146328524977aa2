"""Stores and reads objects by key, in a local folder or a cloud bucket; `open_store(settings)`
returns the store.

Uploads arrive under `syncs/u<seller>/<uuid>.csv` by a presigned PUT. An accepted upload is copied
to a private key that no URL reaches. The local store calls fsync before it answers, because an
accepted upload must survive a power cut; a cloud store guarantees that itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import hmac
import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

import obstore

from cardsync.platform import errors, limits, secret
from cardsync.platform.settings import Settings

_CHUNK = 1 << 18


class ObjectExists(Exception):
    """An object with this key exists already, and a write must not replace it."""


class ObjectMissing(Exception):
    """There is no object under the key."""


class StoreAway(OSError):
    """The disk is full, read-only or broken; a later attempt may succeed."""


_AWAY = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ESTALE,
}


@contextmanager
def _as_unavailable() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if e.errno not in _AWAY or isinstance(e, StoreAway):
            raise
        raise StoreAway(e.errno, e.strerror) from e


class Store(ABC):
    """The interface of the stores."""

    @abstractmethod
    def spool(self) -> AbstractContextManager[tuple[Path, BinaryIO]]:
        """Open a new local file to stream a body into before `write`."""

    @abstractmethod
    def presign_put(self, key: str, expires_at: datetime) -> str:
        """Return a URL that takes one PUT to `key` until `expires_at`; for a local store, a path of
        our own route.
        """

    @abstractmethod
    async def size(self, key: str) -> int:
        """Return the bytes under `key`. Raises ObjectMissing."""

    @abstractmethod
    async def head(self, key: str, length: int) -> bytes:
        """Return the first `length` bytes. Raises ObjectMissing."""

    @abstractmethod
    async def copy(self, source: str, target: str) -> None:
        """Copy the current content of `source` to `target`; later changes do not affect the copy."""

    @abstractmethod
    async def write(self, key: str, path: Path) -> None:
        """Store the file at `path` durably under `key`."""

    @abstractmethod
    async def read(self, key: str) -> bytes:
        raise NotImplementedError

    @abstractmethod
    def read_range(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to, not including, `end`, in chunks."""

    @abstractmethod
    def presign_read(self, key: str, method: Literal["GET", "HEAD"]) -> str | None:
        """Return a URL by which anybody may read the object for some minutes. Return None if the
        service itself must send the bytes.
        """

    @abstractmethod
    async def delete(self, key: str) -> None:
        raise NotImplementedError

    @abstractmethod
    async def keys(self, prefix: str, before: datetime | None = None) -> list[str]:
        """Return the keys under `prefix` (a folder) in order; with `before`, only of objects last
        changed before it.
        """

    @abstractmethod
    async def sweep(self, prefix: str, before: datetime) -> int:
        """Delete objects under `prefix` (a folder) that were last changed before `before`; return
        how many.
        """

    @abstractmethod
    async def check(self) -> None:
        """Raise if the store cannot be written."""


def _make_durably(folder: Path) -> None:
    """Make a folder that survives a power cut: each new folder's name is synced in its parent."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(mode=0o700, exist_ok=True)
        _sync_directory(part.parent)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _spool(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    path = folder / uuid.uuid4().hex
    # The caller's block writes the bytes, so its errors are converted, too.
    with _as_unavailable():
        try:
            with path.open("xb") as file:
                yield path, file
        finally:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class LocalStore(Store):
    """Files under `root`. Objects are never changed in place, so a copy is a hard link."""

    root: Path
    # The secret is read only for upload URLs, so that everything else works without a secret.
    secret: Callable[[], bytes]

    def path(self, key: str) -> Path:
        path = (self.root / key).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise ObjectMissing(key)
        return path

    def presign_put(self, key: str, expires_at: datetime) -> str:
        expires = int(expires_at.timestamp())
        return f"/objects/{key}?expires={expires}&signature={self.signature(key, expires)}"

    def signature(self, key: str, expires: int) -> str:
        return hmac.new(
            self.secret(),
            f"PUT\n{key}\n{expires}".encode(),
            hashlib.sha256,
        ).hexdigest()

    def verify_put(self, key: str, expires: str, signature: str, now: datetime) -> None:
        """Raise unless this store signed the URL and it has not expired."""
        moment = (
            int(expires) if expires.isascii() and expires.isdigit() and len(expires) < 12 else 0
        )
        if not hmac.compare_digest(self.signature(key, moment).encode(), signature.encode()):
            raise errors.InvalidSignature
        if now.timestamp() > moment:
            raise errors.UrlExpired

    def spool(self) -> AbstractContextManager[tuple[Path, BinaryIO]]:
        """Open a new file beside the objects to stream a body into; the file is deleted at the end,
        so its bytes remain only if `write` has linked them.
        """
        folder = self.root / "incoming"
        with _as_unavailable():
            _make_durably(folder)
        return _spool(folder)

    def publish(self, path: Path, key: str) -> None:
        """Link the file at `path` durably under `key`. Raises ObjectExists if the key exists; of
        two simultaneous writers, one succeeds.
        """
        target = self.path(key)
        with _as_unavailable():
            _make_durably(target.parent)
            with path.open("rb") as file:
                os.fsync(file.fileno())
            try:
                os.link(path, target)
            except FileExistsError:
                raise ObjectExists(key) from None
            try:
                # Retention counts from now. Later hard links of backups do not change this time.
                os.utime(target)
                _sync_directory(target.parent)
            except OSError:
                target.unlink(missing_ok=True)
                raise

    async def size(self, key: str) -> int:
        try:
            return self.path(key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectMissing(key) from None

    async def head(self, key: str, length: int) -> bytes:
        try:
            with self.path(key).open("rb") as file:
                return file.read(length)
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def exists(self, key: str) -> bool:
        return self.path(key).exists()

    async def copy(self, source: str, target: str) -> None:
        try:
            await asyncio.to_thread(self.publish, self.path(source), target)
        except FileNotFoundError:
            raise ObjectMissing(source) from None

    async def write(self, key: str, path: Path) -> None:
        try:
            await asyncio.to_thread(self.publish, path, key)
        except FileNotFoundError as gone:
            # The body does not exist any more: a host whose clock is days ahead deleted it as
            # expired.
            raise StoreAway(gone.errno, gone.strerror) from gone

    async def read(self, key: str) -> bytes:
        try:
            with _as_unavailable():
                return await asyncio.to_thread(self.path(key).read_bytes)
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def read_range(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        with self.path(key).open("rb") as file:
            file.seek(start)
            while chunk := await asyncio.to_thread(file.read, min(_CHUNK, end - start)):
                start += len(chunk)
                yield chunk

    def presign_read(self, key: str, method: Literal["GET", "HEAD"]) -> str | None:
        return None

    async def delete(self, key: str) -> None:
        with _as_unavailable():
            self.path(key).unlink(missing_ok=True)

    async def check(self) -> None:
        await asyncio.to_thread(self._write_something)

    def _write_something(self) -> None:
        with self.spool() as (_, file):
            # Write a whole block: a few bytes may still fit on a full disk where a block does not.
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

    async def keys(self, prefix: str, before: datetime | None = None) -> list[str]:
        return await asyncio.to_thread(self._keys, prefix, before)

    def _keys(self, prefix: str, before: datetime | None) -> list[str]:
        found = []
        for path in (self.root / prefix).rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                changed = path.stat().st_mtime
                if path.is_file() and (before is None or changed < before.timestamp()):
                    found.append(path.relative_to(self.root).as_posix())
        return sorted(found)

    async def sweep(self, prefix: str, before: datetime) -> int:
        return await asyncio.to_thread(self._sweep, self.root / prefix, before.timestamp())

    def _sweep(self, folder: Path, before: float) -> int:
        removed = 0
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
        return removed


@dataclass(frozen=True)
class CloudStore(Store):
    """A bucket of any store that obstore supports; credentials come from the environment as its
    clients expect them.
    """

    store: obstore.store.S3Store | obstore.store.GCSStore | obstore.store.AzureStore

    def spool(self) -> AbstractContextManager[tuple[Path, BinaryIO]]:
        return _spool(Path(tempfile.gettempdir()))

    def presign_put(self, key: str, expires_at: datetime) -> str:
        lifetime = timedelta(seconds=limits.PRESIGNED_SECONDS)
        return obstore.sign(self.store, "PUT", key, lifetime)

    async def size(self, key: str) -> int:
        try:
            return int((await obstore.head_async(self.store, key))["size"])
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def head(self, key: str, length: int) -> bytes:
        try:
            return bytes(await obstore.get_range_async(self.store, key, start=0, length=length))
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def copy(self, source: str, target: str) -> None:
        try:
            await obstore.copy_async(self.store, source, target)
        except FileNotFoundError:
            raise ObjectMissing(source) from None

    async def write(self, key: str, path: Path) -> None:
        await obstore.put_async(self.store, key, path)

    async def read(self, key: str) -> bytes:
        try:
            return bytes(await (await obstore.get_async(self.store, key)).bytes_async())
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def read_range(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        part = await obstore.get_async(self.store, key, options={"range": (start, end)})
        async for chunk in part.stream():
            yield bytes(chunk)

    def presign_read(self, key: str, method: Literal["GET", "HEAD"]) -> str | None:
        return obstore.sign(self.store, method, key, timedelta(seconds=limits.PRESIGNED_SECONDS))

    async def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            await obstore.delete_async(self.store, key)

    async def keys(self, prefix: str, before: datetime | None = None) -> list[str]:
        found: list[str] = []
        async for batch in obstore.list(self.store, prefix):
            found += [
                item["path"] for item in batch if before is None or item["last_modified"] < before
            ]
        return sorted(found)

    async def sweep(self, prefix: str, before: datetime) -> int:
        removed = 0
        async for batch in obstore.list(self.store, prefix):
            old = [item["path"] for item in batch if item["last_modified"] < before]
            if old:
                await obstore.delete_async(self.store, old)
                removed += len(old)
        return removed

    async def check(self) -> None:
        await obstore.put_async(self.store, "health/ready", b"ok")


def secret_key(settings: Settings) -> bytes:
    """Return the installation's secret. Raises StoreAway if its folder cannot be used."""
    with _as_unavailable():
        return secret.secret_key(settings)


def open_store(settings: Settings) -> Store:
    if settings.object_store_url is None:
        return LocalStore(settings.data_dir / "objects", partial(secret_key, settings))
    store = obstore.store.from_url(settings.object_store_url)
    assert isinstance(
        store, obstore.store.S3Store | obstore.store.GCSStore | obstore.store.AzureStore
    )
    return CloudStore(store)


async def spool_body(
    file: BinaryIO,
    body: AsyncIterable[bytes],
    plain_cap: int,
    gzip_cap: int,
) -> int:
    """Stream a request body into `file` and return its size. The size limit is `gzip_cap` if the
    first two bytes are those of gzip.
    """
    size = 0
    cap = plain_cap
    first = b""
    async for chunk in body:
        if size < 2:
            # The two bytes may arrive in two chunks.
            first = (first + chunk)[:2]
            cap = gzip_cap if first == b"\x1f\x8b" else plain_cap
        size += len(chunk)
        if size > cap:
            raise errors.PayloadTooLarge(f"the body is larger than {cap:,} bytes")
        file.write(chunk)
    return size

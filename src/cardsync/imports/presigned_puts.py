"""Receives uploads to presigned URLs of the local store. Other stores receive such uploads
themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

from cardsync.imports.errors import AlreadyUsed
from cardsync.imports.limits import PRESIGNED_COMPRESSED_BYTES
from cardsync.platform import errors, limits
from cardsync.platform.storage import LocalStore, ObjectExists, Store, spool_body


def local(store: Store) -> LocalStore:
    """Return the local store. Raises NotFound if the object store receives uploads itself."""
    if not isinstance(store, LocalStore):
        raise errors.NotFound("uploads go directly to the object store")
    return store


async def receive(store: LocalStore, key: str, body: AsyncIterable[bytes]) -> None:
    """Store the body under an unused key. Raises AlreadyUsed, PayloadTooLarge."""
    if await store.exists(key):
        raise AlreadyUsed
    with store.spool() as (path, file):
        await spool_body(
            file,
            body,
            limits.PRESIGNED_PLAIN_BYTES,
            PRESIGNED_COMPRESSED_BYTES,
        )
        file.flush()
        try:
            await store.write(key, path)
        except ObjectExists:
            raise AlreadyUsed from None

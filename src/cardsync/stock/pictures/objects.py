"""Names the files of pictures in the object store, and writes, reads and deletes them.

A name contains the digest of the fetched bytes, so a file never changes, and a second write stores
the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Final

from cardsync.platform.storage import ObjectExists, ObjectMissing, Store
from cardsync.stock.pictures.encode_process import SIZES

# The version of the encoding. If it changes, all pictures are encoded again.
FORM: Final = "1"


def digest_of(source: bytes) -> str:
    return hashlib.sha256(FORM.encode() + source).hexdigest()[:32]


def _key(digest: str, size: str, seller_id: int | None) -> str:
    """Return the name of a file; a seller's own photos are in a separate folder."""
    folder = digest[:2] if seller_id is None else f"u{seller_id}"
    return f"pictures/{folder}/{digest}-{size}.webp"


async def write(
    store: Store, digest: str, files: Mapping[str, bytes], seller_id: int | None = None
) -> None:
    for size, content in files.items():
        with store.spool() as (path, file):
            file.write(content)
            file.flush()
            # An earlier try or another worker has already written the same file.
            with contextlib.suppress(ObjectExists):
                await store.write(_key(digest, size, seller_id), path)


async def read(store: Store, digest: str, size: str, seller_id: int | None = None) -> bytes | None:
    """Return a file, or None if it is missing."""
    try:
        return await store.read(_key(digest, size, seller_id))
    except ObjectMissing:
        return None


async def delete_photo(store: Store, seller_id: int, digest: str) -> None:
    for size in SIZES:
        await store.delete(_key(digest, size, seller_id))

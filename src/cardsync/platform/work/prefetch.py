"""Makes the items of an iterator ahead: each in a thread of its own while the one before it is
used.

An error is raised at the item where the iterator would have raised it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, cast

T = TypeVar("T")

_END: Final = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items; the thread ends with the iteration, however that ends."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield cast("T", item)

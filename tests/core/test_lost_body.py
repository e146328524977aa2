"""A body that another host removed before it became an object is asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cardsync.platform.storage import LocalStore, ObjectMissing, StoreAway


async def test_a_body_that_is_gone_before_it_is_an_object_is_answered_503(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, lambda: b"secret")
    with store.spool() as (path, file):
        file.write(b"rows")
        path.unlink()  # as the sweep of a host does whose clock is days ahead
        with pytest.raises(StoreAway):
            await store.write("sellers/1/file", path)
    with pytest.raises(ObjectMissing):
        await store.size("sellers/1/file")

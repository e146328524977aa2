"""A worker whose clock is wrong deletes nothing that only looks too old."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from builders import a_csv, a_row
from cardsync.operations.processes import worker
from cardsync.operations.processes.retention import has_right_time, tidy
from cardsync.platform import clock


async def test_an_upload_that_waits_outlives_a_wrong_clock(a_seller):
    seller = await a_seller()
    accepted = await seller.upload(a_csv(a_row(1)))
    assert accepted.status_code == 202
    work = seller.service.work
    quick = replace(work, settings=work.settings.model_copy(update={"sweep_seconds": 0.05}))
    [file] = await seller.service.objects(f"accepted/u{seller.id}/")
    assert await has_right_time(work)
    clock.shift(timedelta(days=work.settings.upload_retention_days + 10))
    try:
        assert not await has_right_time(work)
        async with worker._sweeping(quick):
            await asyncio.sleep(1)
        assert await seller.service.objects(f"accepted/u{seller.id}/") == [file]
        # Without that look it would have gone.
        await tidy(work)
        assert await seller.service.objects(f"accepted/u{seller.id}/") == []
    finally:
        clock.reset()

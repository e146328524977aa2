"""The loop of kept figures: refreshed by two at once, killed in the middle, marked meanwhile, failing,
put back, and removed with the seller.
"""

from __future__ import annotations

import asyncio
import errno
from datetime import timedelta

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

import loggers
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import Figure, KeptFigure, mark
from cardsync.platform.work.setbacks import MAX_FAILURES

COUNT = """
    INSERT INTO seller_set (seller_id, set_name) SELECT :seller, 'Refreshed ' || count(*)
      FROM seller_set WHERE seller_id = :seller
"""


def kept_by(refresh, **how):
    return KeptFigure(Figure.CELLS, ("seller_set",), "", "", "", refresh, **how)


async def count(session, asked):
    """Keep one row more at each refresh, so that a second one shows."""
    await session.execute(text(COUNT), {"seller": asked.seller_id})
    return True


async def refreshed(seller):
    query = "SELECT set_name FROM seller_set WHERE seller_id = :id"
    return len(await seller.service.sql(seller.id, query, id=seller.id))


async def marks(seller):
    query = "SELECT * FROM work_due WHERE seller_id = :id AND stream = 'network_cells'"
    return await seller.service.sql(seller.id, query, id=seller.id)


@pytest.fixture
async def seller(a_seller):
    made = await a_seller()
    await marked(made)
    return made


async def marked(seller):
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.CELLS)


async def test_of_many_workers_at_once_one_refreshes(seller):
    kept = kept_by(count)
    await asyncio.gather(*(kept.work_off(seller.service.work, seller.id) for _ in range(6)))
    assert (await refreshed(seller), await marks(seller)) == (1, [])


async def test_a_refresh_that_is_killed_in_the_middle_begins_anew(seller):
    async def killed(session, asked):
        await count(session, asked)
        raise KeyboardInterrupt

    for starts in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            await kept_by(killed).work_off(seller.service.work, seller.id)
        [due] = await marks(seller)
        assert (await refreshed(seller), due["attempts"]) == (0, starts)
    await kept_by(count).work_off(seller.service.work, seller.id)
    assert (await refreshed(seller), await marks(seller)) == (1, [])


async def test_a_mark_that_comes_during_a_refresh_brings_another(seller):
    async def overtaken(session, asked):
        await marked(seller)
        return await count(session, asked)

    assert await kept_by(overtaken).work_off(seller.service.work, seller.id)
    [due] = await marks(seller)
    assert (await refreshed(seller), due["attempts"]) == (1, 0)
    await kept_by(count).work_off(seller.service.work, seller.id)
    assert (await refreshed(seller), await marks(seller)) == (2, [])


async def test_what_was_read_before_a_newer_mark_is_not_written(seller):
    async def read(database, seller_id, now):
        await marked(seller)

    await kept_by(count, read=read).work_off(seller.service.work, seller.id)
    assert await refreshed(seller) == 0
    assert len(await marks(seller)) == 1


async def test_a_refresh_that_is_not_done_goes_on_at_the_next_turn(seller):
    async def in_parts(session, asked):
        await count(session, asked)
        return await session.scalar(
            text("SELECT count(*) > 25 FROM seller_set WHERE seller_id = :id"),
            {"id": asked.seller_id},
        )

    # More turns than a piece that kills its workers has starts.
    while await kept_by(in_parts).work_off(seller.service.work, seller.id):
        pass
    assert (await refreshed(seller), await marks(seller)) == (26, [])


async def test_a_refresh_that_fails_by_itself_is_given_up_until_the_next_mark(seller, monkeypatch):
    loggers.renewed(monkeypatch)

    async def broken(session, asked):
        await count(session, asked)
        await session.execute(text("SELECT 1 / 0"))

    with capture_logs() as logs:
        while await kept_by(broken).work_off(seller.service.work, seller.id):
            pass
    told = [entry["event"] for entry in logs if entry["event"].startswith("work_")]
    assert told == ["work_crashed"] * (MAX_FAILURES - 1) + ["work_given_up"]
    assert (await refreshed(seller), await marks(seller)) == (0, [])
    await marked(seller)
    await kept_by(count).work_off(seller.service.work, seller.id)
    assert (await refreshed(seller), await marks(seller)) == (1, [])


async def test_a_refresh_that_finds_no_room_rests(seller):
    async def full(session, asked):
        await count(session, asked)
        raise OSError(errno.ENOSPC, "no room")

    assert not await kept_by(full).work_off(seller.service.work, seller.id)
    [due] = await marks(seller)
    assert (due["put_back_times"], due["attempts"]) == (1, 0)
    assert not await kept_by(count).work_off(seller.service.work, seller.id)
    assert await refreshed(seller) == 0
    clock.shift(timedelta(seconds=3))
    await kept_by(count).work_off(seller.service.work, seller.id)
    assert (await refreshed(seller), await marks(seller)) == (1, [])


async def test_a_refresh_leaves_nothing_of_a_seller_who_is_removed_meanwhile(seller):
    async def removed(session, asked):
        await count(session, asked)
        await seller.service.sql(
            seller.id, "DELETE FROM work_due WHERE seller_id = :id RETURNING 1", id=seller.id
        )
        return True

    await kept_by(removed).work_off(seller.service.work, seller.id)
    assert await refreshed(seller) == 0

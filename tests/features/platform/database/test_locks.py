"""Locks: one list of kinds, whose keys differ, and one way to take turns by each."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from cardsync.operations.processes import worker
from cardsync.platform.database import locks
from cardsync.platform.database.locks import Lock, locked, locked_by_connection, try_locked
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.derived.kept_figures import Figure, OneAtATime
from cardsync.platform.work.runner import Stream
from waiting import eventually

SOURCE = Path(locks.__file__).parents[2]
HELD = """
    SELECT classid::bigint, objid::bigint, objsubid FROM pg_locks
     WHERE locktype = 'advisory' AND pid = pg_backend_pid()
"""
WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
# These are rows.
KEYED = [lock for lock in Lock if lock not in (Lock.SHOP, Lock.STATE)]


@pytest.fixture
async def seller(a_seller):
    return await a_seller()


async def test_no_two_kinds_share_a_key(service):
    """The partitions of prices are locked by their names, in the function that makes them."""
    months = "SELECT pg_advisory_xact_lock(hashtext('price_observation_' || :month))"
    kinds = {}
    for lock in KEYED:
        async with service.database.shared() as session:
            for id in range(1, 30):
                await locked(session, lock, id)
            kinds[lock] = {tuple(row) for row in await session.execute(text(HELD))}
    async with service.database.shared() as session:
        for month in range(202601, 202613):
            await session.execute(text(months), {"month": str(month)})
        kinds["partition"] = {tuple(row) for row in await session.execute(text(HELD))}
    sizes = {name: len(keys) for name, keys in kinds.items()}
    assert set(sizes.values()) == {1, 12, 29}
    assert len(set().union(*kinds.values())) == sum(sizes.values())


def test_every_advisory_lock_is_of_the_list():
    others = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"pg_(try_)?advisory", path.read_text())
    }
    assert others == {"platform/database/locks.py"}


def test_the_triggers_take_the_keys_of_the_list(service, owner_url):
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        found = connection.execute(
            "SELECT DISTINCT substring(prosrc FROM 'advisory_xact_lock[(]([^,)]*)') FROM pg_proc"
            " WHERE prosrc LIKE '%advisory_xact_lock(%' AND pronamespace = 'public'::regnamespace"
        ).fetchall()
    tally, _, _ = locks.key_of(Lock.ORDER_TALLY).partition(",")
    assert {key for (key,) in found} == {tally, "hashtext(part"}


def test_each_stream_whose_mark_is_its_work_has_a_lock():
    modules = [vars(one) for name, one in sys.modules.items() if name.startswith("cardsync.")]
    made = [one for module in modules for one in module.values() if isinstance(one, Stream)]
    streams = {one.name for one in made if isinstance(one.holding, OneAtATime)}
    assert streams >= {"pictures", "rematched_cards", "mail"}
    streams |= {kept.figure for kept in worker.KEPT}
    assert streams >= set(Figure)
    assert streams <= set(Lock)


@pytest.mark.parametrize("lock", KEYED)
async def test_of_two_the_second_waits_for_the_end_of_the_first(service, seller, lock):
    database, order = service.database, []

    async def turn(name):
        async with database.tenant(seller.id) as session:
            await locked(session, lock, seller.id)
            order.append(name)

    async with database.tenant(seller.id) as session:
        await locked(session, lock, seller.id)
        second = asyncio.create_task(turn("second"))
        async with database.shared() as beside:
            await eventually(lambda: beside.scalar(text(WAITS)))
            assert not await try_locked(beside, lock, seller.id)
        order.append("first")
    await second
    assert order == ["first", "second"]
    async with database.shared() as session:
        assert await try_locked(session, lock, seller.id)


async def test_shared_holders_wait_for_who_wants_it_alone_and_not_for_each_other(service, seller):
    database = service.database
    async with database.shared() as one, database.shared() as two, database.shared() as alone:
        for session in (one, two):
            await locked(session, Lock.LOTS_SOLD, seller.id, shared=True)
        with pytest.raises(OperationalError, match="lock timeout"):
            await locked(alone, Lock.LOTS_SOLD, seller.id, seconds=0.05)


@pytest.mark.parametrize(("set_before", "wait"), [(None, 0.05), ("50ms", 20.0)])
async def test_a_wait_has_an_end_and_the_transactions_own_setting_holds_again(
    service, seller, set_before, wait
):
    database = service.database
    async with database.shared() as first:
        await locked(first, Lock.LEFT_OBJECTS, seller.id)
        async with database.shared() as second:
            if set_before:
                await second.execute(text(f"SET LOCAL lock_timeout = '{set_before}'"))
            await locked(second, Lock.LISTS, seller.id)
            assert await second.scalar(text("SHOW lock_timeout")) == (set_before or "0")
            with pytest.raises(OperationalError, match="lock timeout"):
                await locked(second, Lock.LEFT_OBJECTS, seller.id, seconds=wait)


async def test_a_connection_holds_a_lock_through_its_transactions(owner_url):
    url = libpq_url(owner_url, role=None)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        assert locked_by_connection(first, Lock.RESTORE)
        first.execute("SELECT 1")
        first.rollback()
        assert not locked_by_connection(second, Lock.RESTORE)
        first.close()
        for _ in range(100):
            if held := locked_by_connection(second, Lock.RESTORE):
                break
            await asyncio.sleep(0.05)
        assert held


async def test_the_shops_turn_is_its_accounts_row(service, seller):
    row = text("SELECT FROM account WHERE seller_id = :seller FOR NO KEY UPDATE NOWAIT")
    async with service.database.tenant(seller.id) as ours:
        await locked(ours, Lock.SHOP, seller.id)
        with pytest.raises(OperationalError, match="could not obtain lock"):
            async with service.database.tenant(seller.id) as theirs:
                await theirs.execute(row, {"seller": seller.id})


async def test_who_has_written_the_account_takes_the_shops_turn_before_those_who_wait(
    service, seller
):
    """It alone finds a deadlock of the row with a key beside it."""
    database = service.database
    write = text("UPDATE account SET quiet_hours = quiet_hours WHERE seller_id = :seller")

    async def turn():
        async with database.tenant(seller.id) as session:
            await locked(session, Lock.SHOP, seller.id)

    async with database.tenant(seller.id) as session:
        await session.execute(write, {"seller": seller.id})
        second = asyncio.create_task(turn())
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        async with database.shared() as beside:
            await eventually(lambda: beside.scalar(waiting))
        await locked(session, Lock.SHOP, seller.id)
    await second

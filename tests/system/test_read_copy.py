"""Heavy reads use a real streaming replica, and see there what was committed before they began; where
it lags, is away or would have to write, they use the database.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.system.processes import Seller, Server, a_folder, made_before

from cardsync.operations.processes import embedded
from cardsync.platform.database import read_copy
from cardsync.platform.database.migrate import keep_seal
from cardsync.platform.database.read_copy import ReadCopy
from cardsync.platform.database.session import Database
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from replica_server import Replica, replica_of
from waiting import eventually

pytestmark = pytest.mark.day


@dataclass
class Pair:
    seller: Seller
    url: str
    replica: Replica

    def told(self, statement: str) -> None:
        with psycopg.connect(self.replica.admin_url, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with a_folder() as folder, a_folder() as other:
        home = Server(folder)
        subprocess.run(["cp", "-a", made_before(), home.data_dir], check=True)
        with embedded.running(home.data_dir) as server:
            keep_seal(server.admin_url(), seal(Settings(data_dir=home.data_dir)))
            seller = home.seller()
            with replica_of(server.admin_url(), server.data_dir.parent, other) as replica:
                yield Pair(seller, server.url(), replica)


@pytest.fixture
async def database(pair: Pair) -> AsyncIterator[Database]:
    async with Database.open(pair.url, pool=2, hot_pool=0) as opened:
        yield opened


@pytest.fixture
async def copy(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReadCopy]:
    monkeypatch.setattr(read_copy, "_AWAY_SECONDS", 0.0)
    async with read_copy.read_copy(pair.replica.url) as opened:
        assert opened is not None
        yield opened


def asking(seller: Seller, statement: str, *before: str):
    async def work(database: Database):
        async with database.tenant(seller.id, snapshot=True) as session:
            for one in before:
                await session.execute(text(one))
            return await session.scalar(text(statement))

    return work


IS_COPY = "SELECT pg_is_in_recovery()"


async def is_read(copy: ReadCopy, database: Database, seller: Seller) -> None:
    """Wait for a copy that lags for a moment on a busy machine."""
    await eventually(lambda: copy.read(database, asking(seller, IS_COPY)), "the copy", 30)


async def renamed(database: Database, seller: Seller, name: str) -> None:
    values = {"id": seller.id, "name": name}
    async with database.tenant(seller.id) as session:
        await session.execute(
            text("UPDATE account SET quiet_hours = :name WHERE seller_id = :id"), values
        )


SEEN = "SELECT quiet_hours FROM account WHERE seller_id = {id}"


@pytest.mark.night
async def test_a_read_of_the_copy_sees_all_that_was_committed_before(
    pair: Pair, database: Database, copy: ReadCopy
) -> None:
    for n in range(20):
        await renamed(database, pair.seller, f"0{n % 9}:00-09:00")
        found = await copy.read(database, asking(pair.seller, SEEN.format(id=pair.seller.id)))
        assert found == f"0{n % 9}:00-09:00"
        assert await copy.read(database, asking(pair.seller, IS_COPY)) is True


async def test_a_copy_that_lags_is_not_read(pair: Pair, database: Database, copy: ReadCopy) -> None:
    pair.told("SELECT pg_wal_replay_pause()")
    try:
        await renamed(database, pair.seller, "05:00-06:00")
        found = await copy.read(database, asking(pair.seller, SEEN.format(id=pair.seller.id)))
        assert found == "05:00-06:00"
        assert await copy.read(database, asking(pair.seller, IS_COPY)) is False
    finally:
        pair.told("SELECT pg_wal_replay_resume()")
    await is_read(copy, database, pair.seller)


async def test_a_read_that_needs_a_table_of_its_own_is_done_by_the_database(
    pair: Pair, database: Database, copy: ReadCopy
) -> None:
    work = asking(pair.seller, IS_COPY, "CREATE TEMP TABLE mine ON COMMIT DROP AS SELECT 1")
    assert await copy.read(database, work) is False


async def test_a_read_that_takes_too_long_is_not_done_twice(
    pair: Pair, database: Database, copy: ReadCopy
) -> None:
    work = asking(pair.seller, "SELECT pg_sleep(5)", "SET LOCAL statement_timeout = 50")
    with pytest.raises(DBAPIError) as told:
        await copy.read(database, work)
    assert told.value.orig.sqlstate == "57014"


async def test_a_copy_that_is_away_is_not_missed(
    pair: Pair, database: Database, copy: ReadCopy
) -> None:
    await is_read(copy, database, pair.seller)
    pair.replica.stop()
    try:
        assert await copy.read(database, asking(pair.seller, IS_COPY)) is False
    finally:
        pair.replica.start()
    await is_read(copy, database, pair.seller)

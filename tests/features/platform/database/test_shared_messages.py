"""Reads of one snapshot that run at the same time share their messages to the database."""

from __future__ import annotations

from decimal import Decimal

import pytest
from psycopg.errors import DivisionByZero, InFailedSqlTransaction
from sqlalchemy import text

from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import each_of, rows_of
from cardsync.platform.database.session import Database, SessionReading, in_one_message
from cardsync.platform.database.snapshot_reads import Planned
from cardsync.platform.database.watched_cursors import SECONDS
from sent_statements import counting, prepared

ONE = "SELECT CAST(:n AS integer), CAST(:text AS text)"


def messages() -> int:
    [found] = SECONDS.collect()
    [count] = [one.value for one in found.samples if one.name.endswith("_count")]
    return int(count)


@pytest.fixture
async def reads(a_seller):
    seller = await a_seller()
    async with seller.service.app.state.database.readings.of(seller.id, 10) as reads:
        yield reads


async def test_reads_at_the_same_time_are_one_message_with_values_of_their_own(reads):
    def one(n: int):
        return reads.rows(ONE, {"n": n, "text": "a"})

    before = messages()
    assert await at_once(one(1), one(2)) == ([(1, "a")], [(2, "a")])
    assert messages() - before == 1
    # A read's own reads share the message.
    assert await at_once(one(1), at_once(one(2), at_once(one(3), one(4)))) == (
        [(1, "a")],
        ([(2, "a")], ([(3, "a")], [(4, "a")])),
    )
    assert messages() - before == 2


async def test_rows_have_the_names_of_their_columns_if_they_are_read_like_those_of_a_session(reads):
    values = {"n": 3}
    ([[row], [other]], [[same]]) = await at_once(
        in_one_message(reads, ["SELECT CAST(:n AS integer) AS n, 2 AS m", "SELECT 4 AS o"], values),
        # Rows without names may have columns of the same name.
        reads.together(["SELECT 5 AS n, 6 AS n"], {}),
    )
    assert (row.n, row.m, other.o, same) == (3, 2, 4, (5, 6))


@prepared
async def test_new_statements_of_a_message_are_prepared_in_one_round_trip(a_seller):
    seller = await a_seller()
    asked = [
        Planned(f"added_{n}", f"SELECT CAST(:n AS integer) + {n}", {"n": "integer"})
        for n in range(3)
    ]
    async with (
        # Nothing works beside the test on connections of its own.
        Database.open(seller.service.settings.database_url, pool=1, hot_pool=0) as database,
        counting(database) as sent,
        database.readings.of(seller.id, 10) as reads,
    ):
        sent.read()
        before = sent.round_trips
        assert await reads.together(asked, {"n": 1}) == [[(1,)], [(2,)], [(3,)]]
        sent.read()
        assert sent.round_trips - before == 2
        assert await reads.together(asked, {"n": 2}) == [[(2,)], [(3,)], [(4,)]]
        sent.read()
        assert sent.round_trips - before == 3


async def test_a_failure_of_one_read_is_raised_as_itself(reads):
    with pytest.raises(DivisionByZero):
        await each_of(reads, reads.rows("SELECT 1 / 0", {}), reads.rows("SELECT 1", {}))


async def test_a_reading_whose_read_failed_reads_on_in_another_snapshot(reads):
    seller = "SELECT current_setting('app.seller_id'), current_setting('transaction_read_only')"
    before = await reads.rows(seller, {})
    with pytest.raises(DivisionByZero):
        await reads.rows("SELECT 1 / 0", {})
    assert await reads.rows(seller, {}) == before


async def test_a_session_reads_in_turn_what_a_reading_reads_at_once(a_seller):
    seller = await a_seller()
    database = seller.service.app.state.database

    async def both(source):
        rows = rows_of(source)
        return await each_of(source, _list(rows("SELECT 1", {})), _list(rows(ONE, values)))

    values = {"n": 2, "text": ":n"}
    async with database.readings.of(seller.id, 10) as reads:
        read = await both(reads)
    async with database.tenant(seller.id) as session:
        assert await both(session) == read == ([(1,)], [(2, ":n")])


async def _list(rows) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await rows]


async def test_reads_in_a_sessions_transaction_share_messages_and_see_what_it_wrote(a_seller):
    seller = await a_seller()
    url = seller.service.settings.database_url
    touched = "UPDATE account SET minimum_cap_step = 0.07 WHERE seller_id = :id"
    step = "SELECT minimum_cap_step AS step FROM account WHERE seller_id = :id"
    async with (
        # Nothing works beside the test on connections of its own.
        Database.open(url, pool=1, hot_pool=0) as database,
        counting(database) as sent,
        database.tenant(seller.id) as session,
    ):
        sent.read()
        # The transaction began in the message that sets its seller.
        assert sent.round_trips == 1
        await session.execute(text(touched), {"id": seller.id})
        reads = SessionReading(session)
        sent.read()
        before = sent.round_trips
        [[row]], [same], [other] = await at_once(
            in_one_message(reads, [step], {"id": seller.id}),
            reads.rows(step, {"id": seller.id}),
            reads.rows(ONE, {"n": 1, "text": "100 % :n"}),
        )
        assert (row.step, same, other) == (Decimal("0.07"), (Decimal("0.07"),), (1, "100 % :n"))
        sent.read()
        assert sent.round_trips - before == 1
        # A failure fails the session's transaction.
        with pytest.raises(DivisionByZero):
            await at_once(reads.rows("SELECT 1 / 0", {}), reads.rows("SELECT 1", {}))
        with pytest.raises(InFailedSqlTransaction):
            await reads.rows("SELECT 1", {})
        await session.rollback()


@pytest.mark.parametrize(
    ("snapshot", "level"), [(False, "read committed"), (True, "repeatable read")]
)
async def test_a_transaction_begins_at_the_level_of_its_session(a_seller, snapshot, level):
    seller = await a_seller()
    database = seller.service.app.state.database
    async with database.tenant(seller.id, snapshot=snapshot) as session:
        assert await session.scalar(text("SHOW transaction_isolation")) == level

"""A reading receives frames of integers as arrays, in a message that other reads share."""

from __future__ import annotations

import polars as pl
import pytest

from cardsync.platform.concurrency import at_once
from cardsync.platform.database.copy import read_integers, read_rows
from cardsync.platform.database.session import SessionReading
from cardsync.platform.database.transaction_settings import joined_as_planned, joined_by_hash
from sent_statements import counting, prepared

SCHEMA = {"n": pl.Int64, "half": pl.Int64, "none": pl.Int64}
ROWS = """
    SELECT n, CASE WHEN n % 2 = 0 THEN n / 2 END, NULL::integer
      FROM generate_series(:first, :last) n ORDER BY n
"""
NUMBERS = "(SELECT n, -n AS less FROM generate_series(1, :last) n) numbers"
NAMES = {"n": "n", "less": "less::bigint"}
SETTINGS = """
    SELECT current_setting('enable_sort'), current_setting('enable_nestloop'),
           current_setting('parallel_tuple_cost')
"""
AROUND = (joined_by_hash(), joined_as_planned())


@pytest.mark.parametrize("last", [0, 5, 40_000])
async def test_a_reading_a_session_and_a_reading_of_it_read_the_same_frames(a_seller, last):
    seller = await a_seller()
    database = seller.service.app.state.database
    rows = pl.DataFrame(
        [(n, None if n % 2 else n // 2, None) for n in range(1, last + 1)], SCHEMA, orient="row"
    )
    numbers = pl.DataFrame(
        [(n, -n) for n in range(1, last + 1)], dict.fromkeys(NAMES, pl.Int64), orient="row"
    )

    async def same(source) -> None:
        assert (await read_rows(source, ROWS, SCHEMA, {"first": 1, "last": last})).equals(rows)
        found = await read_integers(source, NAMES, NUMBERS, "n", {"last": last})
        assert found.sort("n").equals(numbers)

    async with database.readings.of(seller.id, 30) as reads:
        await same(reads)
    async with database.tenant(seller.id) as session:
        await same(session)
        await same(SessionReading(session))


@prepared
async def test_frames_share_a_message_and_keep_their_settings_to_themselves(a_seller):
    seller = await a_seller()
    database = seller.service.app.state.database
    values = {"first": 1, "last": 3}
    async with counting(database) as sent, database.readings.of(seller.id, 30) as reads:
        [before] = await reads.rows(SETTINGS, {})
        sent.read()
        first = sent.round_trips
        history, numbers, [after] = await at_once(
            read_rows(reads, ROWS, SCHEMA, values, around=AROUND),
            read_integers(reads, NAMES, NUMBERS, "n", values),
            reads.rows(SETTINGS, {}),
        )
        sent.read()
        assert sent.round_trips - first == 1
    assert (history.height, numbers.height) == (3, 3)
    assert after == before

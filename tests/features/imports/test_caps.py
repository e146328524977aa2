"""A cap in the cycle: how far a price may move is taken from where the day or the week began,
whatever came since.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.periods import day_start, week_start


@pytest.fixture
def at_noon():
    """Noon of a Wednesday in New York, so that hours later it is still that day."""
    there = clock.now()
    clock.shift(week_start(there, "America/New_York") + timedelta(days=9, hours=12) - there)
    yield
    clock.reset()


async def target(seller, **row):
    await seller.import_csv(a_csv(a_row(1, **row)))
    [card] = await seller.cards()
    return str(card["target_price"])


async def test_a_preset_moves_a_price_by_its_cap_and_no_further(a_seller, at_noon):
    seller = await a_seller(capped=True)
    assert await target(seller, market="9.00", price="1.00") == "1.1500"


async def test_prices_that_were_taken_over_do_not_raise_the_days_limit(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await target(seller, market="9.00", price="1.00")
    clock.shift(timedelta(hours=2))
    assert await target(seller, market="9.00", price="1.15") == "1.1500"
    clock.shift(timedelta(hours=2))
    assert await target(seller, market="9.10", price="1.15") == "1.1500"


async def test_the_next_day_begins_with_the_last_price_that_was_known(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await target(seller, market="9.00", price="1.00")
    clock.shift(timedelta(hours=2))
    await target(seller, market="9.00", price="1.15")
    clock.shift(timedelta(days=1))
    assert await target(seller, market="9.00", price="1.15") == "1.3200"
    clock.shift(timedelta(hours=1))
    assert await target(seller, market="9.00", price="1.32") == "1.3200"


async def test_a_week_begins_on_monday(a_seller, at_noon):
    seller = await a_seller(capped=True)
    week = """UPDATE pricing_rule SET settings = jsonb_set(settings, '{cap,period}', '"week"')
        WHERE seller_id = :id"""
    await seller.service.sql(seller.id, week, id=seller.id)
    assert await target(seller, market="9.00", price="1.00") == "1.1500"
    clock.shift(timedelta(days=1))
    assert await target(seller, market="9.00", price="1.15") == "1.1500"
    clock.shift(timedelta(days=7))
    assert await target(seller, market="9.00", price="1.15") == "1.3200"


async def test_a_price_that_the_seller_set_beyond_the_limit_is_itself_the_limit(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await target(seller, market="9.00", price="1.00")
    clock.shift(timedelta(hours=1))
    assert await target(seller, market="9.00", price="5.00") == "5.0000"


async def test_a_stale_card_gets_cheaper_from_its_first_observation_on(a_seller):
    seller = await a_seller()
    stale = """UPDATE pricing_rule SET settings = settings ||
        '{"never_lower": false, "adjust_bp": 0,
        "stale": {"after_days": 60, "step_bp": 500, "every_days": 7, "limit_bp": 4000}}' WHERE seller_id = :id"""
    await seller.service.sql(seller.id, stale, id=seller.id)
    begun = clock.now()
    await seller.import_csv(
        a_csv(a_row(1, market="10.00")),
        **{"X-Exported-At": clock.rfc3339(begun - timedelta(days=67))},
    )
    assert await target(seller, market="10.00", price="10.00") == "9.0000"


def test_a_day_begins_at_the_sellers_midnight_also_when_the_clocks_change():
    assert day_start(datetime(2026, 11, 1, 18, tzinfo=UTC), "America/New_York") == datetime(
        2026, 11, 1, 4, tzinfo=UTC
    )
    assert day_start(datetime(2026, 11, 2, 18, tzinfo=UTC), "America/New_York") == datetime(
        2026, 11, 2, 5, tzinfo=UTC
    )
    assert week_start(datetime(2026, 11, 2, 4, tzinfo=UTC), "America/New_York") == datetime(
        2026, 10, 26, 4, tzinfo=UTC
    )
    assert week_start(datetime(2026, 11, 2, 6, tzinfo=UTC), "America/New_York") == datetime(
        2026, 11, 2, 5, tzinfo=UTC
    )

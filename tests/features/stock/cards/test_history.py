"""Price history: the newest observation is on the card, each superseded one in
`price_observation`.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url


async def observations(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT c.marketplace_id, o.observed_at, o.quantity, o.price, o.market, o.low"
        " FROM price_observation o"
        " JOIN card c ON c.seller_id = o.seller_id AND c.id = o.card_id WHERE o.seller_id = :id"
        " ORDER BY c.marketplace_id, o.observed_at",
        id=seller.id,
    )


async def price_changes(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT r.upload_id, c.marketplace_id, p.old_price, p.new_price, p.rule_id"
        " FROM price_change p"
        " JOIN price_run r ON r.seller_id = p.seller_id AND r.id = p.run_id"
        " JOIN card c ON c.seller_id = p.seller_id AND c.id = p.card_id"
        " WHERE p.seller_id = :id ORDER BY r.id, c.marketplace_id",
        id=seller.id,
    )


def ago(**span):
    return clock.now().replace(microsecond=0) - timedelta(**span)


def exported(moment):
    return {"X-Exported-At": clock.rfc3339(moment)}


async def observed_at(seller):
    return [card["observed_at"] for card in await seller.cards()]


async def test_a_superseded_observation_goes_to_history_and_the_card_has_the_newest(a_seller):
    seller = await a_seller()
    first, second = ago(minutes=20), ago(minutes=10)
    await seller.import_csv(a_csv(a_row(1, market="1.20", quantity=3)), **exported(first))
    assert await observations(seller) == []
    await seller.import_csv(a_csv(a_row(1, market="1.50", quantity=2)), **exported(second))
    assert await observations(seller) == [
        {
            "marketplace_id": 1,
            "observed_at": first,
            "quantity": 3,
            "price": 1,
            "market": Decimal("1.2"),
            "low": 1,
        }
    ]
    card = (await seller.cards())[0]
    assert (card["observed_at"], card["quantity"], card["market"]) == (second, 2, Decimal("1.5"))


async def test_every_price_and_the_quantity_is_observed(a_seller):
    seller = await a_seller()
    moved = [{"market": "9.99"}, {"price": "9.99"}, {"low": "9.99"}, {"low_with_shipping": "9.99"},
             {"direct": "9.99"},
             {"quantity": 9}, {"market": ""}]  # fmt: skip
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 9))))
    await seller.import_csv(
        a_csv(*(a_row(n, **cells) for n, cells in enumerate(moved, start=1)), a_row(8))
    )
    assert [row["marketplace_id"] for row in await observations(seller)] == [1, 2, 3, 4, 5, 6, 7]


async def test_an_observation_that_says_the_same_is_not_kept_twice(a_seller):
    seller = await a_seller()
    for _ in range(3):
        await seller.import_csv(a_csv(a_row(1), a_row(2)))
    assert await observations(seller) == []


@pytest.mark.night
async def test_a_new_name_alone_is_no_observation(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    await seller.import_csv(a_csv(a_row(1, rarity="R")))
    assert await observations(seller) == []
    assert (await seller.cards())[0]["rarity"] == "R"


@pytest.mark.night
async def test_a_card_that_goes_and_returns_leaves_its_trace_under_one_id(a_seller):
    seller = await a_seller()
    times = [ago(minutes=30), ago(minutes=20), ago(minutes=10)]
    both, one = a_csv(a_row(1, quantity=4), a_row(2)), a_csv(a_row(2))
    for file, moment in zip((both, one, both), times, strict=True):
        await seller.import_csv(file, **exported(moment))
    trace = [(row["observed_at"], row["quantity"]) for row in await observations(seller)]
    assert trace == [(times[0], 4), (times[1], 0)]
    assert (await seller.cards())[0]["observed_at"] == times[2]


async def test_the_file_is_as_old_as_the_agent_says(a_seller):
    seller = await a_seller()
    moment = ago(hours=5)
    await seller.import_csv(a_csv(a_row(1)), **exported(moment))
    assert await observed_at(seller) == [moment]


async def test_the_key_form_says_it_too(a_seller):
    seller = await a_seller()
    moment = ago(hours=5)
    key = await seller.put_object(a_csv(a_row(1)))
    await seller.import_key(key, exported_at=clock.rfc3339(moment))
    assert await observed_at(seller) == [moment]


async def test_a_time_of_another_zone_is_the_same_moment(a_seller):
    seller = await a_seller()
    moment = ago(hours=5)
    await seller.import_csv(
        a_csv(a_row(1)),
        **{"X-Exported-At": (moment + timedelta(hours=2)).isoformat()[:19] + "+02:00"},
    )
    assert await observed_at(seller) == [moment]


@pytest.mark.night
@pytest.mark.parametrize(
    "said", ["2999-01-01T00:00:00Z", "yesterday", "", "9999-12-31T23:59:59-14:00"]
)
async def test_a_time_in_the_future_or_that_cannot_be_read_counts_as_now(a_seller, said):
    seller = await a_seller()
    before = clock.now()
    await seller.import_csv(a_csv(a_row(1)), **{"X-Exported-At": said})
    await seller.import_key(
        await seller.put_object(a_csv(a_row(2, line="Pokemon"))), exported_at=said
    )
    assert all(before <= moment <= clock.now() for moment in await observed_at(seller))


@pytest.mark.night
async def test_prices_older_than_a_week_are_no_reference(a_seller):
    seller = await a_seller()
    old = await seller.import_csv(a_csv(a_row(1)), **exported(ago(hours=169)))
    assert (old["blocked"], old["changed"]) == ({"no_usable_reference": 1}, 0)
    young = await seller.import_csv(a_csv(a_row(1)), **exported(ago(hours=167)))
    assert (young["blocked"], young["changed"]) == ({}, 1)


@pytest.mark.night
async def test_observations_older_than_two_years_are_not_kept(a_seller):
    seller = await a_seller()
    recent = ago(minutes=5)
    await seller.import_csv(a_csv(a_row(1, market="1.00")), **exported(ago(days=900)))
    await seller.import_csv(a_csv(a_row(1, market="2.00")), **exported(recent))
    await seller.import_csv(a_csv(a_row(1, market="3.00")))
    assert [(row["observed_at"], row["market"]) for row in await observations(seller)] == [
        (recent, 2)
    ]


async def test_each_run_leaves_a_price_change_of_each_card_that_it_would_reprice(a_seller):
    seller = await a_seller()
    rule = (
        await seller.service.sql(
            seller.id, "SELECT id FROM pricing_rule WHERE seller_id = :id", id=seller.id
        )
    )[0]
    report = await seller.import_csv(
        a_csv(a_row(1, market="1.20", price="1.00"), a_row(2, market="1.00", price="1.00"))
    )
    assert await price_changes(seller) == [
        {
            "upload_id": report["id"],
            "marketplace_id": 1,
            "old_price": 1,
            "new_price": Decimal("1.19"),
            "rule_id": rule["id"],
        }
    ]


@pytest.mark.night
async def test_a_price_that_was_asked_for_already_is_not_asked_again(a_seller):
    seller = await a_seller()
    file = a_csv(a_row(1, market="1.20", price="1.00"))
    await seller.import_csv(file)
    await seller.import_csv(file)
    assert len(await price_changes(seller)) == 1


@pytest.mark.night
async def test_a_price_that_was_taken_over_is_no_change_any_more(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="1.20", price="1.00")))
    report = await seller.import_csv(a_csv(a_row(1, market="1.20", price="1.19")))
    assert report["changed"] == 0
    report = await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.19")))
    changes = [(row["old_price"], row["new_price"]) for row in await price_changes(seller)]
    assert changes == [(1, Decimal("1.19")), (Decimal("1.19"), Decimal("1.98"))]
    assert report["changed"] == 1


@pytest.mark.night
async def test_a_card_without_a_price_gets_its_first(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="")))
    assert [(row["old_price"], row["new_price"]) for row in await price_changes(seller)] == [
        (None, Decimal("1.98"))
    ]


async def test_changes_and_history_of_another_seller_cannot_be_seen(a_seller):
    seller, stranger = await a_seller(), await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="1.20")))
    await seller.import_csv(a_csv(a_row(1, market="1.50")))
    for table in ("price_observation", "price_change", "price_run", "card", "upload"):
        assert await stranger.service.sql(stranger.id, f"SELECT seller_id FROM {table}") == []
        assert await seller.service.sql(seller.id, f"SELECT seller_id FROM {table}") != []


def test_two_workers_make_a_months_partition_once(owner_url):
    make = "SELECT ensure_price_observation_partition('2031-05-01')"
    waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    url = libpq_url(owner_url, role=None)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        first.execute(make)
        with ThreadPoolExecutor(1) as thread:
            other = thread.submit(second.execute, make)
            while not first.execute(waits, [second.info.backend_pid]).fetchone()[0]:
                assert not other.done(), "the second worker did not wait for the first"
            first.commit()
            other.result(30)
        second.execute("DROP TABLE price_observation_203105")
